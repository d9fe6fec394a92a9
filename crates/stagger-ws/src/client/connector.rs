use core::pin::Pin;
use std::io;

use http::uri::Uri;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// Opens the byte stream below a connection: [`TcpConnector`] by default, or a proxy, a Unix socket, or a pipe in
/// tests. The WebSocket handshake is not part of it: the client makes it over the stream. So a closure from a URI to a
/// future is a connector.
pub trait Connector: Send + Sync + 'static {
    /// The byte stream.
    type Io: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    /// Connects to the host of this URI, with TLS for `wss`. The future is dropped when the connect timeout elapses.
    fn connect(&self, to: Uri) -> impl Future<Output = io::Result<Self::Io>> + Send;
}

impl<F, C, S> Connector for F
where
    F: Fn(Uri) -> C + Send + Sync + 'static,
    C: Future<Output = io::Result<S>> + Send,
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    type Io = S;

    fn connect(&self, to: Uri) -> impl Future<Output = io::Result<S>> + Send {
        self(to)
    }
}

/// Connects over TCP with `TCP_NODELAY` set. For `wss`, connects over TLS, which needs the feature `rustls`.
#[derive(Clone, Debug, Default)]
pub struct TcpConnector {
    #[cfg(feature = "rustls")]
    tls: Option<std::sync::Arc<tokio_rustls::rustls::ClientConfig>>,
}

impl TcpConnector {
    /// Creates a connector that uses the system's root certificates. They are read once, at the first `wss` connection.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the TLS configuration, for other root certificates or a client certificate.
    #[cfg(feature = "rustls")]
    #[cfg_attr(docsrs, doc(cfg(feature = "rustls")))]
    #[must_use]
    pub fn tls_config(mut self, tls: std::sync::Arc<tokio_rustls::rustls::ClientConfig>) -> Self {
        self.tls = Some(tls);
        self
    }
}

impl Connector for TcpConnector {
    type Io = Box<dyn Io>;

    async fn connect(&self, to: Uri) -> io::Result<Box<dyn Io>> {
        let invalid = |why| io::Error::new(io::ErrorKind::InvalidInput, why);
        let is_secure = to.scheme_str() == Some("wss");
        let host = to.host().ok_or_else(|| invalid("the URL has no host"))?;
        // A URI has brackets around an IPv6 address; a socket address has none.
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = to.port_u16().unwrap_or(if is_secure { 443 } else { 80 });
        let stream = TcpStream::connect((host, port)).await?;
        stream.set_nodelay(true)?;
        if !is_secure {
            return Ok(Box::new(stream));
        }
        #[cfg(feature = "rustls")]
        return Ok(Box::new(super::tls::connect(self.tls.clone(), host, stream).await?));
        #[cfg(not(feature = "rustls"))]
        Err(invalid("wss requires the feature `rustls`"))
    }
}

/// A byte stream: the bounds that a connection needs.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Io for S {}

/// A type-erased [`Connector`], so that the client needs no type parameter.
pub(super) trait AnyConnector: Send + Sync {
    fn connect_any(&self, to: Uri) -> Pin<Box<dyn Future<Output = io::Result<Box<dyn Io>>> + Send + '_>>;
}

impl<C: Connector> AnyConnector for C {
    fn connect_any(&self, to: Uri) -> Pin<Box<dyn Future<Output = io::Result<Box<dyn Io>>> + Send + '_>> {
        Box::pin(async { Ok(Box::new(self.connect(to).await?) as Box<dyn Io>) })
    }
}
