//! HTTP retries that don't stampede: what is safe to repeat, when the server said, and nothing held while waiting.
//!
//! What a server says about coming back is read by [`advice`], what a status means by [`status`], and whether a request
//! may be sent twice by [`Repeat`].

pub mod advice;
#[cfg(feature = "tower")]
mod client;
pub mod grpc;
#[cfg(feature = "tower")]
mod hop;
mod number;
mod repeat;
#[cfg(feature = "service-config")]
#[cfg_attr(docsrs, doc(cfg(feature = "service-config")))]
pub mod service_config;
pub mod status;
#[cfg(feature = "tower")]
#[cfg_attr(docsrs, doc(cfg(feature = "tower")))]
pub mod tower;

#[cfg(feature = "tower")]
pub use client::StatusFailure;
#[cfg(feature = "tower")]
pub use hop::{ATTEMPT, Deadline, TIMEOUT};
pub use repeat::{IDEMPOTENCY_KEY, Repeat, Sent};
