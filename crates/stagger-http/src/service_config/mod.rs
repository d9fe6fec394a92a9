//! gRPC service configs: parses their retry settings into policies, and writes policies as service configs.
//!
//! A gRPC channel retries by itself if its service config, from the channel options or the name resolver, enables it.
//! It has more information than any layer above it: which streams the server has never seen, and which responses have
//! begun. Use the channel's retries where the language's library supports them. tonic does not; apply the config with a
//! `RetryLayer` (feature `tower`) there.
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
//! let count = config.method_config("/shop.Stock/Count").expect("it is configured");
//! let AttemptPolicy::Retry(retries) = count.attempt_policy() else {
//!     panic!("it has a retryPolicy")
//! };
//! assert_eq!(retries.retryable_codes(), Codes::UNAVAILABLE);
//! let bounds = (Duration::from_millis(80), Duration::from_millis(120));
//! assert_eq!(retries.policy().bounds(1), Some(bounds));
//!
//! // One budget for all methods: the retries of a server share an allowance.
//! let budget = config.throttling().map(|throttling| throttling.to_budget());
//! # let _ = budget;
//! # Ok::<(), stagger_http::service_config::ServiceConfigError>(())
//! ```
//!
//! Fields that do not concern retries are ignored, and so not written again.
//!
//! Source: gRPC proposal A6 as of August 2024, and the `ServiceConfig` message. Differs from it in: a
//! `backoffMultiplier` below 1 is rejected, because the delays of a [`Policy`](stagger::Policy) cannot shrink. What a
//! config states although a channel refuses it is in [`fields`].

mod config;
pub mod fields;
mod read;
mod retries;
mod text;
mod write;

pub use config::{
    AttemptPolicy, Hedging, MAX_ATTEMPTS, MethodConfig, MethodName, RetryThrottling, ServiceConfig, ServiceConfigError,
};
pub use retries::{MethodRetries, Unmapped};
