//! HTTP retries that don't stampede: only what is safe to retry, honoring `Retry-After`, holding no connection during
//! backoff.
//!
//! | for | use | feature |
//! |---|---|---|
//! | clients on tower: hyper, axum, tonic | `tower::RetryLayer` | `tower`, enabled by default |
//! | servers on tower | `tower::AdmissionLayer`, `tower::CallerContextLayer` | `tower`, enabled by default |
//! | reqwest | `reqwest::RetryMiddleware` | `reqwest-middleware` |
//! | server-sent events, over any of these clients | `sse::Client` | `sse` |
//! | the AWS SDK | `aws::Retries` | `aws` |
//! | object_store's cloud stores | `object_store::RetryConnector` | `object-store` |
//! | opendal's HTTP services | `opendal::HttpRetryLayer` | `opendal` |
//! | other clients, without an integration | examples in `recipes` | `tower`, enabled by default |
//! | bodies that break, over any client | [`resume`] | |
//! | gRPC headers and status codes | [`grpc`] | |
//! | spans of attempts, for traces | `tower::RetryLayer`, `reqwest::RetryMiddleware` | `tracing` |
//! | gRPC service configs | `service_config` | `service-config` |
//!
//! ```
//! # #[cfg(all(feature = "tower", feature = "tokio"))] {
//! use bytes::Bytes;
//! use http::{Request, Response};
//! use http_body_util::Full;
//! use stagger::{Policy, Retrier, policy};
//! use stagger_http::tower::RetryLayer;
//! use tower::{ServiceBuilder, ServiceExt as _, service_fn};
//!
//! const POLICY: Policy = policy!(exponential(ms(1), ms(10)).max_attempts(4));
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! # let calls = std::sync::atomic::AtomicU32::new(0);
//! # let calls = &calls;
//! # let service = service_fn(move |_: Request<_>| async move {
//! #     let status = if calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed) < 2 { 503 } else { 200 };
//! #     Ok::<_, std::io::Error>(Response::builder().status(status).body(Full::<Bytes>::default()).unwrap())
//! # });
//! let client = ServiceBuilder::new().layer(RetryLayer::new(Retrier::new(POLICY))).service(service);
//! let response = client.oneshot(Request::get("/").body(Full::<Bytes>::default()).unwrap()).await.unwrap();
//! assert_eq!(response.status(), 200); // after two answers 503
//! # });
//! # }
//! ```
//!
//! The integrations are built from parts that work on their own: [`hint`] parses when a server wants the next attempt,
//! [`status`] classifies a status code, [`Idempotency`] and [`RequestProgress`] decide whether a request is safe to
//! retry, and [`admission`] admits and rejects requests on a server. The policy, budget, circuit breaker, rules and
//! listeners are those of a [`Retrier`](stagger::Retrier).
//!
//! # Guards
//!
//! A client has the guards of its retrier, such as a budget and a breaker, once for each origin; `guards_by` of the
//! clients chooses another `key`.
//!
//! A hint such as `Retry-After` delays the call that got it, and no other: most limits are those of a route, a method
//! or a customer. If the retrier was given a [`QuietPeriod`](stagger::guard::QuietPeriod), a `429` or `503` with a hint
//! holds all calls with the same key until the time is over. One request then goes first, and the others follow at the
//! rate that was admitted before. Calls wait within their deadline and `max_elapsed`; otherwise they are rejected at
//! once, with the remaining time. So let the key be what the server limits: `guards_by(key::credentials)` if it is a
//! customer.
//!
//! # Dependencies before 1.0
//!
//! The public interface contains types and traits of these. Each new minor version of one is incompatible with the one
//! before, so a release of this crate that moves to it is incompatible, too: it raises the minor version, from 1.0 on
//! the major version.
//!
//! | dependency | feature | in the interface |
//! |---|---|---|
//! | futures-core 0.3 | `sse` | `Stream` is implemented |
//! | object_store 0.14 | `object-store` | `ClientOptions`, `HttpClient`, `HttpConnector` is implemented |
//! | opendal-core 0.59 | `opendal` | `Layer` is implemented |
//! | reqwest 0.13 | `reqwest-middleware` | `Request`, `Response`, `redirect::Policy` |
//! | reqwest-middleware 0.5 | `reqwest-middleware` | `ClientWithMiddleware`, `Middleware` is implemented |
//! | tonic 0.14 | `tonic` | `Status` |
//! | tower-layer 0.3 | `tower` | `Layer` is implemented |
//! | tower-service 0.3 | `tower` | `Service` is implemented |

#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod admission;
#[cfg(feature = "aws")]
#[cfg_attr(docsrs, doc(cfg(feature = "aws")))]
pub mod aws;
#[cfg(any(feature = "tower", feature = "reqwest-middleware"))]
mod client;
pub mod grpc;
pub mod header;
pub mod hint;
#[cfg(feature = "hyper")]
mod hyper;
#[cfg(any(feature = "tower", feature = "reqwest-middleware"))]
#[cfg_attr(docsrs, doc(cfg(any(feature = "tower", feature = "reqwest-middleware"))))]
pub mod key;
#[cfg(feature = "object-store")]
#[cfg_attr(docsrs, doc(cfg(feature = "object-store")))]
pub mod object_store;
#[cfg(feature = "opendal")]
#[cfg_attr(docsrs, doc(cfg(feature = "opendal")))]
pub mod opendal;
#[cfg(feature = "tower")]
#[cfg_attr(docsrs, doc(cfg(feature = "tower")))]
pub mod recipes;
mod request;
#[cfg(feature = "reqwest-middleware")]
#[cfg_attr(docsrs, doc(cfg(feature = "reqwest-middleware")))]
pub mod reqwest;
pub mod resume;
#[cfg(feature = "service-config")]
#[cfg_attr(docsrs, doc(cfg(feature = "service-config")))]
pub mod service_config;
#[cfg(feature = "sse")]
#[cfg_attr(docsrs, doc(cfg(feature = "sse")))]
pub mod sse;
pub mod status;
#[cfg(any(feature = "object-store", feature = "opendal"))]
mod storage;
#[cfg(feature = "tonic")]
mod tonic_status;
#[cfg(feature = "tower")]
#[cfg_attr(docsrs, doc(cfg(feature = "tower")))]
pub mod tower;

#[cfg(any(feature = "tower", feature = "reqwest-middleware"))]
pub use client::{Deadline, StatusFailure, attempt_number, retry_depth};
pub use request::{Idempotency, RequestProgress};
