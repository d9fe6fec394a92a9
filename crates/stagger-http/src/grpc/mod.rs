//! gRPC as it is on the wire: headers, trailers and numbers, without any of its libraries.
//!
//! | what gRPC's retries do (proposal A6) | here |
//! |---|---|
//! | a status that comes without a message is retried if its code is among the policy's | the same, by [`Codes`], or by [`classify::grpc`](stagger::classify::grpc) |
//! | once the headers of an answer are here, nothing is retried | the same: [`outcome`] is `None` |
//! | a pushback replaces the delay, to the millisecond, and has no limit | it is a floor, or everyone who was told the same would come back together; `hint=exact` does as gRPC does; one that is longer than the policy's `max-hint` ends the call |
//! | after a pushback the delays begin again with the first | they go on: a server that is busy has not become less so |
//! | a pushback that is negative, no number, or there twice: no retry | the same |
//! | a request that is longer than the buffer for it is not retried | the same |
//! | a request that the server has not seen, or not handled, is repeated | once, at once |
//! | the deadline of a call spans all of its attempts | the same; a retry that would come too late is not waited for |
//! | each retry carries `grpc-previous-rpc-attempts` | the same |
//! | a failure takes a token, a success gives some back | the same, with [`Throttle`](stagger::budget::Throttle); whose headers are here counts as a success |

mod codes;
mod response;
mod timeout;

pub use codes::Codes;
pub use response::{PREVIOUS_ATTEMPTS, PUSHBACK, code_from_http_status, is_grpc, outcome, outcome_with, pushback};
#[cfg(feature = "tower")]
pub(crate) use timeout::timeout_of;
pub use timeout::{TIMEOUT, format_timeout, parse_timeout};
