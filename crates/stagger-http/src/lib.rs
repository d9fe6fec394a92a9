//! HTTP retries that don't stampede: what is safe to repeat, when the server said, and nothing held while waiting.
//!
//! What a server says about coming back is read by [`advice`], what a status means by [`status`], and whether a request
//! may be sent twice by [`Repeat`].

pub mod advice;
#[cfg(any(feature = "tower", feature = "reqwest-middleware"))]
mod client;
pub mod grpc;
#[cfg(any(feature = "tower", feature = "reqwest-middleware"))]
mod hop;
mod number;
#[cfg(feature = "tower")]
#[cfg_attr(docsrs, doc(cfg(feature = "tower")))]
pub mod recipes;
mod repeat;
#[cfg(feature = "reqwest-middleware")]
#[cfg_attr(docsrs, doc(cfg(feature = "reqwest-middleware")))]
pub mod reqwest;
#[cfg(feature = "service-config")]
#[cfg_attr(docsrs, doc(cfg(feature = "service-config")))]
pub mod service_config;
pub mod status;
#[cfg(feature = "tower")]
#[cfg_attr(docsrs, doc(cfg(feature = "tower")))]
pub mod tower;

#[cfg(any(feature = "tower", feature = "reqwest-middleware"))]
pub use client::StatusFailure;
#[cfg(any(feature = "tower", feature = "reqwest-middleware"))]
pub use hop::{ATTEMPT, Deadline, TIMEOUT, attempt_number};
pub use repeat::{IDEMPOTENCY_KEY, Repeat, Sent};
