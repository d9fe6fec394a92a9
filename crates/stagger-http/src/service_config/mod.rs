//! gRPC's service config, as far as it is about retries: read into policies, and written from them.
//!
//! A gRPC channel retries by itself, if it is told so by the service config: in its options, or by the name resolver. It
//! knows more than any layer above it (which streams the server has never seen, which answers have begun), so let it, where
//! the language's library can. tonic cannot; what the config says is then for a
//! `RetryLayer` (feature `tower`).
//!
//! ```
//! use core::time::Duration;
//! use stagger_http::grpc::Codes;
//! use stagger_http::service_config::{AttemptPolicy, ServiceConfig};
//!
//! let config: ServiceConfig = r#"{
//!     "methodConfig": [{
//!         "name": [{ "service": "shop.Stock", "method": "Count" }],
//!         "retryPolicy": {
//!             "maxAttempts": 4,
//!             "initialBackoff": "0.1s",
//!             "maxBackoff": "1s",
//!             "backoffMultiplier": 2,
//!             "retryableStatusCodes": ["UNAVAILABLE"]
//!         }
//!     }],
//!     "retryThrottling": { "maxTokens": 10, "tokenRatio": 0.1 }
//! }"#.parse()?;
//!
//! let Some(AttemptPolicy::Retry(retries)) = config.method_config("/shop.Stock/Count").map(|method| method.attempts()) else {
//!     panic!("it is retried")
//! };
//! assert_eq!(retries.codes(), Codes::UNAVAILABLE);
//! let bounds = (Duration::from_millis(80), Duration::from_millis(120));
//! assert_eq!(retries.policy().bounds(1), Some(bounds));
//!
//! // For all methods together: a server's retries come from one allowance.
//! let budget = config.throttling().map(|throttling| throttling.to_budget());
//! # let _ = budget;
//! # Ok::<(), stagger_http::service_config::ServiceConfigError>(())
//! ```
//!
//! What is not about retries is not read, and so not written again.
//!
//! Source: gRPC proposal A6 in its form of August 2024, and the `ServiceConfig` message. Differs from it in: a
//! `backoffMultiplier` below 1 is refused, because no [`Policy`](stagger::Policy) has delays that shrink.

mod config;
mod duration;
mod error;
mod hedging;
mod read;
mod retries;
mod throttling;
mod unmapped;
mod wire;

pub use config::{AttemptPolicy, MethodConfig, MethodName, ServiceConfig};
pub use error::ServiceConfigError;
pub use hedging::Hedging;
pub use retries::MethodRetries;
pub use throttling::RetryThrottling;
pub use unmapped::Unmapped;

/// More attempts than these are as many as these: every gRPC library's limit unless it is told otherwise.
const MAX_ATTEMPTS: u32 = 5;
