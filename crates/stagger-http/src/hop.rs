use http::HeaderName;
use stagger::Instant;

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
