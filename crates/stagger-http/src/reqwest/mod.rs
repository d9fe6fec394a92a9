//! A middleware for [reqwest], by way of [reqwest-middleware](reqwest_middleware).
//!
//! ```
//! use reqwest_middleware::ClientBuilder;
//! use stagger::{Policy, Retrier, policy};
//! use stagger_http::reqwest::Retry;
//!
//! const POLICY: Policy = policy!(exponential(ms(100), secs(10)).max_attempts(4));
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! # runtime.block_on(async {
//! let client = ClientBuilder::new(reqwest::Client::new()).with(Retry::new(Retrier::new(POLICY))).build();
//! # let server = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! # let url = format!("http://{}", server.local_addr()?);
//! # tokio::spawn(axum::serve(server, axum::Router::new().route("/", axum::routing::get(|| async { "page" }))).into_future());
//! assert_eq!(client.get(url).send().await?.text().await?, "page");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What comes back
//!
//! The last answer as it came, whatever its status; or the last error as it came: a [`reqwest::Error`] in
//! [`Error::Reqwest`](reqwest_middleware::Error::Reqwest), so that `is_connect()` and `is_timeout()` hold. If there is
//! neither, because the circuit breaker is open or the attempt took longer than the retrier's timeout, it is
//! [`Error::Middleware`](reqwest_middleware::Error::Middleware) with a [`Rejected`](stagger::Rejected) inside.
//!
//! # What is retried
//!
//! - What must not be repeated is not: see [`Repeat`](crate::Repeat). A connection that could not be made
//!   (`is_connect()`) has carried nothing, so any request may follow on another.
//! - A request whose body is a stream is sent once. Other bodies are shared and not copied.
//! - What a status means: see [`status`](crate::status); when the server wants to be called again: see
//!   [`advice`](crate::advice). An appointment that it gives is kept, and its ticket brought along.
//! - What an error means: what the retrier's rule for `reqwest::Error` says. Without one, requests that cannot be built and
//!   redirects that lead nowhere are permanent, I/O errors go by [`classify::io`](stagger::classify::io), and everything
//!   else is transient. For errors of other middleware the rule is that for `reqwest_middleware::Error`.
//! - Calls that are made inside an attempt stand down: see [`stagger::scope`].
//!
//! A failed answer is read to its end if that is near, else dropped, before the sleep: a backoff holds no connection.
//!
//! # What is told
//!
//! From the second attempt on, and in any that has a limit of time, middleware further in finds the
//! [`Attempt`](stagger::Attempt) among the extensions, which are the caller's, and the same in every attempt. A [`Deadline`](crate::Deadline) among them, on tokio's clock, limits the call:
//! `request.with_extension(Deadline(..))`. Listeners are told a `reqwest::Error`, a `reqwest_middleware::Error` of other
//! middleware, or, of an answer, a [`StatusFailure`](crate::StatusFailure).
//!
//! Without the middleware: see [`recipes`](crate::recipes).

mod course;
mod error;
mod retry;

pub use retry::Retry;
