use reqwest::Error;
use stagger::{Outcome, classify};

use crate::request::progress::RequestProgress;

/// Classifies an error that the retrier has no rule for.
pub(super) fn outcome(error: &Error) -> Outcome {
    if error.is_builder() || error.is_redirect() || error.is_upgrade() {
        Outcome::Permanent
    } else {
        classify::chain(error).unwrap_or(Outcome::TRANSIENT)
    }
}

/// Returns how far the request got.
pub(super) fn request_progress(error: &Error) -> RequestProgress {
    if error.is_connect() { RequestProgress::NotSent } else { RequestProgress::MaybeProcessed }
}
