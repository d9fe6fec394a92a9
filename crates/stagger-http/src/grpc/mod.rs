//! The parts of the gRPC protocol that concern retries: headers, trailers and status codes. Needs no gRPC library.
//!
//! | retries in gRPC (proposal A6) | here |
//! |---|---|
//! | a status without a message is retried if the policy lists its code | same, by [`Codes`] or [`classify::grpc`](stagger::classify::grpc) |
//! | once response headers have been received, the call is not retried | same: [`outcome`] returns `None` |
//! | a pushback replaces the delay, to the millisecond, without a limit | it is a lower bound, so that clients with the same pushback do not come back together; `hint=exact` does what gRPC does. A pushback longer than the policy's `max-hint` ends the call |
//! | after a pushback, the delays restart with the first one | they continue, since the server is no less busy |
//! | a negative, malformed or repeated pushback: no retry | same |
//! | a request that exceeds the buffer is not retried | same |
//! | a request that the server has not seen or not processed is retried transparently | once, immediately |
//! | the deadline of a call spans all attempts | same; a retry that would come after the deadline is not waited for |
//! | each retry carries `grpc-previous-rpc-attempts` | same |
//! | a failure takes a token, a success returns a fraction of one | same, with [`Throttle`](stagger::budget::Throttle); a response whose headers have been received counts as a success |

mod codes;
mod response;
mod timeout;
#[cfg(feature = "tonic")]
mod tonic_status;

pub use codes::Codes;
pub use response::{PREVIOUS_ATTEMPTS, PUSHBACK, code_from_http_status, is_grpc, outcome, outcome_with, pushback};
#[cfg(any(feature = "tower", feature = "reqwest-middleware"))]
pub(crate) use timeout::timeout_of;
pub use timeout::{TIMEOUT, format_timeout, parse_timeout};
#[cfg(feature = "tonic")]
#[cfg_attr(docsrs, doc(cfg(feature = "tonic")))]
pub use tonic_status::tonic;
