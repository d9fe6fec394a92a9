//! A breaker that makes no sense cannot be built.

use core::time::Duration;

use stagger_core::breaker::{CircuitBreaker, CircuitBreakerBuilder, CircuitBreakerProblem as Fault, Window};
use stagger_core::{Policy, Ratio, Seed};

use crate::laws::support::{ms, secs};

fn faults(builder: CircuitBreakerBuilder) -> Vec<Fault> {
    builder.build().err().map_or(Vec::new(), |error| error.problems().collect())
}

#[test]
fn every_fault_is_found() {
    let builder = || CircuitBreaker::builder(Seed::new(1));
    let ratio = || builder().failure_ratio(Ratio::percent(50));
    let streak = || builder().consecutive(5);
    for (builder, want) in [
        (builder(), Fault::NoRule),
        (builder().consecutive(0), Fault::NoFailure),
        (builder().failure_ratio(Ratio::ZERO), Fault::Ratio),
        (builder().failure_ratio(Ratio::percent(101)), Fault::Ratio),
        (builder().slow_ratio(secs(1), Ratio::ZERO), Fault::Ratio),
        (builder().slow_ratio(Duration::ZERO, Ratio::ONE), Fault::SlowAfter),
        (builder().slow_ratio(secs(86_401), Ratio::ONE), Fault::SlowAfter),
        (ratio().window(Window::Calls(0)), Fault::Window),
        (ratio().window(Window::Calls(1_001)), Fault::Window),
        (ratio().window(Window::Time(ms(99))), Fault::Window),
        (ratio().window(Window::Time(Duration::MAX)), Fault::Window),
        (ratio().min_calls(0), Fault::MinCalls),
        (ratio().min_calls(101), Fault::MinCalls),
        (streak().min_calls(5), Fault::NothingToCount),
        (streak().window(Window::Calls(5)), Fault::NothingToCount),
        (streak().open(Policy::stop().build().unwrap()), Fault::OpenTime),
        (streak().open(Policy::zero().build().unwrap()), Fault::OpenTime),
        // Full jitter draws from 0 on.
        (streak().open(Policy::exponential(secs(1), secs(9)).build().unwrap()), Fault::OpenTime),
        (streak().open(Policy::list(&[secs(1), Duration::ZERO]).build().unwrap()), Fault::OpenTime),
        (streak().probes(0), Fault::Probes),
        (streak().probes(10_001), Fault::Probes),
        (streak().probes(2).healthy_probes(3), Fault::Probes),
        (streak().healthy_probes(0), Fault::Probes),
        (streak().probe_wait(Duration::ZERO), Fault::ProbeWait),
    ] {
        assert_eq!(faults(builder), [want], "{builder:?}");
    }
}

#[test]
fn all_are_told_at_once_with_the_way_out() {
    let error = CircuitBreaker::builder(Seed::new(1)).probes(0).probe_wait(Duration::ZERO).build().unwrap_err();
    assert_eq!(error.problems().collect::<Vec<_>>(), [Fault::NoRule, Fault::Probes, Fault::ProbeWait]);
    assert_eq!(
        error.to_string(),
        "no rule is set, so nothing trips it: set consecutive, failure_ratio or slow_ratio; probes 0 with \
         healthy_probes 0 is outside the range: use 1 to 10000 probes, and 1 to all of them healthy; probe_wait is \
         0s, so no probe could return in time: raise it"
    );
}

#[test]
fn the_ends_of_every_range_are_accepted() {
    let builder = || CircuitBreaker::builder(Seed::new(1));
    let ratio = || builder().failure_ratio(Ratio::millionths(1));
    for builder in [
        builder().consecutive(u32::MAX),
        ratio().window(Window::Calls(1)),
        ratio().window(Window::Calls(1_000)).min_calls(1_000),
        ratio().window(Window::Time(ms(100))).min_calls(u32::MAX),
        ratio().window(Window::Time(secs(86_400))),
        builder().slow_ratio(secs(86_400), Ratio::ONE),
        builder().consecutive(1).probes(10_000).healthy_probes(1).probe_wait(Duration::MAX),
        builder().consecutive(1).open(Policy::exponential(secs(1), secs(9)).floor(ms(1)).build().unwrap()),
    ] {
        assert_eq!(faults(builder), [], "{builder:?}");
    }
}
