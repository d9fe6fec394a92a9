//! The error of a service, however it is wrapped, gets one answer from the layer.

use core::error::Error;
use std::io::{self, ErrorKind};
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use http::Method;
use stagger::observe::EventError;
use stagger::{BoxedError, Retrier};
use stagger_http::tower::RetryLayer;
use tower::{Layer as _, ServiceExt as _, service_fn};

use super::tower::{LayerRequest, POLICY, ServerResponse, request};

/// An error with a rule.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("own error")]
struct Own {
    is_transient: bool,
}

/// An error without a rule, whose source is another.
#[derive(Debug, thiserror::Error)]
#[error("cannot reach the server")]
struct Wrapper<E: Error + 'static>(#[from] E);

/// Returns the number of requests of a call to a service that always fails with this error.
async fn requests<E: EventError + Unpin>(method: &Method, error: impl Fn() -> E) -> usize {
    let count = Mutex::new(0);
    let (counter, error) = (&count, &error);
    let service = service_fn(|_: LayerRequest| async move {
        *counter.lock().unwrap() += 1;
        Err::<ServerResponse, _>(error())
    });
    let retrier = Retrier::new(POLICY)
        .when(|error: &Own| error.is_transient)
        .look_into::<Wrapper<Own>>()
        .look_into::<Wrapper<io::Error>>();
    let call = RetryLayer::new(retrier).layer(service).oneshot(request(method.clone(), "pay"));
    call.await.unwrap_err();
    *count.lock().unwrap()
}

/// Returns the requests of a call that fails with this error, by the error's wrapping.
async fn by_wrapping<E: Error + Send + Sync + Unpin + 'static>(
    method: Method,
    root: impl Fn() -> E,
) -> Vec<(&'static str, usize)> {
    let method = &method;
    vec![
        ("bare", requests(method, &root).await),
        ("Box<E>", requests(method, || Box::new(root())).await),
        ("Arc<E>", requests(method, || Arc::new(root())).await),
        ("Rc<E>", requests(method, || Rc::new(root())).await),
        ("BoxError", requests(method, || -> tower::BoxError { root().into() }).await),
        ("Box<dyn Error>", requests(method, || -> Box<dyn Error> { root().into() }).await),
        ("Arc<dyn Error>", requests(method, || -> Arc<dyn Error + Send + Sync> { Arc::new(root()) }).await),
        ("BoxedError", requests(method, || BoxedError::new(root())).await),
        ("io::Error", requests(method, || io::Error::other(root())).await),
        ("io::Error in a BoxError", requests(method, || -> tower::BoxError { io::Error::other(root()).into() }).await),
        ("#[from]", requests(method, || Wrapper(root())).await),
        ("#[from] in a BoxError", requests(method, || -> tower::BoxError { Wrapper(root()).into() }).await),
    ]
}

#[tokio::test(start_paused = true)]
async fn the_layer_classifies_an_error_however_it_is_wrapped() {
    for (root, want, all) in [
        ("a missing file", 1, by_wrapping(Method::GET, || io::Error::from(ErrorKind::NotFound)).await),
        ("a refused connection", 4, by_wrapping(Method::GET, || io::Error::from(ErrorKind::ConnectionRefused)).await),
        ("own transient", 4, by_wrapping(Method::GET, || Own { is_transient: true }).await),
        ("own permanent", 1, by_wrapping(Method::GET, || Own { is_transient: false }).await),
    ] {
        for (wrapping, requests) in all {
            assert_eq!(requests, want, "{root}, {wrapping}");
        }
    }
}

// A refused connection proves that nothing was sent.
#[tokio::test(start_paused = true)]
async fn ht_23_a_request_that_was_not_sent_is_retried_however_its_error_is_wrapped() {
    for (root, want, all) in [
        ("refused", 4, by_wrapping(Method::POST, || io::Error::from(ErrorKind::ConnectionRefused)).await),
        ("reset", 1, by_wrapping(Method::POST, || io::Error::from(ErrorKind::ConnectionReset)).await),
        ("own", 1, by_wrapping(Method::POST, || Own { is_transient: true }).await),
    ] {
        for (wrapping, requests) in all {
            assert_eq!(requests, want, "{root}, {wrapping}");
        }
    }
}
