use object_store::aws::{AmazonS3, AmazonS3Builder};
use object_store::client::HttpConnector;
use object_store::{Result, RetryConfig};
use stagger::Retrier;
use stagger_http::object_store::RetryConnector;
use stagger_http::tower::RetryLayer;

/// Builds a store whose requests go through the retrier. The transport is usually `ReqwestConnector::default()`.
pub(crate) fn object_store(
    store: AmazonS3Builder,
    transport: impl HttpConnector,
    retrier: Retrier,
) -> Result<AmazonS3> {
    let connector = RetryConnector::new(transport, RetryLayer::new(retrier));
    let disabled = RetryConfig { max_retries: 0, ..RetryConfig::default() };
    store.with_http_connector(connector).with_retry(disabled).build()
}
