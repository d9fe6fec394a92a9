//! What the model's formulas say, and what happens.

use core::time::Duration;

use stagger_core::budget::Adaptive;
use stagger_core::{Policy, Ratio, Seed};
use stagger_sim::outage::{OutageFigures, OutageScenario, OutageScenarioBuilder, ProcessGuards};

use super::strategies::Strategy;

fn run(name: &'static str, scenario: OutageScenarioBuilder) -> OutageFigures {
    Strategy::named(name).run(&scenario.build().unwrap(), Seed::new(1))
}

/// `(q − μ · timeout) / (μ − λ)`, where the stall leaves q = λ · 2 s, and what a second in which 90 % succeed adds to it.
#[test]
fn without_retries_a_queue_drains_as_the_formula_says() {
    for (rate, formula) in [(900.0, 8.0), (800.0, 3.0), (700.0, 4.0 / 3.0)] {
        let recovery = run("none", OutageScenario::builder(rate)).recovery().unwrap().as_secs_f64();
        assert!((formula - 0.5..formula + 2.0).contains(&recovery), "{rate}: {recovery} is not {formula}");
    }
}

/// What budgets have at the start is sent on top of it and drained, too: `processes · tokens / cost` retries.
#[test]
fn what_budgets_have_at_the_start_is_drained_as_the_formula_says() {
    for (rate, formula) in [(900.0, 18.0), (700.0, 14.0 / 3.0), (500.0, 2.0)] {
        for name in ["full9_aws500", "full3_aws500"] {
            let recovery = run(name, OutageScenario::builder(rate)).recovery().unwrap().as_secs_f64();
            assert!((formula - 0.5..formula + 2.0).contains(&recovery), "{name}, {rate}: {recovery} is not {formula}");
        }
    }
}

/// A tenth for each request is 990 of a thousand: a full queue of 3,000 comes down to what is in time by ten a second.
#[test]
fn what_hardly_drains_is_slow_and_not_metastable() {
    let scenario = OutageScenario::builder(900.0);
    assert!(run("full9_ratio10b", scenario).is_metastable());
    let recovery = run("full9_ratio10b", scenario.horizon(Duration::from_secs(400))).recovery().unwrap();
    assert!((150.0..250.0).contains(&recovery.as_secs_f64()), "{recovery:?}");
}

/// More than the server does comes, with what the budget lets through on top: `λ · 1.1 + 10` for each process.
#[test]
fn a_windowed_budget_lets_through_its_share_and_what_it_has_in_any_case() {
    for (rate, processes, is_metastable) in [(700.0, 10, false), (900.0, 10, true), (700.0, 100, true)] {
        let figures = run("full9_ratio10", OutageScenario::builder(rate).processes(processes));
        let load = rate * 1.1 + 10.0 * f64::from(processes);
        assert_eq!(figures.is_metastable(), is_metastable, "{rate} requests, {processes} processes: {load}");
        assert_eq!(load > 1_000.0, is_metastable);
    }
}

#[test]
fn what_does_not_go_stale_recovers() {
    for name in ["none", "imm3", "full3", "full9", "full9_ratio10"] {
        // Half a second of jobs, and a second until clients give up.
        let figures = run(name, OutageScenario::builder(700.0).queue(500));
        assert!(figures.recovery() <= Some(Duration::from_secs(2)), "{name}: {:?}", figures.recovery());
    }
}

#[test]
fn retries_alone_keep_a_half_loaded_server_down() {
    let figures = run("full3", OutageScenario::builder(500.0));
    assert!(figures.is_metastable() && figures.final_goodput() < 0.01, "{:?}", figures.final_goodput());
    assert!((figures.amplification() - 3.97).abs() < 0.05, "{}", figures.amplification());
}

#[test]
fn throttling_by_chance_lets_a_server_come_back_that_retries_would_keep_down() {
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
