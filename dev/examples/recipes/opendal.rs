use opendal::Operator;
use stagger::Retrier;
use stagger_http::opendal::HttpRetryLayer;
use stagger_http::tower::RetryLayer;

/// Sends the requests of a store through the retrier.
pub(crate) fn opendal(store: Operator, retrier: Retrier) -> Operator {
    store.layer(HttpRetryLayer::new(RetryLayer::new(retrier)))
}
