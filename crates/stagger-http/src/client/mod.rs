//! The parts that the client integrations share: classifying responses, deciding whether a request is safe to retry, and the
//! headers that an attempt sends.

mod attempt_span;
mod baggage;
mod body_replay;
mod drain;
mod failure;
mod hops;
mod options;
mod origin;
mod outcome;
mod quiet_key;
mod refresh;
mod request;
mod settings;

pub(crate) use attempt_span::AttemptSpan;
pub use baggage::retry_depth;
pub(crate) use body_replay::BodyReplay;
pub(crate) use drain::{BodyDrain, poll_begin};
pub use failure::StatusFailure;
pub(crate) use hops::Hops;
pub(crate) use options::retry_options;
#[cfg(feature = "reqwest-middleware")]
pub(crate) use origin::Origin;
#[cfg(feature = "tower")]
pub(crate) use origin::OriginOf;
pub(crate) use outcome::outcome_of_error;
#[cfg(feature = "reqwest-middleware")]
pub(crate) use quiet_key::HashWriter;
pub(crate) use quiet_key::hash_of;
pub(crate) use refresh::poll_refresh;
#[cfg(feature = "reqwest-middleware")]
pub(crate) use request::RequestHead;
pub(crate) use request::{RequestTracker, deadline, insert_attempt, is_success};
#[cfg(any(feature = "object-store", feature = "opendal"))]
pub(crate) use settings::ConditionalWrites;
#[cfg(feature = "tower")]
pub(crate) use settings::CredentialFuture;
pub(crate) use settings::{HeaderMode, QuietBy, Settings};
