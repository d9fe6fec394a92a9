use mongodb::error::{Error, ErrorKind, WriteFailure};
use stagger::{Outcome, classify};

/// By the labels and the code; without either, the server could not be reached or selected.
pub(crate) fn mongodb(error: &Error) -> Outcome {
    let code = match &*error.kind {
        ErrorKind::Command(error) => Some(error.code),
        ErrorKind::Write(WriteFailure::WriteConcernError(error)) => Some(error.code),
        _ => None,
    };
    match (classify::mongodb(error.labels(), code), &*error.kind) {
        (Outcome::Permanent, ErrorKind::Io(error)) => classify::io(error),
        (Outcome::Permanent, ErrorKind::ServerSelection { .. } | ErrorKind::ConnectionPoolCleared { .. }) => {
            Outcome::TRANSIENT
        }
        (outcome, _) => outcome,
    }
}
