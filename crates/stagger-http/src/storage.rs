//! What the object stores share: which of their requests may be repeated, and how they go through the tower layer.

use core::future::Future;
use core::task::{Context, Poll};

use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, header};
use http_body::Body;
use stagger::observe::EventError;
use stagger::time::Sleep;
use tower_layer::Layer as _;
use tower_service::Service;

use crate::tower::{Error, ReplayBody, RetryLayer};

/// The body of the requests that the layer sees: none, in the smallest type that is a body. The real one is in memory
/// and cheap to clone, so that it needs neither a buffer nor a limit.
type NoBody = String;

/// Sends a request through the layer. `transport` sends an attempt of it.
pub(crate) async fn send<B, R, E, T, F, Fut>(
    layer: &RetryLayer<T>,
    request: Request<B>,
    transport: F,
) -> Result<Response<R>, Error<E>>
where
    B: Clone,
    R: Body + Unpin,
    E: EventError + Unpin,
    T: Sleep + Clone,
    F: Fn(Request<B>) -> Fut + Clone,
    Fut: Future<Output = Result<Response<R>, E>>,
{
    let (head, body) = request.into_parts();
    // An attempt is ready at any time.
    layer.layer(Attempts { body, transport }).call(Request::from_parts(head, NoBody::new())).await
}

/// The attempts of one request.
#[derive(Clone)]
struct Attempts<B, F> {
    body: B,
    transport: F,
}

impl<B, R, E, F, Fut> Service<Request<ReplayBody<NoBody>>> for Attempts<B, F>
where
    B: Clone,
    F: Fn(Request<B>) -> Fut,
    Fut: Future<Output = Result<Response<R>, E>>,
{
    type Response = Response<R>;
    type Error = E;
    type Future = Fut;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), E>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<ReplayBody<NoBody>>) -> Fut {
        (self.transport)(request.map(|_| self.body.clone()))
    }
}

/// Returns whether a request writes only if its target is in a certain state. Once it has been processed, its
/// repetition fails, and says of the caller's own write that somebody else was first.
pub(crate) fn is_conditional_write(method: &Method, headers: &HeaderMap) -> bool {
    // The last one is Google's.
    let conditions = [header::IF_MATCH, header::IF_NONE_MATCH, header::IF_UNMODIFIED_SINCE];
    let is_conditional = |headers: &HeaderMap| {
        conditions.iter().any(|name| headers.contains_key(name)) || headers.contains_key("x-goog-if-generation-match")
    };
    !method.is_safe() && is_conditional(headers)
}

/// Returns whether a request may run twice although its method is not idempotent by RFC 9110.
///
/// - POST to S3: begins an upload in parts, of which one without parts may stay behind; completes one, whose parts are
///   the same; deletes a list of objects.
/// - WebDAV: PROPFIND, MKCOL, whose repetition finds the collection, and COPY if it overwrites (RFC 4918).
pub(crate) fn is_idempotent(head: &Parts) -> bool {
    match head.method.as_str() {
        "POST" => {
            let mut names = head.uri.query().unwrap_or("").split('&').filter_map(|pair| pair.split('=').next());
            names.any(|name| matches!(name, "uploads" | "uploadId" | "delete"))
        }
        "PROPFIND" | "MKCOL" => true,
        "COPY" => head.headers.get("overwrite").is_none_or(|overwrite| overwrite == "T"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    #[test]
    fn a_write_is_conditional_by_its_headers_and_a_read_never_is() {
        for (method, name, want) in [
            (Method::PUT, "if-none-match", true),
            (Method::PUT, "if-match", true),
            (Method::DELETE, "if-unmodified-since", true),
            (Method::POST, "x-goog-if-generation-match", true),
            (Method::PUT, "content-type", false),
            (Method::GET, "if-none-match", false),
            (Method::HEAD, "if-match", false),
        ] {
            let headers = HeaderMap::from_iter([(name.parse().unwrap(), "*".parse().unwrap())]);
            assert_eq!(is_conditional_write(&method, &headers), want, "{method} {name}");
        }
    }

    #[test]
    fn uploads_in_parts_deletions_and_most_of_webdav_may_run_twice() {
        for (method, uri, overwrite, want) in [
            ("POST", "http://s3.example/bucket/key?uploads", "", true),
            ("POST", "http://s3.example/bucket/key?uploads=", "", true),
            ("POST", "http://s3.example/bucket/key?x-id=A&uploadId=7", "", true),
            ("POST", "http://s3.example/bucket?delete", "", true),
            ("POST", "http://s3.example/bucket/key?select&select-type=2", "", false),
            ("POST", "http://s3.example/uploads", "", false),
            ("POST", "http://s3.example/?notuploads", "", false),
            ("PATCH", "http://s3.example/bucket/key?uploads", "", false),
            ("PROPFIND", "http://dav.example/", "", true),
            ("MKCOL", "http://dav.example/a/", "", true),
            ("COPY", "http://dav.example/a", "T", true),
            ("COPY", "http://dav.example/a", "F", false),
            ("MOVE", "http://dav.example/a", "T", false),
        ] {
            let mut request = Request::builder().method(method).uri(uri);
            if !overwrite.is_empty() {
                request = request.header("overwrite", overwrite);
            }
            let (head, ()) = request.body(()).unwrap().into_parts();
            assert_eq!(is_idempotent(&head), want, "{method} {uri} {overwrite}");
        }
    }
}
