use core::pin::Pin;
use std::io;

use http::uri::Uri;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

/// Makes the stream of bytes that a handshake is made over: [`TcpConnector`] by default, a proxy, a Unix socket, or a pipe in a
/// test. A closure that takes the address is one.
pub trait Connector: Send + Sync + 'static {
    /// The stream.
    type Io: AsyncRead + AsyncWrite + Send + Unpin + 'static;

    /// Connects to the host of this address; for `wss`, with TLS. It is dropped when the connect timeout is over.
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

/// Connects over TCP, without Nagle's delay; for `wss`, with the feature `rustls`, over TLS.
#[derive(Clone, Debug, Default)]
pub struct TcpConnector {
    #[cfg(feature = "rustls")]
    tls: Option<std::sync::Arc<tokio_rustls::rustls::ClientConfig>>,
}

impl TcpConnector {
    /// With the system's root certificates, which are read once, when the first `wss` is connected.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// With this TLS: other roots, a certificate of the client's.
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
        let host = to.host().ok_or_else(|| invalid("the address has no host"))?;
        // The brackets of an IPv6 address belong to the address of a page, not to that of a machine.
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
        Err(invalid("wss needs the feature `rustls`"))
    }
}

/// What bytes are read from and written to.
pub trait Io: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> Io for S {}

/// A [`Connector`] whose type nobody needs to know: so the client's own type has no parameter.
pub(super) trait AnyConnector: Send + Sync {
    fn connect_any(&self, to: Uri) -> Pin<Box<dyn Future<Output = io::Result<Box<dyn Io>>> + Send + '_>>;
}

impl<C: Connector> AnyConnector for C {
    fn connect_any(&self, to: Uri) -> Pin<Box<dyn Future<Output = io::Result<Box<dyn Io>>> + Send + '_>> {
        Box::pin(async { Ok(Box::new(self.connect(to).await?) as Box<dyn Io>) })
    }
}
