use object_store::Error;
use stagger::{Outcome, classify};

/// By the variant; `Generic` has everything else, so an I/O error inside decides, and without one it may pass.
pub(crate) fn object_store(error: &Error) -> Outcome {
    match error {
        Error::Generic { .. } => classify::chain(error).unwrap_or(Outcome::TRANSIENT),
        _ => Outcome::Permanent,
    }
}
