//! Sends requests through any HTTP client. The types of clients and bodies end here, at one boxed function that is
//! called once per attempt, so the client of events has no type parameter.

use core::future::{Future, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll};
use std::sync::Arc;

use bytes::{Buf, Bytes};
use http::{Request, Response};
use http_body::Body;
use stagger::Outcome;
use tower_service::Service;

use super::event::BoxError;

/// The body of a response, in chunks.
pub(super) trait Chunks: Send {
    fn poll_chunk(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>>;
}

impl<R> Chunks for R
where
    R: Body + Send,
    R::Error: Into<BoxError>,
{
    fn poll_chunk(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Bytes, BoxError>>> {
        self.poll_frame(cx).map(|frame| {
            frame.map(|frame| match frame.map_err(Into::into)?.into_data() {
                Ok(mut data) => {
                    let length = data.remaining();
                    Ok(data.copy_to_bytes(length))
                }
                // Trailers have no data.
                Err(_) => Ok(Bytes::new()),
            })
        })
    }
}

pub(super) type BoxBody = Pin<Box<dyn Chunks>>;

/// Why there is no response.
pub(super) struct SendFailure {
    pub(super) error: BoxError,
    /// What it means, if the client says so.
    pub(super) outcome: Option<Outcome>,
}

/// Marks a response that is from another origin than the request was sent to.
#[derive(Clone, Copy, Debug)]
pub(super) struct FromOtherOrigin;

type Sending = Pin<Box<dyn Future<Output = Result<Response<BoxBody>, SendFailure>> + Send>>;

/// An HTTP client.
pub(super) struct Transport<B>(Arc<dyn Fn(Request<B>) -> Sending + Send + Sync>);

impl<B: Send + 'static> Transport<B> {
    pub(super) fn send(&self, request: Request<B>) -> Sending {
        (self.0)(request)
    }

    pub(super) fn from_service<S, R>(service: S) -> Self
    where
        S: Service<Request<B>, Response = Response<R>> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send,
        R: Body + Send + 'static,
        R::Error: Into<BoxError>,
    {
        Self(Arc::new(move |request| {
            let mut service = service.clone();
            Box::pin(async move {
                let send = async {
                    poll_fn(|cx| service.poll_ready(cx)).await?;
                    service.call(request).await
                };
                let response =
                    send.await.map_err(|error: S::Error| SendFailure { error: error.into(), outcome: None })?;
                Ok(boxed(response))
            })
        }))
    }
}

fn boxed<R>(response: Response<R>) -> Response<BoxBody>
where
    R: Body + Send + 'static,
    R::Error: Into<BoxError>,
{
    response.map(|body| Box::pin(body) as BoxBody)
}

#[cfg(feature = "reqwest-middleware")]
mod over_reqwest {
    use std::sync::Arc;

    use http::Response;
    use reqwest::{Body, Error, Request};
    use reqwest_middleware::{ClientWithMiddleware, Error as MiddlewareError};
    use stagger::Outcome;

    use super::{FromOtherOrigin, SendFailure, Transport, boxed};
    use crate::reqwest::error::{is_from_origin, is_permanent};

    impl Transport<Body> {
        pub(crate) fn from_reqwest(client: ClientWithMiddleware) -> Self {
            Self(Arc::new(move |request| {
                let client = client.clone();
                Box::pin(async move {
                    let request = Request::try_from(request).map_err(failure)?;
                    let url = request.url().clone();
                    let response = client.execute(request).await.map_err(|error| match error {
                        MiddlewareError::Reqwest(error) => failure(error),
                        MiddlewareError::Middleware(error) => SendFailure { error: error.into(), outcome: None },
                    })?;
                    let is_from_origin = is_from_origin(&response, &url);
                    let mut response = boxed(Response::from(response));
                    if !is_from_origin {
                        response.extensions_mut().insert(FromOtherOrigin);
                    }
                    Ok(response)
                })
            }))
        }
    }

    /// Removes the URL, since tokens are often in it.
    fn failure(error: Error) -> SendFailure {
        let outcome = if is_permanent(&error) { Some(Outcome::Permanent) } else { None };
        SendFailure { error: error.without_url().into(), outcome }
    }
}
