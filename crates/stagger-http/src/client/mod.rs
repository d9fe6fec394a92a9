//! The parts that the client integrations share: classifying responses, deciding whether a request is safe to retry,
//! and the headers that an attempt sends.

mod attempt_span;
mod baggage;
mod drain;
mod origin;
mod request;
mod settings;

pub(crate) use attempt_span::AttemptSpan;
pub use baggage::retry_depth;
pub(crate) use drain::{BodyDrain, poll_begin};
#[cfg(feature = "reqwest-middleware")]
pub(crate) use origin::Origin;
#[cfg(any(feature = "tower", test))]
pub(crate) use origin::OriginOf;
#[cfg(feature = "reqwest-middleware")]
pub(crate) use request::RequestHead;
pub(crate) use request::{BodyReplay, Hops, RequestTracker, deadline, insert_attempt, is_success, outcome_of_error};
pub use request::{Deadline, StatusFailure, attempt_number};
#[cfg(any(feature = "object-store", feature = "opendal"))]
pub(crate) use settings::ConditionalWrites;
#[cfg(feature = "tower")]
pub(crate) use settings::{CredentialFuture, KeyFn};
pub(crate) use settings::{GuardKey, HeaderMode, RetrySettings, poll_refresh, retry_options};
