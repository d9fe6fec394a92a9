use aws_sdk_sts::Client;
use aws_sdk_sts::config::Builder;
use stagger::Retrier;
use stagger_http::aws::Retries;

/// Builds a client of a service, here STS, whose calls go through the retrier.
pub(crate) fn aws(config: Builder, retrier: Retrier) -> Client {
    let retries = Retries::new(retrier);
    Client::from_conf(config.interceptor(retries.clone()).retry_classifier(retries).build())
}
