use core::time::Duration;

use stagger_core::breaker::CircuitBreaker;
use stagger_core::budget::Tokens;
use stagger_core::{Policy, Seed};
use stagger_sim::ScenarioProblem;
use stagger_sim::outage::{OutageKind, OutageScenario, ProcessGuards};

#[test]
fn a_request_rejected_by_its_breaker_is_counted_and_not_sent() {
    let once = Policy::DEFAULT.to_builder().max_attempts(1).build().unwrap();
    let guards = |seed| ProcessGuards::none().breaker(CircuitBreaker::builder(seed).consecutive(3).build().unwrap());
    let figures = OutageScenario::builder(500.0).build().unwrap().run(&once, guards, Seed::new(1));
    assert!(figures.rejected > 100, "{}", figures.rejected);
    assert_eq!(figures.attempts.total() + figures.rejected, figures.requests.total());
}

#[test]
fn an_attempt_at_a_full_queue_is_throttled() {
    let scenario = OutageScenario::builder(700.0).queue(5).build().unwrap();
    let plain = Policy::exponential(Duration::from_millis(50), Duration::from_secs(60)).max_attempts(3);
    // Only throttled attempts wait this long.
    let patient = plain.throttled_base(Duration::from_secs(30)).build().unwrap();
    let attempts = |policy: &Policy| scenario.run(policy, |_| ProcessGuards::none(), Seed::new(1)).attempts;
    assert_ne!(attempts(&plain.build().unwrap()), attempts(&patient));
}

#[test]
fn processes_do_not_share_their_guards() {
    let scenario = |processes| OutageScenario::builder(700.0).processes(processes).build().unwrap();
    let attempts = |processes| {
        let guards = |_| ProcessGuards::none().budget(Tokens::builder().reward(0).build().unwrap());
        scenario(processes).run(&Policy::DEFAULT, guards, Seed::new(1)).amplification()
    };
    // A hundred retries per process.
    assert!(attempts(100) > 1.05 * attempts(1), "{} {}", attempts(100), attempts(1));
}

#[test]
fn an_invalid_scenario_cannot_be_built() {
    let (plain, zero, day) = (OutageScenario::builder(700.0), Duration::ZERO, Duration::from_secs(86_400));
    for (builder, want) in [
        (OutageScenario::builder(0.0), ScenarioProblem::Rate),
        (OutageScenario::builder(f64::NAN), ScenarioProblem::Rate),
        (plain.capacity(f64::NEG_INFINITY), ScenarioProblem::Rate),
        (plain.queue(0), ScenarioProblem::Backlog),
        (plain.processes(0), ScenarioProblem::Clients),
        (plain.horizon(day * 3), ScenarioProblem::Clients),
        (plain.timeout(Duration::from_millis(9)), ScenarioProblem::Timeout),
        (plain.timeout(Duration::MAX), ScenarioProblem::Timeout),
        (plain.outage(OutageKind::Stall, day, zero), ScenarioProblem::BeyondHorizon),
        (plain.outage(OutageKind::Stall, zero, Duration::MAX), ScenarioProblem::BeyondHorizon),
    ] {
        assert_eq!(builder.build().unwrap_err().problems().collect::<Vec<_>>(), [want], "{builder:?}");
    }
}

/// Checks that the timeout covers the whole round trip: 100 ms, the job and another 100 ms.
#[test]
fn the_timeout_runs_from_sending_to_receiving() {
    let millis = Duration::from_millis;
    let once = Policy::DEFAULT.to_builder().max_attempts(1).build().unwrap();
    for (job, timeout, succeed) in [(0.25, 500, true), (0.35, 500, false), (0.35, 600, true)] {
        let scenario = OutageScenario::builder(0.01).capacity(1.0 / job).one_way(millis(100)).timeout(millis(timeout));
        let scenario = scenario.outage(OutageKind::Reject, Duration::ZERO, Duration::ZERO);
        let scenario = scenario.horizon(Duration::from_secs(2_000)).build().unwrap();
        let figures = scenario.run(&once, |_| ProcessGuards::none(), Seed::new(1));
        assert!(figures.requests.total() > 5, "{figures:?}");
        assert_eq!(figures.successes.total() > 5, succeed, "a job of {job} s, {timeout} ms");
    }
}
