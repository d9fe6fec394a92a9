//! HTTP retries that don't stampede: what is safe to repeat, when the server said, and nothing held while waiting.
//!
//! | for | there is | feature |
//! |---|---|---|
//! | clients on tower: hyper, axum, tonic | `tower::RetryLayer` | `tower`, by default |
//! | servers on tower | `tower::AdmissionLayer`, `tower::CallerContextLayer` | `tower`, by default |
//! | reqwest | `reqwest::RetryMiddleware`, a middleware in three lines | `reqwest-middleware` |
//! | clients that need neither | `recipes` | |
//! | gRPC on the wire | [`grpc`]; its service config, in `service_config` | `service-config` |
//!
//! They are made of parts that stand alone: what a server says about coming back is read by [`hint`], what a status means
//! by [`status`], and whether a request may be sent twice by [`Idempotency`]; a server lets in and refuses by [`admission`]. The
//! policy, budget, breaker, rules and listeners are those of a [`Retrier`](stagger::Retrier).

pub mod admission;
#[cfg(any(feature = "tower", feature = "reqwest-middleware"))]
mod client;
#[cfg(any(feature = "tower", feature = "reqwest-middleware"))]
mod extensions;
pub mod grpc;
pub mod header;
pub mod hint;
mod idempotency;
mod number;
#[cfg(feature = "tower")]
#[cfg_attr(docsrs, doc(cfg(feature = "tower")))]
pub mod recipes;
mod request_progress;
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
pub use extensions::{Deadline, attempt_number};
pub use idempotency::Idempotency;
pub use request_progress::RequestProgress;
