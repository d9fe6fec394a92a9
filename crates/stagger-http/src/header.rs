use http::{Extensions, HeaderName};
use stagger::{Attempt, Instant};

/// The header that carries the number of the attempt, from 1. Whoever sends it retries.
pub const ATTEMPT: HeaderName = HeaderName::from_static("x-retry-attempt");

/// The header that carries how long the caller still waits, in whole milliseconds.
pub const TIMEOUT: HeaderName = HeaderName::from_static("stagger-timeout-ms");

/// When the caller of a request has given up, on the clock of whoever has put it among the request's extensions.
///
/// Among the extensions of an outgoing request it limits that: no retry starts then or later, no attempt goes on, and what
/// is left is told to the next hop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Deadline(pub Instant);

/// Which attempt a request is, from 1, by its extensions: for whatever stands under a layer or middleware that retries.
///
/// These put an [`Attempt`] there from the second on, and in any that has a limit of time. Of a first one there would be
/// nothing to tell, and a request without extensions stays one, which saves it three allocations.
///
/// ```
/// use http::Extensions;
/// use stagger_http::attempt_number;
///
/// assert_eq!(attempt_number(&Extensions::new()), 1);
/// ```
#[must_use]
pub fn attempt_number(extensions: &Extensions) -> u32 {
    extensions.get::<Attempt>().map_or(1, |attempt| attempt.number)
}
