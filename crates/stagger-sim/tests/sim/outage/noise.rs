//! Tests of the verdict where random variation decides: on few requests, on negligible outages, and near the capacity.

use core::time::Duration;

use stagger_core::{Policy, Seed};
use stagger_sim::outage::{OutageFigures, OutageKind, OutageScenario, OutageScenarioBuilder, ProcessGuards, Verdict};

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
        // A run at a high rate takes as long as dozens at a low one, and has less noise.
        for seed in 0..if rate < 100.0 { 40 } else { 4 } {
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

/// Checks that a system is told to be down before the outage if and only if its last requests before it were not
/// served.
#[test]
fn a_system_that_is_down_before_the_outage_is_told() {
    let mut counts = [0; 2];
    for (seed, rate) in (0..40).zip([3.0, 9.5, 9.8, 9.9].into_iter().cycle()) {
        let scenario = nearly_full(rate).outage(OutageKind::Stall, seconds(500), STALL).horizon(seconds(700));
        let figures = run(&scenario.build().unwrap(), 3, seed);
        // The last 50 s before the outage.
        let sum = |counts: &[u32]| counts.iter().skip(4_500).take(500).map(|&count| f64::from(count)).sum::<f64>();
        let served = sum(figures.served.counts()) / sum(figures.requests.counts());
        // In between, the system is on its way up or down.
        if served < 0.5 {
            assert!(figures.was_down_before_outage(), "{served:.3} of the last served, {rate}/s, seed {seed}");
            assert!(figures.is_metastable(), "a negligible stall ends nothing, {rate}/s, seed {seed}");
            counts[0] += 1;
        } else if served > 0.999 && figures.attempts.total() == figures.requests.total() {
            assert!(!figures.was_down_before_outage(), "everything was served, {rate}/s, seed {seed}");
            counts[1] += 1;
        }
    }
    assert!(counts.iter().all(|&count| count >= 5), "{counts:?} runs were down and up, so little was tested");
}

/// Checks runs in which nothing can fail: a stall of 1 ms at a tenth of the capacity.
fn count_false_alarms(seeds: core::ops::Range<u64>) {
    for seed in seeds {
        let rate = [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 400.0, 800.0][seed as usize % 10];
        let scenario = OutageScenario::builder(rate).capacity(10.0 * rate);
        let scenario = scenario.outage(OutageKind::Stall, seconds(2), STALL);
        let scenario =
            scenario.horizon(Duration::from_secs_f64(2.0 + 6.0 * 100.0_f64.max(rate) / rate)).build().unwrap();
        let figures = run(&scenario, 3, seed);
        assert_eq!(figures.state_at_horizon(), Verdict::NeverFell, "{rate}/s, seed {seed}");
        assert_eq!(figures.recovery(), Some(Duration::ZERO), "{rate}/s, seed {seed}");
    }
}

/// Checks runs of servers that random variation overloads: a run is down at the horizon if and only if its last
/// requests were not served. `final_success_ratio` and the time series say so independently of the verdict.
fn count_false_all_clears(seeds: core::ops::Range<u64>) -> [u64; 2] {
    let mut counts = [0; 2];
    for seed in seeds {
        let rate = [9.0, 9.5, 9.8, 9.9][seed as usize % 4];
        let scenario = nearly_full(rate).horizon(seconds(1 + 240)).build().unwrap();
        let figures = run(&scenario, 3, seed);
        let last = figures.horizon.saturating_sub(figures.window() * 2);
        let first = (last.as_millis() / 100) as usize;
        let sum = |counts: &[u32]| counts.iter().skip(first).map(|&count| f64::from(count)).sum::<f64>();
        let served = sum(figures.served.counts()) / sum(figures.requests.counts());
        // In between, the system is on its way up or down.
        if served < 0.5 {
            assert!(
                figures.state_at_horizon().is_down(),
                "false all-clear: {served:.3} of the last served, {rate}/s, seed {seed}"
            );
            assert!(figures.recovery().is_none(), "{rate}/s, seed {seed}");
            counts[0] += 1;
        } else if figures.success_ratio() > 0.999 && served > 0.999 {
            assert!(figures.state_at_horizon().is_up(), "false alarm: everything was served, {rate}/s, seed {seed}");
            counts[1] += 1;
        }
    }
    counts
}

#[test]
fn ten_thousand_negligible_stalls_raise_no_alarm() {
    count_false_alarms(0..10_000);
}

#[test]
fn ten_thousand_collapses_are_never_an_all_clear() {
    let [down, up] = count_false_all_clears(0..10_000);
    assert!(down > 1_000 && up > 1_000, "{down} runs were down and {up} up, so little was tested");
}
