//! Tests of the verdict where random variation decides: on few requests, on negligible outages, and near the capacity.

use core::time::Duration;

use stagger_core::{Policy, Seed};
use stagger_sim::outage::{OutageFigures, OutageKind, OutageScenario, OutageScenarioBuilder, ProcessGuards};

const STALL: Duration = Duration::from_millis(1);

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn at_once(attempts: u32) -> Policy {
    Policy::zero().max_attempts(attempts).build().unwrap()
}

fn run(scenario: &OutageScenario, attempts: u32, seed: u64) -> OutageFigures {
    scenario.run(&at_once(attempts), |_| ProcessGuards::none(), Seed::new(seed))
}

/// Returns 50 requests per second, a third of the capacity, and a stall of 1 ms.
fn lightly_loaded() -> OutageScenarioBuilder {
    let scenario = OutageScenario::builder(50.0).capacity(160.0).timeout(Duration::from_millis(200));
    scenario.one_way(Duration::ZERO).outage(OutageKind::Stall, seconds(10), STALL).horizon(seconds(42))
}

/// Returns a server of ten per second, so close to its capacity that random variation overloads it within the hour.
fn nearly_full(rate: f64) -> OutageScenarioBuilder {
    let scenario = OutageScenario::builder(rate).capacity(10.0).queue(100).timeout(seconds(3));
    scenario.one_way(Duration::ZERO).outage(OutageKind::Stall, seconds(1), STALL).horizon(seconds(3_600))
}

#[test]
fn a_run_without_a_failure_is_not_metastable() {
    let scenario = lightly_loaded().build().unwrap();
    let figures = run(&scenario, 4, 15);
    assert!(figures.success_ratio() > 0.999 && figures.amplification() < 1.001, "nothing failed");
    assert!(!figures.is_metastable(), "recovery {:?}", figures.recovery());
}

#[test]
fn a_negligible_stall_is_over_within_a_second_at_every_rate() {
    for rate in [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 400.0, 800.0] {
        let scenario = OutageScenario::builder(rate).capacity(10.0 * rate);
        let scenario = scenario.outage(OutageKind::Stall, seconds(20), STALL).build().unwrap();
        for seed in 0..40 {
            let recovery = run(&scenario, 1, seed).recovery();
            assert!(recovery.is_some_and(|recovery| recovery <= seconds(1)), "{rate}/s, seed {seed}: {recovery:?}");
        }
    }
}

#[test]
fn a_system_that_collapses_after_five_good_seconds_has_not_recovered() {
    let scenario = nearly_full(9.5).build().unwrap();
    let figures = run(&scenario, 5, 1);
    assert!(figures.success_ratio() < 0.1 && figures.final_goodput() < 0.01, "the server is down");
    assert!(figures.is_metastable() && figures.recovery().is_none(), "recovery {:?}", figures.recovery());
}
