use fred::error::{Error, ErrorKind};
use stagger::{FailureKind, Outcome, classify};

/// By the kind of an error of the client, and by the reply of the server otherwise.
pub(crate) fn fred(error: &Error) -> Outcome {
    match error.kind() {
        ErrorKind::IO | ErrorKind::Timeout | ErrorKind::Sentinel | ErrorKind::Routing => Outcome::TRANSIENT,
        // The client has too many commands in flight.
        ErrorKind::Backpressure => Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None },
        _ => classify::redis(error.details()),
    }
}
