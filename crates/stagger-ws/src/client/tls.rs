//! TLS with rustls: the handshake, and which of its errors are permanent.

use std::io;
use std::sync::{Arc, OnceLock};

use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{AlertDescription, ClientConfig, Error, RootCertStore};

/// Performs the TLS handshake over `stream`.
pub(super) async fn connect<S>(config: Option<Arc<ClientConfig>>, host: &str, stream: S) -> io::Result<TlsStream<S>>
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

/// Returns whether one side rejected the other: a bad certificate, a wrong name, no common version. All other errors
/// may be transient.
pub(super) fn is_permanent(error: &io::Error) -> bool {
    let Some(error) = error.get_ref().and_then(|error| error.downcast_ref::<Error>()) else {
        return false;
    };
    match error {
        Error::InvalidCertificate(_)
        | Error::InvalidCertRevocationList(_)
        | Error::NoCertificatesPresented
        | Error::UnsupportedNameType
        | Error::PeerIncompatible(_)
        | Error::NoApplicationProtocol => true,
        Error::AlertReceived(alert) => matches!(
            alert,
            AlertDescription::HandshakeFailure
                | AlertDescription::BadCertificate
                | AlertDescription::UnsupportedCertificate
                | AlertDescription::CertificateRevoked
                | AlertDescription::CertificateExpired
                | AlertDescription::CertificateUnknown
                | AlertDescription::CertificateRequired
                | AlertDescription::UnknownCA
                | AlertDescription::AccessDenied
                | AlertDescription::ProtocolVersion
                | AlertDescription::InsufficientSecurity
                | AlertDescription::UnrecognisedName
        ),
        _ => false,
    }
}
