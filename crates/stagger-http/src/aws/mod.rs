//! Retries for clients of the AWS SDK, and for other clients that smithy-rs generates.
//!
//! [`Retries`] brings a [`Retrier`](stagger::Retrier) into the SDK's own retry loop: the policy, its delays and limits,
//! budget, breaker, listeners, and server hints are the retrier's. The SDK still classifies the errors, since it has
//! the model of each service; and it signs and sends each attempt.
//!
//! ```
//! use stagger::{Policy, Retrier, policy};
//! use stagger_http::aws::Retries;
//! # use aws_smithy_runtime_api::client::{interceptors::Intercept, retries::classifiers::ClassifyRetry};
//! # struct Builder;
//! # impl Builder {
//! #     fn interceptor(self, _: impl Intercept + 'static) -> Self { self }
//! #     fn retry_classifier(self, _: impl ClassifyRetry + 'static) -> Self { self }
//! # }
//!
//! const POLICY: Policy = policy!(exponential(ms(100), secs(20)).max_attempts(5));
//!
//! let retries = Retries::new(Retrier::new(POLICY));
//! # let builder = Builder;
//! // The builder of a service's configuration: `aws_sdk_s3::config::Builder::from(&shared)`.
//! let builder = builder.interceptor(retries.clone()).retry_classifier(retries);
//! ```
//!
//! Both steps are needed. Without the classifier, every call fails at once and says so; without the interceptor, the
//! classifier has no opinion.
//!
//! | what | whose |
//! |---|---|
//! | which errors are retryable | the SDK's classifiers and yours; without an opinion, [`status`](crate::status) |
//! | when, and how often | the retrier: policy, [server hints](crate::hint), controls |
//! | how much | the retrier's guards, such as a budget, one for each service; and the SDK's token bucket |
//! | how long | the client's `TimeoutConfig`; no attempt begins after its `operation_timeout` |
//!
//! Nothing can wait here but the SDK, for the delay of a retry. So a guard that would let an attempt wait, such as a
//! quiet period in its pause, rejects it.
//!
//! The SDK's `RetryConfig` has no effect, not even `disabled()`, and neither have the retrier's `timeout` and initial
//! spread.
//!
//! The token bucket is that of the client's retry partition: 500 tokens, of which a retry takes 5 to 14. To have the
//! retrier's budget alone, set a `RetryPartition::custom` with `TokenBucket::unlimited()`.
//!
//! The SDK has a trait `RetryStrategy`, but no public step to set one: in its clients, `runtime_plugin` is
//! `pub(crate)`.
//!
//! To call an operation through a [`Retrier`](stagger::Retrier) instead, with the SDK's retries disabled, classify its
//! errors with [`outcome`].

mod call;
mod error;
mod retries;
mod timer;

pub use error::outcome;
pub use retries::Retries;
