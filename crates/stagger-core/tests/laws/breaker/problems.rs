//! Invalid breaker settings are rejected.

use core::time::Duration;

use stagger_core::breaker::{CircuitBreaker, CircuitBreakerBuilder, CircuitBreakerProblem as Problem, Window};
use stagger_core::{Policy, Ratio, Seed};

use crate::laws::support::{ms, secs};

fn problems(builder: CircuitBreakerBuilder) -> Vec<Problem> {
    builder.build().err().map_or(Vec::new(), |error| error.problems().collect())
}

#[test]
fn every_problem_is_detected() {
    let builder = || CircuitBreaker::builder(Seed::new(1));
    let ratio = || builder().failure_ratio(Ratio::percent(50));
    let streak = || builder().consecutive(5);
    for (builder, want) in [
        (builder(), Problem::NoRule),
        (builder().consecutive(0), Problem::NoFailure),
        (builder().failure_ratio(Ratio::ZERO), Problem::Ratio),
        (builder().failure_ratio(Ratio::percent(101)), Problem::Ratio),
        (builder().slow_ratio(secs(1), Ratio::ZERO), Problem::Ratio),
        (builder().slow_ratio(Duration::ZERO, Ratio::ONE), Problem::SlowAfter),
        (builder().slow_ratio(secs(86_401), Ratio::ONE), Problem::SlowAfter),
        (ratio().window(Window::Calls(0)), Problem::Window),
        (ratio().window(Window::Calls(1_001)), Problem::Window),
        (ratio().window(Window::Time(ms(99))), Problem::Window),
        (ratio().window(Window::Time(Duration::MAX)), Problem::Window),
        (ratio().min_calls(0), Problem::MinCalls),
        (ratio().min_calls(101), Problem::MinCalls),
        (streak().min_calls(5), Problem::NothingToCount),
        (streak().window(Window::Calls(5)), Problem::NothingToCount),
        (streak().open(Policy::stop().build().unwrap()), Problem::OpenTime),
        (streak().open(Policy::zero().build().unwrap()), Problem::OpenTime),
        // Full jitter can draw 0.
        (streak().open(Policy::exponential(secs(1), secs(9)).build().unwrap()), Problem::OpenTime),
        (streak().open(Policy::list(&[secs(1), Duration::ZERO]).build().unwrap()), Problem::OpenTime),
        (streak().probes(0), Problem::Probes),
        (streak().probes(10_001), Problem::Probes),
        (streak().probes(2).healthy_probes(3), Problem::Probes),
        (streak().healthy_probes(0), Problem::Probes),
        (streak().probe_wait(Duration::ZERO), Problem::ProbeWait),
    ] {
        assert_eq!(problems(builder), [want], "{builder:?}");
    }
}

#[test]
fn the_error_lists_every_problem_with_a_fix() {
    let error = CircuitBreaker::builder(Seed::new(1)).probes(0).probe_wait(Duration::ZERO).build().unwrap_err();
    assert_eq!(error.problems().collect::<Vec<_>>(), [Problem::NoRule, Problem::Probes, Problem::ProbeWait]);
    assert_eq!(
        error.to_string(),
        "no rule is set, so nothing trips it: set consecutive, failure_ratio or slow_ratio; probes 0 with \
         healthy_probes 0 is outside the range: use 1 to 10000 probes, and 1 to all of them healthy; probe_wait is \
         0s, so no probe could return in time: raise it"
    );
}

#[test]
fn the_bounds_of_every_range_are_accepted() {
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
        assert_eq!(problems(builder), [], "{builder:?}");
    }
}
