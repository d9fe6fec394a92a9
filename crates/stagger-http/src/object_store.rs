//! A connector for the cloud stores of the `object_store` crate: S3, Google Cloud Storage, Azure and HTTP.
//!
//! [`RetryConnector`] retries their requests by the rules of the [tower layer](crate::tower): by method, status and
//! server hint, with a budget and a breaker for each origin. Disable the stores' own retries, or both multiply:
//!
//! ```ignore (needs object_store with a store and TLS)
//! let retries = RetryLayer::new(Retrier::new(POLICY));
//! let store = AmazonS3Builder::from_env()
//!     .with_http_connector(RetryConnector::new(ReqwestConnector::default(), retries))
//!     .with_retry(RetryConfig { max_retries: 0, ..RetryConfig::default() })
//!     .build()?;
//! ```
//!
//! - **Writes with a condition**, `PutMode::Create` and `PutMode::Update`, are retried only if the server has certainly
//!   not processed them, and so are other requests that are not idempotent. If the response to the first attempt is
//!   lost, a second one would report `AlreadyExists` or `Precondition` for the caller's own write. To retry them
//!   nevertheless, declare them with [`idempotent_if`](RetryLayer::idempotent_if).
//! - **Uploads in parts** to S3 are retried whole, with the POSTs that begin and complete them, and so are bulk
//!   deletions.
//! - **A body that breaks off** is an error of the read, since the response was a success: retry the whole `get`. The
//!   store itself continues a read only with its own retries.
//! - **A request keeps its signature**, which services accept for 5 to 15 minutes: end the retries before, by
//!   `max_elapsed`.
//! - A success whose body reports an error, as S3 may send it for a copy, is not retried, nor is a 409.
//! - The client below follows redirects. See [`tower`](crate::tower) for what that means.

use core::fmt;

use async_trait::async_trait;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
};
use object_store::{ClientOptions, Result};
use stagger::time::Sleep;
use stagger::{Outcome, classify};

use crate::request::RequestProgress;
use crate::storage::send;
use crate::tower::{Error, RetryLayer};

/// A connector whose clients retry. See the [module](self).
pub struct RetryConnector<C, T> {
    inner: C,
    layer: RetryLayer<T>,
}

impl<C: HttpConnector, T> RetryConnector<C, T> {
    /// Creates a connector that sends each attempt by a client of `inner`, such as `ReqwestConnector`.
    #[must_use]
    pub fn new(inner: C, layer: RetryLayer<T>) -> Self {
        Self { inner, layer: layer.for_storage(outcome, progress) }
    }
}

impl<C: HttpConnector, T> HttpConnector for RetryConnector<C, T>
where
    T: Sleep + Clone + Send + Sync + 'static,
    T::Sleeping: Send,
{
    fn connect(&self, options: &ClientOptions) -> Result<HttpClient> {
        Ok(HttpClient::new(Client { inner: self.inner.connect(options)?, layer: self.layer.clone() }))
    }
}

impl<C: fmt::Debug, T> fmt::Debug for RetryConnector<C, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryConnector").field("inner", &self.inner).field("layer", &self.layer).finish()
    }
}

/// A client that retries.
struct Client<T> {
    inner: HttpClient,
    layer: RetryLayer<T>,
}

#[async_trait]
impl<T> HttpService for Client<T>
where
    T: Sleep + Clone + Send + Sync + 'static,
    T::Sleeping: Send,
{
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let client = &self.inner;
        let end = send(&self.layer, request, move |request| client.execute(request)).await;
        end.map_err(|error| match error {
            Error::Service(error) => error,
            // A kind that the store itself does not retry.
            Error::Rejected(rejected) => HttpError::new(HttpErrorKind::Unknown, rejected),
        })
    }
}

impl<T> fmt::Debug for Client<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("inner", &self.inner).field("layer", &self.layer).finish()
    }
}

/// Classifies an error that the retrier has no rule for.
fn outcome(error: &HttpError) -> Outcome {
    match error.kind() {
        HttpErrorKind::Connect | HttpErrorKind::Request | HttpErrorKind::Timeout | HttpErrorKind::Interrupted => {
            Outcome::TRANSIENT
        }
        _ => classify::chain(error).unwrap_or(Outcome::Permanent),
    }
}

/// Returns how far the request got. `HttpErrorKind::Request` does not mean that it was not sent.
fn progress(error: &HttpError) -> RequestProgress {
    match error.kind() {
        HttpErrorKind::Connect => RequestProgress::NotSent,
        _ => RequestProgress::from_error(error),
    }
}
