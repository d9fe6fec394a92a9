//! TLS connections with rustls.

use std::io;
use std::sync::{Arc, OnceLock};

use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// Performs the TLS handshake over `stream`.
pub(in crate::client) async fn connect<S>(
    config: Option<Arc<ClientConfig>>,
    host: &str,
    stream: S,
) -> io::Result<TlsStream<S>>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let name = ServerName::try_from(host)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the host is not a valid TLS server name"))?
        .to_owned();
    let config = match config {
        Some(config) => config,
        None => system_config()?,
    };
    TlsConnector::from(config).connect(name, stream).await
}

/// Returns a configuration with the system's root certificates. They are read once, since reading them takes
/// milliseconds.
fn system_config() -> io::Result<Arc<ClientConfig>> {
    static SYSTEM: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(config) = SYSTEM.get() {
        return Ok(Arc::clone(config));
    }
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        return Err(io::Error::new(
            io::ErrorKind::NotFound,
            "no root certificates found on the system; set one with TcpConnector::tls_config",
        ));
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(io::Error::other)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::clone(SYSTEM.get_or_init(|| Arc::new(config))))
}
