//! A layer for the HTTP services of opendal, such as S3, Google Cloud Storage, Azure and WebDAV.
//!
//! [`HttpRetryLayer`] retries their requests by the rules of the [tower layer](crate::tower): by method, status and
//! server hint, with a budget and a breaker for each origin. Leave out opendal's own `RetryLayer`, or both multiply:
//!
//! ```ignore (needs opendal with a service and a transport)
//! let retries = RetryLayer::new(Retrier::new(POLICY));
//! let store = Operator::new(services::S3::default().bucket("a"))?.layer(HttpRetryLayer::new(retries));
//! ```
//!
//! - **Writes with a condition**, `if_not_exists` and `if_match`, are retried only if the server has certainly not
//!   processed them, and so are other requests that are not idempotent. If the response to the first attempt is lost, a
//!   second one would report `ConditionNotMatch` for the caller's own write. To retry them nevertheless, declare them
//!   with [`idempotent_if`](RetryLayer::idempotent_if).
//! - **Uploads in parts** to S3 are retried whole, with the POSTs that begin and complete them, and so are bulk
//!   deletions.
//! - **A body that breaks off** is an error of the read, since the response was a success: retry the whole `read`.
//! - **A request keeps its signature**, which services accept for 5 to 15 minutes: end the retries before, by
//!   `max_elapsed`.
//! - A success whose body reports an error, as S3 may send it for a copy, is not retried, nor is a 409.
//! - Services that do not speak HTTP, such as the file system, are not retried.
//! - The transport below follows redirects. See [`tower`] for what that means.

use core::fmt;
use core::pin::{Pin, pin};
use core::task::{Context, Poll, ready};

use http::{Request, Response};
use http_body::{Body, Frame};
use opendal_core::raw::oio::ReadStream as _;
use opendal_core::raw::{Layer, Servicer};
use opendal_core::{Buffer, Error, ErrorKind, HttpBody, HttpTransport, HttpTransporter, OperationContext, Result};
use stagger::time::Sleep;
use stagger::{Outcome, classify};

use crate::request::RequestProgress;
use crate::storage::send;
use crate::tower::{self, RetryLayer};

/// A layer that retries the HTTP requests of an operator. See the [module](self).
pub struct HttpRetryLayer<T> {
    layer: RetryLayer<T>,
}

impl<T> HttpRetryLayer<T> {
    /// Creates a layer with the settings of `layer`.
    #[must_use]
    pub fn new(layer: RetryLayer<T>) -> Self {
        Self { layer: layer.for_storage::<Error>(outcome, |error| RequestProgress::from_error(error)) }
    }
}

impl<T> Layer for HttpRetryLayer<T>
where
    T: Sleep + Clone + Send + Sync + Unpin + 'static,
    T::Sleeping: Send,
{
    fn apply_context(&self, _: Servicer, inner: OperationContext) -> OperationContext {
        let transport = Transport { inner: inner.http_transport().clone(), layer: self.layer.clone() };
        inner.with_http_transport(HttpTransporter::new(transport))
    }
}

impl<T> fmt::Debug for HttpRetryLayer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpRetryLayer").field("layer", &self.layer).finish()
    }
}

/// A transport that retries.
struct Transport<T> {
    inner: HttpTransporter,
    layer: RetryLayer<T>,
}

impl<T> HttpTransport for Transport<T>
where
    T: Sleep + Clone + Send + Sync + Unpin + 'static,
    T::Sleeping: Send,
{
    async fn fetch(&self, request: Request<Buffer>) -> Result<Response<HttpBody>> {
        let inner = &self.inner;
        let fetch = move |request| async move { Ok(inner.fetch(request).await?.map(DrainableBody)) };
        let end = send(&self.layer, request, fetch).await;
        end.map(|response| response.map(|DrainableBody(body)| body)).map_err(|error| match error {
            tower::Error::Service(error) => error,
            tower::Error::Rejected(rejected) => {
                Error::new(ErrorKind::Unexpected, "the request was rejected").set_source(rejected)
            }
        })
    }
}

/// The body of a response, as a body of the `http_body` crate, so that that of a failed attempt can be read to its end.
struct DrainableBody(HttpBody);

impl Body for DrainableBody {
    type Data = Buffer;
    type Error = Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Buffer>>>> {
        // A read is one item of a stream, and can be begun anew.
        let read = ready!(pin!(self.0.read()).poll(cx));
        Poll::Ready(match read {
            // The stream ends with an empty chunk.
            Ok(chunk) if chunk.is_empty() => None,
            Ok(chunk) => Some(Ok(Frame::data(chunk))),
            Err(error) => Some(Err(error)),
        })
    }
}

/// Classifies an error that the retrier has no rule for: opendal's transports mark what may pass.
fn outcome(error: &Error) -> Outcome {
    if error.is_temporary() { Outcome::TRANSIENT } else { classify::chain(error).unwrap_or(Outcome::Permanent) }
}
