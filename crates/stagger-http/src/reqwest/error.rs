use reqwest::Error;
use stagger::{Outcome, classify};

use crate::RequestProgress;

/// What an error means, where the retrier has no rule for it.
pub(super) fn outcome(error: &Error) -> Outcome {
    if error.is_builder() || error.is_redirect() || error.is_upgrade() {
        Outcome::Permanent
    } else {
        classify::chain(error).unwrap_or(Outcome::TRANSIENT)
    }
}

/// How far the request has come.
pub(super) fn request_progress(error: &Error) -> RequestProgress {
    if error.is_connect() { RequestProgress::NotSent } else { RequestProgress::MaybeProcessed }
}
