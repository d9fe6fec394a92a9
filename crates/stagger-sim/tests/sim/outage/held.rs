//! Quiet periods and pacers, on the scenarios of the core's own tests: the figures of the simulator agree with theirs.

use core::time::Duration;
use std::sync::Arc;
use std::thread;

use stagger_core::budget::{ControlMode, Controlled, RetryControl, Tokens};
use stagger_core::pacer::Pacer;
use stagger_core::quiet::{QuietPeriod, QuietTrigger};
use stagger_core::{Policy, Seed};
use stagger_sim::outage::{OutageFigures, OutageKind, OutageScenario, OutageScenarioBuilder, ProcessGuards};

const fn at(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn policy(attempts: u32) -> Policy {
    Policy::exponential(Duration::from_millis(100), at(10)).max_attempts(attempts).build().unwrap()
}

/// Calls of one process, all of which the server refuses for a time.
fn refused(rate: f64, capacity: f64, queue: u32, from: u64, until: u64) -> OutageScenarioBuilder {
    let builder = OutageScenario::builder(rate).capacity(capacity).queue(queue).processes(1).timeout(at(10));
    builder.outage(OutageKind::Throttle, at(from), at(until - from)).horizon(at(until + 30))
}

/// A thousand calls wait in ten seconds of a hundred each.
fn quiet() -> ProcessGuards {
    ProcessGuards::none().guard(QuietPeriod::builder().max_waiting(100_000).build().unwrap())
}

/// The same, and refusals without a hint begin a pause, too.
fn quiet_by_refusals() -> ProcessGuards {
    let quiet = QuietPeriod::builder().trigger(QuietTrigger::HintsAndRefusals).max_waiting(100_000);
    ProcessGuards::none().guard(quiet.build().unwrap())
}

fn run(scenario: OutageScenarioBuilder, attempts: u32, guards: fn() -> ProcessGuards, seed: u64) -> OutageFigures {
    scenario.build().unwrap().run(&policy(attempts), |_| guards(), Seed::new(seed))
}

/// Returns the attempts in bins of 100 ms between two times, in tenths of a second.
fn bins(figures: &OutageFigures, from: usize, until: usize) -> Vec<u64> {
    figures.attempts.counts().iter().skip(from).take(until - from).map(|count| u64::from(*count)).collect()
}

/// Returns how many requests of before the horizon were never served.
fn failed(figures: &OutageFigures) -> u64 {
    figures.requests.total() - figures.served.total()
}

/// Returns how many attempts from a time on, in tenths of a second, had no success.
fn wasted(figures: &OutageFigures, from: usize) -> u64 {
    let successes: u64 = figures.successes.counts().iter().skip(from).map(|count| u64::from(*count)).sum();
    bins(figures, from, usize::MAX / 2).iter().sum::<u64>().saturating_sub(successes)
}

/// The case of the table in the core's documentation: 100 calls a second, a server of 120, and `Retry-After: 10`. This
/// server has a long queue.
#[test]
fn q1_one_hint_holds_all_calls_and_a_paced_return_fails_almost_none() {
    let scenario = refused(100.0, 120.0, 3_000, 20, 30).retry_after(at(10));
    for seed in 0..5 {
        let (held, alone) = (run(scenario, 4, quiet, seed), run(scenario, 4, ProcessGuards::none, seed));
        let (in_pause, most) =
            (bins(&held, 202, 300).iter().sum::<u64>(), *bins(&held, 301, 600).iter().max().unwrap());
        let figures = (in_pause, most, failed(&held), held.held);
        assert!(in_pause <= 1, "{figures:?}, seed {seed}");
        assert!(most <= 60 && failed(&held) <= 3, "{figures:?}, seed {seed}");
        assert!(held.held >= 900, "{figures:?}, seed {seed}");
        let alone = bins(&alone, 202, 300).iter().sum::<u64>();
        assert!(alone > 900, "without it: {alone}, seed {seed}");
    }
}

/// A server with a short queue, whose refusals ask for a wait each. If a hint in a return began another pause, more
/// calls would pile up in it than a server near its limit can take off, and pause would follow pause.
#[test]
fn a_hint_in_a_return_does_not_begin_a_series_of_pauses_up_to_the_limit_of_the_server() {
    for (hint, rate) in
        [2, 10].into_iter().flat_map(|hint| [30.0, 60.0, 90.0, 100.0, 110.0, 115.0].map(|rate| (hint, rate)))
    {
        let scenario = refused(rate, 120.0, 120, 20, 30).retry_after(at(hint)).horizon(at(600));
        let held = run(scenario, 4, quiet, 1);
        let share = 1.0 - failed(&held) as f64 / held.requests.total() as f64;
        assert!(share >= 0.995, "{share} of the calls succeed at {rate} per second, with a hint of {hint} s");
    }
}

/// ScyllaDB #30775.
#[test]
fn frozen_calls_do_not_start_together() {
    let scenario = refused(500.0, 700.0, 70, 5, 7);
    for seed in 0..2 {
        let (held, alone) = (run(scenario, 8, quiet_by_refusals, seed), run(scenario, 8, ProcessGuards::none, seed));
        let (probes, most) = (bins(&held, 52, 70).iter().sum::<u64>(), *bins(&held, 70, 370).iter().max().unwrap());
        let figures = (probes, most, failed(&held), wasted(&held, 50), wasted(&alone, 50));
        assert!(probes <= 2, "{figures:?}, seed {seed}");
        assert!(most <= 120, "{figures:?}, seed {seed}");
        assert!(failed(&held) == 0 && wasted(&held, 50) * 4 < wasted(&alone, 50), "{figures:?}, seed {seed}");
    }
}

/// git-lfs #6322.
#[test]
fn a_hint_beyond_the_limit_pauses_for_the_limit() {
    let guards = || {
        let quiet = QuietPeriod::builder().max(at(8)).max_waiting(100_000);
        ProcessGuards::none().guard(quiet.build().unwrap())
    };
    let scenario = refused(100.0, 120.0, 60, 20, 25).retry_after(at(3_600)).build().unwrap();
    let policy = policy(4).to_builder().max_hint(at(7_200)).build().unwrap();
    let figures = scenario.run(&policy, |_| guards(), Seed::new(1));
    let sum = |from, until| bins(&figures, from, until).iter().sum::<u64>();
    assert_eq!(sum(202, 279), 0);
    assert!(sum(280, 291) > 50, "{} attempts in the second after", sum(280, 291));
}

/// icechunk #2408.
#[test]
fn refusals_are_backpressure_and_not_failures() {
    let scenario = refused(200.0, 400.0, 200, 5, 25);
    for seed in 0..2 {
        let (held, alone) = (run(scenario, 4, quiet_by_refusals, seed), run(scenario, 4, ProcessGuards::none, seed));
        let probes = bins(&held, 53, 250).iter().sum::<u64>();
        assert!(failed(&alone) > 1_000, "without it {} calls fail", failed(&alone));
        assert!(failed(&held) <= 1, "{} calls fail, seed {seed}", failed(&held));
        // 1, 2, 4 and 8 s end within it: a probe each.
        assert!((1..=5).contains(&probes), "{probes}, seed {seed}");
    }
}

/// 1,000 calls a second before a server of 700.
fn overload() -> OutageScenarioBuilder {
    let scenario = OutageScenario::builder(1_000.0).capacity(700.0).queue(70).processes(1).horizon(at(40));
    scenario.outage(OutageKind::Throttle, at(10), Duration::ZERO)
}

#[test]
fn p1_a_pacer_uses_the_capacity_almost_without_refusals() {
    let guards = || ProcessGuards::none().guard(Pacer::new());
    for seed in 0..2 {
        let figures = run(overload(), 4, guards, seed);
        let successes: u64 = figures.successes.counts().iter().skip(100).map(|count| u64::from(*count)).sum();
        let attempts: u64 = bins(&figures, 100, 400).iter().sum();
        let (goodput, refused) = (successes as f64 / (700.0 * 30.0), wasted(&figures, 100) as f64 / attempts as f64);
        assert!(goodput >= 0.95 && refused <= 0.02, "goodput {goodput}, refused {refused}, seed {seed}");
    }
    let alone = run(overload(), 4, ProcessGuards::none, 1);
    let attempts: u64 = bins(&alone, 100, 400).iter().sum();
    assert!(wasted(&alone, 100) * 10 > attempts, "without it: {} of {attempts}", wasted(&alone, 100));
}

#[test]
fn p3_a_server_that_refuses_nothing_delays_nothing() {
    let both = || quiet().guard(Pacer::new());
    let scenario = OutageScenario::builder(500.0).outage(OutageKind::Stall, at(20), Duration::ZERO).horizon(at(60));
    let (held, alone) = (run(scenario, 4, both, 1), run(scenario, 4, ProcessGuards::none, 1));
    assert_eq!((held.held, held.attempts, held.successes), (0, alone.attempts, alone.successes));
}

#[test]
fn the_same_seed_gives_the_same_figures_on_every_thread() {
    let figures = || {
        let guards = |_| quiet().guard(Pacer::new()).budget(Tokens::new());
        let scenario = refused(600.0, 800.0, 60, 5, 8).processes(7).retry_after(at(2)).build().unwrap();
        scenario.run(&policy(4), guards, Seed::new(9))
    };
    let first = figures();
    assert!(first.held > 300, "{}", first.held);
    let others: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(figures)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(others.iter().all(|other| *other == first));
}

#[test]
fn an_observed_quiet_period_changes_nothing() {
    let observed = || {
        let control = RetryControl::new();
        control.set(ControlMode::Observed);
        ProcessGuards::none().guard(Controlled::new(Arc::new(QuietPeriod::new()), control))
    };
    let scenario = refused(100.0, 120.0, 60, 20, 25).retry_after(at(5));
    let (held, alone) = (run(scenario, 4, observed, 1), run(scenario, 4, ProcessGuards::none, 1));
    assert_eq!((held.held, held.attempts, held.successes), (0, alone.attempts, alone.successes));
}

#[test]
fn calls_that_may_not_wait_are_rejected_and_counted() {
    let failing = || ProcessGuards::none().guard(QuietPeriod::builder().max_waiting(0).build().unwrap());
    let scenario = refused(100.0, 120.0, 60, 20, 25).retry_after(at(5));
    let figures = run(scenario, 4, failing, 1);
    assert!(figures.held == 0 && figures.rejected > 400, "{}", figures.rejected);
}
