//! The decision of the AWS SDKs, which includes their classifier and token bucket: they cannot be left out.

use core::hint::black_box;

use aws_smithy_runtime::client::retries::TokenBucket;
use aws_smithy_runtime::client::retries::strategy::StandardRetryStrategy;
use aws_smithy_runtime_api::client::interceptors::context::{Error, Input, InterceptorContext};
use aws_smithy_runtime_api::client::orchestrator::OrchestratorError;
use aws_smithy_runtime_api::client::retries::classifiers::{ClassifyRetry, RetryAction};
use aws_smithy_runtime_api::client::retries::{RequestAttempts, RetryStrategy};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponentsBuilder;
use aws_smithy_types::config_bag::{ConfigBag, Layer};
use aws_smithy_types::retry::RetryConfig;

use super::session::{BASE, CAP, LENGTH};

/// Classifies every error as transient without inspecting it.
#[derive(Debug)]
struct Transient;

impl ClassifyRetry for Transient {
    fn classify_retry(&self, _context: &InterceptorContext) -> RetryAction {
        RetryAction::transient_error()
    }

    fn name(&self) -> &'static str {
        "transient"
    }
}

pub(super) fn decisions(iterations: u64) {
    let components = RuntimeComponentsBuilder::for_tests().with_retry_classifier(Transient);
    let components = components
        .build()
        // It rejects a builder that lacks a component; the test builder has them all.
        .expect("every required component");
    let mut layer = Layer::new("bench");
    layer.store_put(RetryConfig::standard().with_max_attempts(100).with_initial_backoff(BASE).with_max_backoff(CAP));
    layer.store_put(TokenBucket::unlimited());
    let mut bag = ConfigBag::of_layers(vec![layer]);
    let mut context = InterceptorContext::new(Input::doesnt_matter());
    context.set_output_or_error(Err(OrchestratorError::operation(Error::doesnt_matter())));

    let (components, context) = black_box((&components, &context));
    for _ in 0..iterations / LENGTH {
        let strategy = StandardRetryStrategy::new();
        for attempts in 1..=black_box(LENGTH as u32) {
            bag.interceptor_state().store_put(RequestAttempts::new(attempts));
            let decision = strategy.should_attempt_retry(context, components, black_box(&bag));
            black_box(&decision);
        }
    }
}
