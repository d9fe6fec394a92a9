//! Budgets, breakers and limiters of other crates.

use core::hint::black_box;
use core::num::NonZeroU32;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;
use std::sync::{Arc, LazyLock};

use failsafe::failure_policy::{ConsecutiveFailures, SuccessRateOverTimeWindow, consecutive_failures};
use failsafe::{CircuitBreaker as _, Config, StateMachine, backoff};
use google_cloud_gax::retry_throttler::{AdaptiveThrottler, CircuitBreaker, RetryThrottlerArg, SharedRetryThrottler};
use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, Quota};
use recloser::Recloser;
use tower::retry::budget::{Budget as _, TpsBudget};
use tower_resilience_retry::{RetryBudget, RetryBudgetBuilder};

use crate::case::{Case, Role, Table};

/// The results of operations inside a breaker. Constants, because all threads would write to a shared script.
const SUCCESS: Result<(), ()> = Ok(());
const FAILURE: Result<(), ()> = Err(());

/// Returns the rows of other crates.
pub(super) fn cases() -> Vec<Case> {
    let row = |table, name, run| Case::work(table, Role::Peer, name, run);
    let success = |name, run| row(Table::GuardsSuccess, name, run);
    let failure = |name, run| row(Table::GuardsFailure, name, run);
    let deducts_nothing = "deducts nothing";
    vec![
        success("tower TpsBudget: deposit", |n| repeat(n, &*TPS, |budget| budget.deposit())).note(CLOCK),
        success("tower-resilience token bucket: deposit", |n| repeat(n, &*BUCKET, |bucket| bucket.deposit()))
            .note(CLOCK),
        success("gax AdaptiveThrottler", |n| gax_success(n, &ADAPTIVE)),
        success("gax CircuitBreaker", |n| gax_success(n, &THROTTLER)),
        success("recloser", |n| recloser(n, SUCCESS)),
        success("failsafe, consecutive failures", |n| consecutive(n, SUCCESS)),
        success("failsafe, success rate", |n| success_rate(n, SUCCESS)).note(CLOCK),
        failure("tower TpsBudget: withdraw", |n| repeat(n, &*TPS, |budget| budget.withdraw())).note(CLOCK),
        failure("tower-resilience token bucket: withdraw", |n| repeat(n, &*BUCKET, |bucket| bucket.try_withdraw()))
            .note(CLOCK),
        failure("gax AdaptiveThrottler: a retry", |n| gax_retry(n, &ADAPTIVE)).note(deducts_nothing),
        failure("gax CircuitBreaker: a retry", |n| gax_retry(n, &THROTTLER)).note(deducts_nothing),
        Case::wait(Table::GuardsFailure, Role::Peer, "governor: check", |n| {
            repeat(n, &*LIMITER, |limiter| limiter.check().is_ok());
        })
        .note("reads the clock, after a calibration by a busy loop"),
        Case::wait(Table::GuardsFailure, Role::Peer, "governor, keyed: check of a key that it has", |n| {
            repeat(n, &*HOSTS, |limiter| limiter.check_key(&7).is_ok());
        })
        .note("one of 1,000 keys; reads the clock, after a calibration by a busy loop"),
        Case::wait(Table::GuardsFailure, Role::Peer, "governor, keyed: check of a new key", new_keys)
            .note("keeps every key; reads the clock, after a calibration by a busy loop"),
        failure("recloser: a failure", |n| recloser(n, FAILURE)),
        failure("failsafe, consecutive failures: a failure", |n| consecutive(n, FAILURE)),
    ]
}

const CLOCK: &str = "reads the clock";
const AN_HOUR: Duration = Duration::from_secs(3600);
/// More than any measurement uses.
const PLENTY: u32 = u32::MAX;

static TPS: LazyLock<TpsBudget> = LazyLock::new(|| TpsBudget::new(Duration::from_secs(10), 1 << 30, 0.2));

static BUCKET: LazyLock<Arc<dyn RetryBudget>> = LazyLock::new(|| {
    let bucket = RetryBudgetBuilder::new().token_bucket().max_tokens(1 << 40);
    // It rejects a bucket without tokens and a rate that is not a number.
    bucket.build().expect("a valid bucket")
});

static ADAPTIVE: LazyLock<SharedRetryThrottler> =
    LazyLock::new(|| RetryThrottlerArg::from(AdaptiveThrottler::default()).into());

static THROTTLER: LazyLock<SharedRetryThrottler> =
    LazyLock::new(|| RetryThrottlerArg::from(CircuitBreaker::default()).into());

static LIMITER: LazyLock<DefaultDirectRateLimiter> =
    LazyLock::new(|| DefaultDirectRateLimiter::direct(Quota::per_second(NonZeroU32::MAX)));

static HOSTS: LazyLock<DefaultKeyedRateLimiter<u64>> = LazyLock::new(hosts);

/// Creates a limiter with 1,000 keys.
fn hosts() -> DefaultKeyedRateLimiter<u64> {
    let limiter = DefaultKeyedRateLimiter::keyed(Quota::per_second(NonZeroU32::MAX));
    for key in 0..1_000 {
        let _ = limiter.check_key(&key);
    }
    limiter
}

/// Checks keys that the limiter does not have.
fn new_keys(iterations: u64) {
    static GROWING: LazyLock<DefaultKeyedRateLimiter<u64>> = LazyLock::new(hosts);
    /// Those of all runs and threads, so that no two are the same.
    static KEYS: AtomicU64 = AtomicU64::new(1_000);
    let (limiter, first) = (black_box(&*GROWING), KEYS.fetch_add(iterations, Ordering::Relaxed));
    for key in first..first + iterations {
        black_box(&limiter.check_key(&key).is_ok());
    }
}

/// Runs an operation on a guard that all threads share.
fn repeat<G: ?Sized, R>(iterations: u64, guard: &'static G, operation: impl Fn(&'static G) -> R) {
    let guard = black_box(guard);
    for _ in 0..iterations {
        black_box(&operation(guard));
    }
}

fn gax_success(iterations: u64, throttler: &'static SharedRetryThrottler) {
    repeat(iterations, throttler, |throttler| throttler.lock().map(|mut throttler| throttler.on_success()).is_ok());
}

fn gax_retry(iterations: u64, throttler: &'static SharedRetryThrottler) {
    repeat(iterations, throttler, |throttler| {
        throttler.lock().is_ok_and(|throttler| throttler.throttle_retry_attempt())
    });
}

/// Runs a breaker that never opens, because no failure rate is above one.
fn recloser(iterations: u64, result: Result<(), ()>) {
    static BREAKER: LazyLock<Recloser> = LazyLock::new(|| Recloser::custom().error_rate(2.0).build());
    repeat(iterations, &*BREAKER, |breaker| breaker.call(|| black_box(result)).is_ok());
}

fn consecutive(iterations: u64, result: Result<(), ()>) {
    type Breaker = StateMachine<ConsecutiveFailures<backoff::Constant>, ()>;
    static BREAKER: LazyLock<Breaker> = LazyLock::new(|| {
        Config::new().failure_policy(consecutive_failures(PLENTY, backoff::constant(AN_HOUR))).build()
    });
    repeat(iterations, &*BREAKER, |breaker| breaker.call(|| black_box(result)).is_ok());
}

fn success_rate(iterations: u64, result: Result<(), ()>) {
    type Breaker = StateMachine<SuccessRateOverTimeWindow<backoff::EqualJittered>, ()>;
    static BREAKER: LazyLock<Breaker> =
        LazyLock::new(|| Config::new().failure_policy(SuccessRateOverTimeWindow::default()).build());
    repeat(iterations, &*BREAKER, |breaker| breaker.call(|| black_box(result)).is_ok());
}
