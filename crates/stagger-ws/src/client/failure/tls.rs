//! Which TLS errors are permanent.

use std::io;

#[cfg(feature = "rustls")]
use tokio_rustls::rustls::{AlertDescription, Error};

/// Returns whether one side rejected the other: a bad certificate, a wrong name, no common version. All other errors
/// may be transient.
#[cfg(feature = "rustls")]
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

/// Returns `false`: without TLS there are no TLS errors.
#[cfg(not(feature = "rustls"))]
pub(super) const fn is_permanent(_: &io::Error) -> bool {
    false
}
