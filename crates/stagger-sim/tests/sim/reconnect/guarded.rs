//! Mass disconnects whose clients have guards.

use core::time::Duration;

use stagger_core::breaker::CircuitBreaker;
use stagger_core::quiet::QuietPeriod;
use stagger_core::{Policy, Seed};
use stagger_sim::outage::{ProcessGuards, StoreFaults};
use stagger_sim::reconnect::{ReconnectFigures, ReconnectScenario, ReconnectScenarioBuilder, RetryAfter};
use stagger_sim::{Progress, ScenarioProblem};

const fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn policy() -> Policy {
    Policy::exponential(Duration::from_millis(500), at(10)).unlimited_attempts().build().unwrap()
}

fn scenario() -> ReconnectScenarioBuilder {
    ReconnectScenario::builder(3_000).rate(300.0).backlog(150).horizon(at(600))
}

fn run(scenario: ReconnectScenarioBuilder, guards: impl Fn(Seed) -> ProcessGuards) -> ReconnectFigures {
    scenario.build().unwrap().run_with_guards(&policy(), guards, Seed::new(1), &Progress::new()).unwrap().unwrap()
}

#[test]
fn a_quiet_period_of_a_process_holds_all_its_clients() {
    let quiet = || QuietPeriod::builder().max_waiting(10_000).build().unwrap();
    let hinted = scenario().retry_after(RetryAfter::Fixed(at(2)));
    let alone = run(hinted, |_| ProcessGuards::none());
    let each = run(hinted, |_| ProcessGuards::none().guard(quiet()));
    let shared = run(hinted.processes(3), |_| ProcessGuards::none().guard(quiet()));
    let attempts = [&alone, &each, &shared].map(|figures| figures.attempts);
    assert_eq!([alone.connected, each.connected, shared.connected], [3_000; 3], "{attempts:?}");
    assert!(shared.held > 1_000 && shared.attempts < alone.attempts, "{attempts:?}, {} held", shared.held);
}

#[test]
fn a_breaker_that_rejects_ends_a_client() {
    let breaker = |seed| {
        let breaker = CircuitBreaker::builder(seed).consecutive(3).build().unwrap();
        ProcessGuards::none().breaker(breaker)
    };
    let figures = run(scenario().processes(10), breaker);
    assert!(figures.gave_up > 1_000 && figures.connected + figures.gave_up == 3_000, "{}", figures.gave_up);
}

#[test]
fn invalid_combinations_are_reported() {
    let crashing = scenario().crash_loop(3, 500.0).build().unwrap();
    let error =
        crashing.run_with_guards(&policy(), |_| ProcessGuards::none(), Seed::new(1), &Progress::new()).unwrap_err();
    assert_eq!(error.problems().collect::<Vec<_>>(), [ScenarioProblem::GuardedCrashLoop]);
    for (builder, want) in [
        (scenario().processes(0), ScenarioProblem::Processes),
        (scenario().processes(3_001), ScenarioProblem::Processes),
        (scenario().store(StoreFaults::none().down(at(5), at(5))), ScenarioProblem::Store),
        (scenario().store(StoreFaults::none().lost(at(5), at(601))), ScenarioProblem::Store),
    ] {
        assert_eq!(builder.build().unwrap_err().problems().collect::<Vec<_>>(), [want]);
    }
}
