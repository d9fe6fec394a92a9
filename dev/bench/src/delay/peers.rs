//! The cost of a next delay in other crates, each through its public API and with its own jitter.

use core::hint::black_box;
use core::iter::repeat_with;
use std::time::SystemTime;

use aws_smithy_runtime::client::retries::TokenBucket;
use aws_smithy_runtime::client::retries::strategy::StandardRetryStrategy;
use aws_smithy_runtime_api::client::interceptors::context::{Error, Input, InterceptorContext};
use aws_smithy_runtime_api::client::orchestrator::OrchestratorError;
use aws_smithy_runtime_api::client::retries::classifiers::{ClassifyRetry, RetryAction};
use aws_smithy_runtime_api::client::retries::{RequestAttempts, RetryStrategy};
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponentsBuilder;
use aws_smithy_types::config_bag::{ConfigBag, Layer};
use aws_smithy_types::retry::RetryConfig;

use super::{BASE, CAP, LENGTH, sessions};
use crate::case::{Case, Role, Table};

/// Returns the rows of other crates.
pub(super) fn cases() -> Vec<Case> {
    let row = |name, run| Case::work(Table::Delay, Role::Peer, name, run);
    vec![
        row("google-cloud-gax", google_cloud_gax),
        row("tokio-retry", tokio_retry),
        row("tokio-retry2", tokio_retry2).note("jitter 50 to 150 %"),
        row("retry", retry).note("no cap"),
        row("exponential-backoff", exponential_backoff).note("jitter ±30 %"),
        row("mulligan", mulligan),
        row("backon", backon).note("jitter 100 to 200 %"),
        row("backoff", backoff).note("jitter ±50 %; reads the clock each time"),
        row("tower", tower).note("returns the delay as a tokio sleep"),
        row("tower-resilience", tower_resilience).note("jitter ±50 %"),
        row("retry-policies", retry_policies).note("returns a wall-clock time"),
        row("aws-smithy-runtime", decisions).note("complete decision: classifier, backoff, unlimited token bucket"),
        Case::absent(Table::Delay, "again", "its delays are not in its public API"),
        Case::absent(Table::Delay, "tryhard", "has no jitter"),
    ]
}

fn google_cloud_gax(iterations: u64) {
    use google_cloud_gax::backoff_policy::BackoffPolicy;
    use google_cloud_gax::exponential_backoff::ExponentialBackoffBuilder;
    use google_cloud_gax::retry_state::RetryState;

    // `clamp` is its infallible constructor; the values are in its valid range.
    let backoff =
        ExponentialBackoffBuilder::new().with_initial_delay(BASE).with_maximum_delay(CAP).with_scaling(2.0).clamp();
    sessions(iterations, &backoff, |backoff| {
        let mut state = RetryState::new(true);
        repeat_with(move || {
            state.attempt_count += 1;
            backoff.on_failure(&state)
        })
    });
}

fn tokio_retry(iterations: u64) {
    use tokio_retry::strategy::{ExponentialBackoff, jitter};

    let strategy = ExponentialBackoff::from_millis(2).factor(50).max_delay(CAP);
    sessions(iterations, &strategy, |strategy| strategy.clone().map(jitter));
}

fn tokio_retry2(iterations: u64) {
    use tokio_retry2::strategy::{ExponentialBackoff, jitter};

    let strategy = ExponentialBackoff::from_millis(2).factor(50).max_delay(CAP);
    sessions(iterations, &strategy, |strategy| strategy.clone().map(jitter));
}

fn retry(iterations: u64) {
    use retry::delay::{Exponential, jitter};

    sessions(iterations, &(BASE.as_millis() as u64, 2.0), |&(base, factor)| {
        Exponential::from_millis_with_factor(base, factor).map(jitter)
    });
}

fn exponential_backoff(iterations: u64) {
    let backoff = exponential_backoff::Backoff::new(100, BASE, CAP);
    sessions(iterations, &backoff, |backoff| backoff.iter().map(Option::unwrap_or_default));
}

fn mulligan(iterations: u64) {
    use mulligan::{Backoff, Exponential, Full, Jitter};

    let configuration = (Exponential::base(BASE).multiplier(2.0), CAP);
    sessions(iterations, &configuration, |(backoff, cap)| {
        let mut attempt = 0;
        repeat_with(move || {
            let ceiling = backoff.delay(attempt);
            attempt += 1;
            Full.jitter(ceiling, Some(*cap))
        })
    });
}

fn backon(iterations: u64) {
    use backon::{BackoffBuilder, ExponentialBuilder};

    let builder = ExponentialBuilder::new()
        .with_jitter()
        .with_factor(2.0)
        .with_min_delay(BASE)
        .with_max_delay(CAP)
        .without_max_times();
    sessions(iterations, &builder, BackoffBuilder::build);
}

fn backoff(iterations: u64) {
    use backoff::backoff::Backoff;
    use backoff::{ExponentialBackoff, ExponentialBackoffBuilder};

    let prototype: ExponentialBackoff = ExponentialBackoffBuilder::new()
        .with_initial_interval(BASE)
        .with_max_interval(CAP)
        .with_multiplier(2.0)
        .with_max_elapsed_time(None)
        .build();
    sessions(iterations, &prototype, |prototype| {
        let mut backoff = prototype.clone();
        backoff.reset();
        repeat_with(move || backoff.next_backoff())
    });
}

fn tower(iterations: u64) {
    use tower::retry::backoff::{Backoff, ExponentialBackoffMaker, MakeBackoff};
    use tower::util::rng::HasherRng;

    let runtime = crate::operation::real();
    let _context = runtime.enter();
    let maker = ExponentialBackoffMaker::new(BASE, CAP, 0.99, HasherRng::new())
        // It rejects a minimum above the maximum and a jitter outside 0 to 100.
        .expect("valid constants");
    sessions(iterations, &maker, |maker| {
        let mut backoff = maker.clone().make_backoff();
        // Dropped by value: this is the cheapest way to use a sleep of over a hundred bytes.
        repeat_with(move || drop(black_box(backoff.next_backoff())))
    });
}

fn tower_resilience(iterations: u64) {
    use tower_resilience_retry::{ExponentialRandomBackoff, IntervalFunction};

    let backoff = ExponentialRandomBackoff::new(BASE, 0.5)
        // It rejects a factor outside 0 to 1.
        .expect("a valid constant")
        .max_interval(CAP);
    sessions(iterations, &backoff, |backoff| {
        let mut attempt = 0;
        repeat_with(move || {
            attempt += 1;
            backoff.next_interval(attempt - 1)
        })
    });
}

fn retry_policies(iterations: u64) {
    use retry_policies::policies::ExponentialBackoff;
    use retry_policies::{Jitter, RetryPolicy};

    let policy =
        ExponentialBackoff::builder().retry_bounds(BASE, CAP).jitter(Jitter::Full).base(2).build_with_max_retries(100);
    sessions(iterations, &policy, |policy| {
        let start = SystemTime::now();
        let mut past = 0;
        repeat_with(move || {
            past += 1;
            policy.should_retry(start, past - 1)
        })
    });
}

// The decision of the AWS SDKs, which includes their classifier and token bucket: they cannot be left out.

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

fn decisions(iterations: u64) {
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
