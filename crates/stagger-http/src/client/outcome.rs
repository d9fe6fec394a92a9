use core::error::Error;

use stagger::Outcome;

use crate::request::progress::RequestProgress;

/// Returns the outcome of an attempt without a response.
///
/// `explicit` is that of the retrier's rules, which decide except that what was not processed need not wait; `link` is the
/// error, if it can be examined; `built_in` classifies it otherwise.
pub(crate) fn outcome_of_error(
    explicit: Option<Outcome>,
    progress: RequestProgress,
    link: Option<&(dyn Error + 'static)>,
    built_in: impl FnOnce() -> Outcome,
) -> Outcome {
    let told = explicit.filter(|outcome| *outcome != Outcome::TRANSIENT).or_else(|| link.and_then(by_protocol));
    match (told, progress) {
        (Some(outcome), _) => outcome,
        (None, RequestProgress::NotProcessed) => Outcome::NotProcessed,
        (None, _) => explicit.unwrap_or_else(built_in),
    }
}

#[cfg(feature = "hyper")]
use crate::request::hyper::outcome as by_protocol;

/// No protocol's errors are known.
#[cfg(not(feature = "hyper"))]
const fn by_protocol(_: &(dyn Error + 'static)) -> Option<Outcome> {
    None
}
