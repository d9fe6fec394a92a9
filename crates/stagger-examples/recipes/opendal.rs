use opendal::{Error, ErrorKind};
use stagger::Outcome;

/// By what opendal says itself: it knows the services, and marks what may pass.
pub(crate) fn opendal(error: &Error) -> Outcome {
    match error.kind() {
        ErrorKind::RateLimited => Outcome::throttled(None),
        _ if error.is_temporary() => Outcome::TRANSIENT,
        _ => Outcome::Permanent,
    }
}
