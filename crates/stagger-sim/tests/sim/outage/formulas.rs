//! Compares simulations with the formulas of the model.

use core::mem::discriminant;
use core::time::Duration;

use stagger_core::budget::Adaptive;
use stagger_core::{Policy, Ratio, Seed};
use stagger_sim::outage::{OutageFigures, OutageKind, OutageScenario, OutageScenarioBuilder, ProcessGuards, Verdict};

use super::strategies::Strategy;

const SECOND: Duration = Duration::from_secs(1);

fn run(name: &'static str, scenario: OutageScenarioBuilder) -> OutageFigures {
    Strategy::named(name).run(&scenario.build().unwrap(), Seed::new(1))
}

/// Checks `(q − μ · timeout) / (μ − λ)`, where the stall leaves q = λ · 2 s, up to the resolution of whole seconds.
#[test]
fn without_retries_a_queue_drains_as_predicted() {
    for (rate, formula) in [(900.0, 8.0), (800.0, 3.0), (700.0, 4.0 / 3.0)] {
        let recovery = run("none", OutageScenario::builder(rate)).recovery().unwrap().as_secs_f64();
        assert!((formula - 0.5..formula + 2.0).contains(&recovery), "{rate}: {recovery}, expected {formula}");
    }
}

/// Checks that the initial tokens of the budgets add to the queue: `processes · tokens / cost` retries.
#[test]
fn the_initial_tokens_of_budgets_drain_as_predicted() {
    for (rate, formula) in [(900.0, 18.0), (700.0, 14.0 / 3.0), (500.0, 2.0)] {
        for name in ["full9_aws500", "full3_aws500"] {
            let recovery = run(name, OutageScenario::builder(rate)).recovery().unwrap().as_secs_f64();
            assert!(
                (formula - 0.5..formula + 2.0).contains(&recovery),
                "{name}, {rate}: {recovery}, expected {formula}"
            );
        }
    }
}

/// Checks a load of 990 of a thousand (a tenth of a retry per request): a full queue of 3,000 shrinks by ten per
/// second.
#[test]
fn a_queue_that_drains_slowly_is_not_metastable() {
    let scenario = OutageScenario::builder(900.0);
    let early = run("full9_ratio10b", scenario);
    assert!(early.verdict() == Verdict::NotDecided && !early.is_metastable(), "{}", early.verdict());
    let recovery = run("full9_ratio10b", scenario.horizon(Duration::from_secs(400))).recovery().unwrap();
    assert!((150.0..250.0).contains(&recovery.as_secs_f64()), "{recovery:?}");
}

/// A stall of 30 s leaves a queue that is worked off within minutes, or never: at every horizon, the verdict is that of
/// a long run, or there is none.
#[test]
fn a_verdict_is_that_of_a_long_run_or_not_decided() {
    let mut decided = 0;
    for (rate, attempts, comes_back) in [(95.0, 1, true), (45.0, 2, true), (60.0, 2, false), (30.0, 4, false)] {
        let policy = Policy::zero().max_attempts(attempts).build().unwrap();
        let run = |horizon| {
            let scenario = OutageScenario::builder(rate).capacity(100.0).horizon(Duration::from_secs(horizon));
            let stall = scenario.outage(OutageKind::Stall, Duration::from_secs(20), Duration::from_secs(30));
            stall.build().unwrap().run(&policy, |_| ProcessGuards::none(), Seed::new(1)).verdict()
        };
        let want = run(1_500);
        assert_eq!((want.is_up(), want.is_down()), (comes_back, !comes_back), "{rate}/s: {want}");
        for horizon in [55, 60, 70, 100, 120, 150, 200, 300, 400, 600, 900, 1_200] {
            let got = run(horizon);
            let is_open = got == Verdict::NotDecided;
            assert!(is_open || discriminant(&got) == discriminant(&want), "{rate}/s, {horizon} s: {got}, but {want}");
            decided += u32::from(!is_open);
        }
    }
    assert!(decided >= 16, "{decided} are decided");
}

/// Checks that a system is metastable if the load with permitted retries, `λ · 1.1 + 10` per process, exceeds the
/// capacity.
#[test]
fn a_windowed_budget_permits_its_ratio_and_its_minimum() {
    for (rate, processes, is_metastable) in [(700.0, 10, false), (900.0, 10, true), (700.0, 100, true)] {
        let figures = run("full9_ratio10", OutageScenario::builder(rate).processes(processes));
        let load = rate * 1.1 + 10.0 * f64::from(processes);
        assert_eq!(
            figures.state_at_horizon().is_down(),
            is_metastable,
            "{rate} requests, {processes} processes: {load}"
        );
        assert_eq!(load > 1_000.0, is_metastable);
    }
}

#[test]
fn a_queue_without_stale_jobs_recovers() {
    for name in ["none", "imm3", "full3", "full9", "full9_ratio10"] {
        // A queue of half a second, and a timeout of a second.
        let figures = run(name, OutageScenario::builder(700.0).queue(500));
        let recovery = figures.recovery();
        assert!(recovery.is_some_and(|recovery| recovery <= Duration::from_secs(2)), "{name}: {recovery:?}");
    }
}

#[test]
fn retries_alone_keep_a_half_loaded_server_down() {
    let figures = run("full3", OutageScenario::builder(500.0));
    assert!(figures.is_metastable() && figures.final_goodput() < 0.01, "{:?}", figures.final_goodput());
    assert!((figures.amplification() - 3.97).abs() < 0.05, "{}", figures.amplification());
}

#[test]
fn probabilistic_throttling_prevents_metastability() {
    let policy =
        Policy::exponential(Duration::from_millis(100), Duration::from_secs(2)).max_attempts(4).build().unwrap();
    let scenario = OutageScenario::builder(700.0).build().unwrap();
    let guards = |seed| {
        let window = Duration::from_secs(12);
        ProcessGuards::none()
            .budget(Adaptive::builder(seed).window(window).multiplier(Ratio::percent(110)).build().unwrap())
    };
    let (free, throttled) = (run("full3", OutageScenario::builder(700.0)), scenario.run(&policy, guards, Seed::new(1)));
    assert!(free.is_metastable() && !throttled.is_metastable(), "{:?}", throttled.recovery());
}

/// Requests that arrived before the outage are not counted, so neither are the attempts that they make during it.
#[test]
fn a_request_makes_no_more_attempts_than_the_policy_allows() {
    let policy: Policy = "constant base=100ms jitter=none max-attempts=5".parse().unwrap();
    for seed in 1..=20 {
        let start = Duration::from_millis(20_150);
        let scenario = OutageScenario::builder(30.0).capacity(10.0).queue(30);
        let scenario =
            scenario.outage(OutageKind::Stall, start, Duration::from_secs(60)).horizon(Duration::from_secs(90));
        let figures = scenario.build().unwrap().run(&policy, |_| ProcessGuards::none(), Seed::new(seed));
        let attempts = figures.amplification();
        assert!(attempts <= 5.0 && attempts > 4.5, "{attempts} with seed {seed}");
    }
}

/// With a hint that the policy honors, no retry comes before it; with a longer one than `max-hint`, none comes at all.
#[test]
fn rejected_requests_honor_the_hint_of_the_server() {
    let start = 20 * SECOND;
    let run = |text: &str| {
        let scenario = OutageScenario::builder(100.0).outage(OutageKind::Reject, start, 4 * SECOND);
        let scenario = scenario.retry_after(5 * SECOND).horizon(40 * SECOND).build().unwrap();
        scenario.run(&text.parse().unwrap(), |_| ProcessGuards::none(), Seed::new(1))
    };
    let honored = run("exponential base=100ms cap=1s max-attempts=2");
    assert_eq!(honored.served.total(), honored.requests.total(), "each retry comes after the outage");
    // Bins of 100 ms.
    let [attempts, requests] = [&honored.attempts, &honored.requests].map(|series| &series.counts()[200..250]);
    assert_eq!(attempts, requests, "nobody comes back within five seconds");
    let refused = run("exponential base=100ms cap=1s max-attempts=2 max-hint=4s");
    assert!(refused.amplification() <= 1.0, "{}", refused.amplification());
}
