//! Examples for clients that need no integration.
//!
//! # reqwest, without middleware
//!
//! The attempt classifies its response, and `stagger` does the rest. The caller gets reqwest's own error.
//!
//! ```
//! use std::time::{Duration, SystemTime};
//!
//! use reqwest::{Client, Response};
//! use stagger::{Marked, Policy, policy};
//! use stagger_http::hint::server_hint;
//! use stagger_http::Idempotency;
//! use stagger_http::status::outcome;
//!
//! const POLICY: Policy = policy!(exponential(ms(10), secs(10)).max_attempts(4));
//!
//! /// One attempt of a GET, which is idempotent.
//! async fn get(client: &Client, url: &str) -> Result<Response, Marked<reqwest::Error>> {
//!     let response = client.get(url).send().await?;
//!     let hint = server_hint(response.headers(), SystemTime::now);
//!     let outcome = outcome(response.status(), Idempotency::ByMethod, hint);
//!     response.error_for_status().map_err(|error| Marked::with_outcome(error, outcome))
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # use axum::{Router, http::StatusCode, routing};
//! # let calls = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
//! # let seen = calls.clone();
//! # let page = routing::get(async move || match seen.fetch_add(1, std::sync::atomic::Ordering::Relaxed) {
//! #     0 | 1 => (StatusCode::SERVICE_UNAVAILABLE, "busy"),
//! #     _ => (StatusCode::OK, "a page"),
//! # });
//! # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! # let url = &format!("http://{}", listener.local_addr()?);
//! # tokio::spawn(axum::serve(listener, Router::new().route("/", page)).into_future());
//! // reqwest has no timeout by default.
//! let client = Client::builder().timeout(Duration::from_secs(5)).build()?;
//! let page = stagger::retry(&POLICY, || get(&client, url)).await?;
//! assert_eq!(page.text().await?, "a page");
//! # assert_eq!(calls.load(std::sync::atomic::Ordering::Relaxed), 3);
//!
//! let nowhere = format!("{url}/nowhere");
//! let error = stagger::retry(&POLICY, || get(&client, &nowhere)).await.unwrap_err();
//! assert_eq!(error.status(), Some(reqwest::StatusCode::NOT_FOUND));
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?; Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! With a budget, a circuit breaker or listeners, use a [`Retrier`](stagger::Retrier): `api.run(..)`. A POST that may
//! have been processed must not be retried unless it carries an `Idempotency-Key`. A POST that was never sent may be.
//! An error proves that only if the client follows no redirects, as here: otherwise the connection may have failed to a
//! server that the POST was redirected to, after it had been processed.
//!
//! ```
//! use std::time::Duration;
//!
//! use reqwest::{Client, Response, redirect};
//! use stagger::{Marked, Policy, Retrier, policy};
//! use stagger_http::{Idempotency, RequestProgress};
//!
//! const POLICY: Policy = policy!(exponential(ms(1), ms(5)).max_attempts(4));
//!
//! async fn pay(client: &Client, url: &str) -> Result<Response, Marked<reqwest::Error>> {
//!     let request = client.post(url).body("pay").build()?;
//!     let idempotency = Idempotency::from_request(request.method(), request.headers());
//!     client.execute(request).await.map_err(|error| {
//!         let progress = match error.is_connect() {
//!             true => RequestProgress::NotSent,
//!             false => RequestProgress::MaybeProcessed,
//!         };
//!         if idempotency.allows_retry(progress) { Marked::from(error) } else { Marked::unsafe_to_retry(error) }
//!     })
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # let url = &{
//! #     let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! #     format!("http://{}", gone.local_addr()?)
//! # };
//! let client = Client::builder().redirect(redirect::Policy::none()).timeout(Duration::from_secs(5)).build()?;
//! let api = Retrier::new(POLICY);
//! // No server listens at this address.
//! let error = api.run(|| pay(&client, url)).await.unwrap_err();
//! assert_eq!(error.attempts(), 4);
//! assert!(error.error().is_some_and(reqwest::Error::is_connect));
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?; Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # hyper-util's client
//!
//! The client is a tower service: put a [`RetryLayer`](crate::tower::RetryLayer) on top of it, with the feature
//! `hyper`, by which the layer knows the client's errors: what was never sent, and what was certainly not processed.
//! The client retries requests that a pooled connection cancels before anything is written; the layer does that, too,
//! so it is switched off.
//!
//! ```
//! use std::time::Duration;
//!
//! use bytes::Bytes;
//! use http::Request;
//! use http_body_util::{BodyExt as _, Full};
//! use hyper_util::client::legacy::Client;
//! use hyper_util::rt::TokioExecutor;
//! use stagger::{Policy, Retrier, policy};
//! use stagger_http::tower::RetryLayer;
//! use tower::{ServiceBuilder, ServiceExt as _};
//!
//! const POLICY: Policy = policy!(exponential(ms(10), secs(10)).max_attempts(4));
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # let page = axum::routing::get(async || "a page");
//! # let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! # let url = format!("http://{}", listener.local_addr()?);
//! # tokio::spawn(axum::serve(listener, axum::Router::new().route("/", page)).into_future());
//! // The client has no timeout: this is that of each attempt.
//! let retries = RetryLayer::new(Retrier::new(POLICY).timeout(Duration::from_secs(5)));
//! let network = Client::builder(TokioExecutor::new()).retry_canceled_requests(false).build_http();
//! let client = ServiceBuilder::new().layer(retries).service(network);
//!
//! let response = client.oneshot(Request::get(url).body(Full::<Bytes>::default())?).await?;
//! assert_eq!(response.into_body().collect().await?.to_bytes(), "a page");
//! # Ok::<(), Box<dyn std::error::Error>>(()) })?; Ok::<(), Box<dyn std::error::Error>>(())
//! ```
