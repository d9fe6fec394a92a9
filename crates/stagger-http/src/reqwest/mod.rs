//! A retry middleware for [reqwest], built on [reqwest-middleware](reqwest_middleware).
//!
//! ```
//! use std::time::Duration;
//!
//! use reqwest::Client;
//! use stagger::{Policy, Retrier, policy};
//! use stagger_http::reqwest::{RetryMiddleware, within_origin};
//!
//! const POLICY: Policy = policy!(exponential(ms(100), secs(10)).max_attempts(4));
//!
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
//! # runtime.block_on(async {
//! // reqwest has no timeout by default.
//! let builder = Client::builder().timeout(Duration::from_secs(5));
//! let client = RetryMiddleware::new(Retrier::new(POLICY)).build_client(builder, within_origin())?;
//! # let server = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
//! # let url = format!("http://{}", server.local_addr()?);
//! # let router = axum::Router::new().route("/", axum::routing::get(|| async { "page" }));
//! # tokio::spawn(axum::serve(server, router).into_future());
//! assert_eq!(client.get(url).send().await?.text().await?, "page");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What is returned
//!
//! The last response unchanged, whatever its status, or the last error unchanged: a [`reqwest::Error`] in
//! [`Error::Reqwest`](reqwest_middleware::Error::Reqwest), so that `is_connect()` and `is_timeout()` work. If there is
//! neither, because the circuit breaker is open, the deadline has passed or the last attempt timed out, the error is an
//! [`Error::Middleware`](reqwest_middleware::Error::Middleware) that contains a [`Rejected`](stagger::Rejected).
//!
//! # What is retried
//!
//! - A request that is not safe to retry is not retried: see [`Idempotency`](crate::Idempotency). If the connection
//!   could not be established (`is_connect()`) and reqwest has followed no redirect, nothing was sent, and any request
//!   is retried.
//! - A request with a streaming body is sent once. Other bodies are shared between attempts and not copied.
//! - Statuses are classified by [`status`](crate::status), and server hints honored: see [`hint`](crate::hint). After a
//!   reservation, the retry comes at the reserved time, with the reservation's token. If reqwest has followed no
//!   redirect, this holds whatever the request: admission control rejects a request before anything reads it. If
//!   reqwest has followed a redirect to another origin, which gave the reservation, the retry goes without the token.
//!   A hint of that origin delays the call, and is no hint for the guards, which are those of the origin that the
//!   request was made to.
//! - Errors are classified by the retrier's rules for `reqwest::Error` and for what it contains. Without a rule,
//!   requests that cannot be built and redirects that cannot be followed are permanent, I/O errors are classified by
//!   [`classify::io`](stagger::classify::io), and all other errors are transient. For errors of other middleware the
//!   rules are those for `reqwest_middleware::Error` and for what it contains.
//! - Nested calls, made inside an attempt, do not retry: see [`stagger::scope`].
//!
//! # Redirects
//!
//! reqwest follows redirects within an attempt. A POST that a server has processed and answered with a redirect may
//! then fail at another server: the connection is refused, or the request that followed the redirect is rejected with a
//! reservation, or denied. That says nothing about the POST. So such a failure proves that nothing was processed only
//! if reqwest has followed no redirect, and the middleware must know that:
//! [`build_client`](RetryMiddleware::build_client) sees to it, and [`redirects`](RetryMiddleware::redirects) tells it
//! about a client that is built elsewhere. Of other clients, the middleware retries after these failures only what is
//! idempotent.
//!
//! reqwest removes `Authorization` and `Cookie` when it follows a redirect to another host, but no other header: not
//! `X-Api-Key`, and not the reservation of a retry. With [`within_origin`], it follows none to another origin.
//!
//! The body of a failed response is read to its end if it is short and ends soon, and dropped otherwise, before the
//! backoff: a call in backoff holds no connection.
//!
//! # Extensions and events
//!
//! From the second attempt on, and in any attempt with a time limit, inner middleware finds the
//! [`Attempt`](stagger::Attempt) in the extensions, which belong to the caller and are shared by all attempts. A
//! [`Deadline`](crate::Deadline) in them, on tokio's clock, limits the call:
//! `request.with_extension(Deadline::within(Duration::from_secs(2)))`.
//!
//! A listener sees no user information, query and fragment of the URL in a `reqwest::Error`, since tokens are often in
//! them. The error that is returned still has them: call [`without_url`](reqwest::Error::without_url) before you log
//! it.
//!
//! The error in a listener's event is a `reqwest::Error`, a `reqwest_middleware::Error` of other middleware, or, for a
//! response, a [`StatusFailure`](crate::StatusFailure).
//!
//! To use reqwest without the middleware, see [`recipes`](crate::recipes).

mod call;
pub(crate) mod error;
mod middleware;

pub use error::{Redirects, within_origin};
pub use middleware::RetryMiddleware;
