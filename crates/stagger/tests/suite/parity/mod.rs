//! Every driver makes the same decisions for the same policy, script of outcomes, and seed.

mod drivers;
mod environments;
#[cfg(any(feature = "async-io", feature = "futures-timer"))]
mod fast_forward;
mod minimal;
mod policies;
mod reference;
mod script;

use core::time::Duration;
use std::sync::Arc;

use futures_lite::future::block_on;
use proptest::prelude::{ProptestConfig, proptest};
use proptest::test_runner::FileFailurePersistence;
use stagger::testing::VirtualClock;
use stagger::{Policy, Seed};
use tokio::runtime::Runtime;

use self::drivers::Environment;
use self::environments::PausedTokio;
#[cfg(any(feature = "async-io", feature = "futures-timer"))]
use self::fast_forward::FastForward;
use self::policies::{JITTERS, SETTINGS, parsed};
use self::reference::{reference_trace, reference_trace_on_ticks};
use self::script::{Script, Trace, scripts};
use super::support::{RecordingBreaker, RecordingBudget, ms};

/// The input of one call.
struct Case<'a> {
    policy: &'a Policy,
    script: &'a Script,
    seed: Seed,
    guarded: Guarded,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guarded {
    No,
    /// With a budget of two retries and a breaker that opens after three failures.
    Yes,
}

impl Case<'_> {
    /// Creates new guards.
    fn guards(&self) -> (Option<Arc<RecordingBudget>>, Option<Arc<RecordingBreaker>>) {
        match self.guarded {
            Guarded::No => (None, None),
            Guarded::Yes => (Some(Arc::new(RecordingBudget::new(2))), Some(Arc::new(RecordingBreaker::new(3, ms(15))))),
        }
    }

    fn assert_trace(&self, driver: &str, got: &Trace, want: &Trace) {
        let Self { policy, script, seed, guarded } = self;
        assert_eq!(got, want, "{driver}: `{}`, {policy}, {seed:?}, guards: {guarded:?}", script.name);
    }

    /// Runs the case with every async driver and checks each trace.
    async fn check_async_drivers<W: Environment>(&self, environment: impl Fn() -> W, want: &Trace) {
        self.assert_trace("retry", &drivers::retry(self, &environment()).await, want);
        self.assert_trace("Retrier::run", &drivers::run(self, &environment()).await, want);
        self.assert_trace("Retrier::run_with", &drivers::run_with(self, &environment()).await, want);
        self.assert_trace("Retrier::call", &drivers::retry_loop(self, &environment()).await, want);
        self.assert_trace("PollRetry", &drivers::poll_retry(self, &environment()).await, want);
    }

    /// Runs the case with a queue, which wakes up on whole milliseconds of its clock and derives the seed of its first
    /// item.
    async fn check_queue(&self) {
        let item = Case { seed: self.seed.for_call(1), ..*self };
        let want = reference_trace_on_ticks(&item, EXACT, ms(1));
        self.assert_trace("push_retry", &drivers::queue_by_outcome(self, &VirtualClock::new()).await, &want);
        self.assert_trace("push_failed", &drivers::queue_by_error(self, &VirtualClock::new()).await, &want);
    }

    /// Runs the case with a batch, which has no initial spread, on a timer of this resolution.
    async fn check_batch<W: Environment>(&self, environment: impl Fn() -> W, resolution: Duration) {
        let policy = self.policy.to_builder().spread(Duration::ZERO).build().unwrap();
        let case = Case { policy: &policy, ..*self };
        case.assert_trace("Batch", &drivers::batch(&case, &environment()).await, &reference_trace(&case, resolution));
    }
}

/// Checks every jitter with every script and `seeds` seeds, and every other setting with a tenth of the seeds.
fn for_each_case(seeds: u64, guarded: Guarded, mut check: impl FnMut(&Case<'_>)) {
    let scripts = scripts();
    let jitters = JITTERS.map(|policy| (parsed(policy), seeds));
    let settings = SETTINGS.map(|policy| (parsed(policy), seeds.div_ceil(10)));
    for (policy, seeds) in jitters.iter().chain(&settings) {
        for script in &scripts {
            for seed in (0..*seeds).map(|n| Seed::new(0x5eed).for_call(n)) {
                check(&Case { policy, script, seed, guarded });
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 256,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn all_drivers_agree_on_random_policies_and_scripts(
        policy in policies::policy(),
        attempts in policies::attempts(),
        seed in proptest::num::u64::ANY,
        is_guarded in proptest::bool::ANY,
    ) {
        let guarded = if is_guarded { Guarded::Yes } else { Guarded::No };
        let script = Script::new(attempts);
        check_on_virtual_time(&Case { policy: &policy, script: &script, seed: Seed::new(seed), guarded });
    }
}

/// The resolution of a timer that can wake up at any time.
const EXACT: Duration = Duration::ZERO;

fn check_on_virtual_time(case: &Case<'_>) {
    let want = reference_trace(case, EXACT);
    case.assert_trace("blocking::retry", &drivers::blocking(case), &want);
    case.assert_trace("Retrier::blocking_call", &drivers::retrier_blocking(case), &want);
    block_on(case.check_async_drivers(VirtualClock::new, &want));
    block_on(case.check_queue());
    block_on(case.check_batch(VirtualClock::new, EXACT));
}

fn check_on_tokio(case: &Case<'_>, runtime: &Runtime) {
    runtime.block_on(case.check_async_drivers(|| PausedTokio, &reference_trace(case, ms(1))));
    runtime.block_on(case.check_batch(|| PausedTokio, ms(1)));
}

fn paused_runtime() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

#[test]
fn all_drivers_agree_on_virtual_time() {
    for_each_case(500, Guarded::No, check_on_virtual_time);
}

#[test]
fn all_drivers_agree_with_guards() {
    for_each_case(50, Guarded::Yes, check_on_virtual_time);
}

/// Without a listener and limits, a call keeps no state before its first failure, which is a separate code path.
#[test]
fn calls_without_a_listener_make_the_same_decisions() {
    for_each_case(100, Guarded::No, |case| {
        let want = minimal::Summary::from_trace(&reference_trace(case, EXACT));
        assert_eq!(minimal::blocking(case), want, "blocking::retry: `{}`, {}", case.script.name, case.policy);
        assert_eq!(block_on(minimal::retry(case)), want, "retry: `{}`, {}", case.script.name, case.policy);
    });
}

#[test]
fn retry_agrees_with_the_reference_on_tokio() {
    let runtime = paused_runtime();
    for_each_case(500, Guarded::No, |case| {
        let want = reference_trace(case, ms(1));
        case.assert_trace("retry", &runtime.block_on(drivers::retry(case, &PausedTokio)), &want);
    });
}

#[test]
fn all_drivers_agree_on_tokio() {
    let runtime = paused_runtime();
    for_each_case(50, Guarded::No, |case| check_on_tokio(case, &runtime));
    for_each_case(50, Guarded::Yes, |case| check_on_tokio(case, &runtime));
}

#[cfg(feature = "async-io")]
#[test]
fn all_drivers_agree_on_async_io() {
    for_each_case(1, Guarded::No, |case| {
        block_on(
            case.check_async_drivers(FastForward::<stagger::time::AsyncIo>::default, &reference_trace(case, EXACT)),
        );
    });
}

#[cfg(feature = "futures-timer")]
#[test]
fn all_drivers_agree_on_futures_timer() {
    for_each_case(1, Guarded::No, |case| {
        block_on(
            case.check_async_drivers(
                FastForward::<stagger::time::FuturesTimer>::default,
                &reference_trace(case, EXACT),
            ),
        );
    });
}
