//! One table of scripts, run by every driver, gives one trace of decisions.

mod drivers;
mod environments;
#[cfg(any(feature = "async-io", feature = "futures-timer"))]
mod fast_forward;
mod minimal;
mod policy_table;
mod reference;
mod script;
mod strategies;
mod trace;

use core::time::Duration;
use std::sync::Arc;

use futures_lite::future::block_on;
use proptest::prelude::{ProptestConfig, proptest};
use proptest::test_runner::FileFailurePersistence;
use stagger::testing::VirtualClock;
use stagger::{Policy, Seed};
use tokio::runtime::Runtime;

use self::drivers::World;
use self::environments::Paused;
#[cfg(any(feature = "async-io", feature = "futures-timer"))]
use self::fast_forward::Hurried;
use self::policy_table::{JITTERS, SETTINGS, parsed};
use self::reference::by_hand;
use self::script::{Script, scripts};
use self::trace::Trace;
use super::support::{Bank, Gate, ms};

/// One call.
struct Case<'a> {
    policy: &'a Policy,
    script: &'a Script,
    seed: Seed,
    guarded: Guarded,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Guarded {
    No,
    /// By a budget with two retries in it, and a breaker that opens after three failures.
    Yes,
}

impl Case<'_> {
    /// Fresh guards.
    fn guards(&self) -> (Option<Arc<Bank>>, Option<Arc<Gate>>) {
        match self.guarded {
            Guarded::No => (None, None),
            Guarded::Yes => (Some(Arc::new(Bank::of(2))), Some(Arc::new(Gate::new(3, ms(15))))),
        }
    }

    fn expect(&self, driver: &str, got: &Trace, want: &Trace) {
        let Self { policy, script, seed, guarded } = self;
        assert_eq!(got, want, "{driver}: `{}`, {policy}, {seed:?}, guards: {guarded:?}", script.name);
    }

    /// Through every async driver.
    async fn through<W: World>(&self, world: impl Fn() -> W, want: &Trace) {
        self.expect("retry", &drivers::retrying(self, &world()).await, want);
        self.expect("Retrier::run", &drivers::run(self, &world()).await, want);
        self.expect("Retrier::run_with", &drivers::run_with(self, &world()).await, want);
        self.expect("Retrier::call", &drivers::hand_call(self, &world()).await, want);
        self.expect("PollRetry", &drivers::polled(self, &world()).await, want);
    }
}

/// Every jitter with every script and this many seeds, and every other setting with a tenth of them.
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
    fn every_driver_decides_alike_whatever_the_policy_and_the_script(
        policy in strategies::policy(), plays in strategies::plays(), seed in proptest::num::u64::ANY, is_guarded in proptest::bool::ANY,
    ) {
        let guarded = if is_guarded { Guarded::Yes } else { Guarded::No };
        on_virtual_time(&Case { policy: &policy, script: &Script::of(plays), seed: Seed::new(seed), guarded });
    }
}

const ANY_TIME: Duration = Duration::ZERO;

fn on_virtual_time(case: &Case<'_>) {
    let want = by_hand(case, ANY_TIME);
    case.expect("blocking::retry", &drivers::blocking(case), &want);
    case.expect("Retrier::blocking_call", &drivers::retrier_blocking(case), &want);
    block_on(case.through(VirtualClock::new, &want));
}

fn on_tokio(case: &Case<'_>, runtime: &Runtime) {
    runtime.block_on(case.through(|| Paused, &by_hand(case, ms(1))));
}

fn paused() -> Runtime {
    tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap()
}

#[test]
fn every_driver_decides_alike_on_virtual_time() {
    for_each_case(500, Guarded::No, on_virtual_time);
}

#[test]
fn every_driver_decides_alike_under_guards() {
    for_each_case(50, Guarded::Yes, on_virtual_time);
}

/// Without a listener and without limits a call keeps no state before its first failure: another way through the code.
#[test]
fn bare_calls_decide_like_those_that_tell() {
    for_each_case(100, Guarded::No, |case| {
        let want = minimal::Outcome::of(&by_hand(case, ANY_TIME));
        assert_eq!(minimal::blocking(case), want, "blocking::retry: `{}`, {}", case.script.name, case.policy);
        assert_eq!(block_on(minimal::retrying(case)), want, "retry: `{}`, {}", case.script.name, case.policy);
    });
}

#[test]
fn retry_decides_alike_on_tokio() {
    let runtime = paused();
    for_each_case(500, Guarded::No, |case| {
        let want = by_hand(case, ms(1));
        case.expect("retry", &runtime.block_on(drivers::retrying(case, &Paused)), &want);
    });
}

#[test]
fn every_driver_decides_alike_on_tokio() {
    let runtime = paused();
    for_each_case(50, Guarded::No, |case| on_tokio(case, &runtime));
    for_each_case(50, Guarded::Yes, |case| on_tokio(case, &runtime));
}

#[cfg(feature = "async-io")]
#[test]
fn every_driver_decides_alike_on_async_io() {
    for_each_case(1, Guarded::No, |case| {
        block_on(case.through(Hurried::<stagger::time::AsyncIo>::default, &by_hand(case, ANY_TIME)));
    });
}

#[cfg(feature = "futures-timer")]
#[test]
fn every_driver_decides_alike_on_futures_timer() {
    for_each_case(1, Guarded::No, |case| {
        block_on(case.through(Hurried::<stagger::time::FuturesTimer>::default, &by_hand(case, ANY_TIME)));
    });
}
