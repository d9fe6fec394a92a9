//! Compares simulations with closed forms.

use core::time::Duration;

use stagger_core::{Policy, PolicyBuilder, Seed};
use stagger_sim::reconnect::ReconnectScenario;

use super::tables::{TENTH, run};
use crate::sim::reference::moments;

fn full() -> PolicyBuilder {
    Policy::exponential(Duration::from_millis(500), Duration::from_secs(86_400)).unlimited_attempts()
}

/// Checks full jitter whose cap does not bind, with T seconds of work for the server: `(ln(2(m − 1)T / b) − 1) / ln m`.
#[test]
fn attempts_with_full_jitter_match_the_closed_form() {
    for (multiplier, seconds) in [(2.0, 20.0), (2.0, 50.0), (2.0, 100.0), (4.0, 20.0), (1.5, 20.0), (1.5, 50.0)] {
        let policy = full().multiplier(multiplier).build().unwrap();
        let scenario = ReconnectScenario::builder(100_000).rate(100_000.0 / seconds).backlog(1_000).build().unwrap();
        let got = scenario.run(&policy, Seed::new(1)).attempts_per_client();
        let want = ((2.0 * (multiplier - 1.0) * seconds / 0.5).ln() - 1.0) / multiplier.ln();
        assert!((got / want - 1.0).abs() < 0.05, "×{multiplier}, {seconds} s: {got}, expected {want}");
    }
}

/// Compares efficiencies in percent with the published values for a million clients.
#[test]
fn efficiencies_match_the_published_values() {
    for (name, want) in [
        ("full", [16.0, 71.0, 99.0]),
        ("equal", [17.0, 60.0, 76.0]),
        ("decorr", [16.0, 73.0, 96.0]),
        ("fixed1s", [3.3, 75.0, 79.0]),
        ("expo", [3.3, 2.9, 3.3]),
        ("retry_after", [51.0, 99.0, 100.0]),
    ] {
        let efficiency = run(&TENTH, name, 1).efficiency();
        let got = [efficiency.attempts, efficiency.time, efficiency.mean_time].map(|share| 100.0 * share.unwrap());
        // With a tenth of the clients, the tail is slightly shorter.
        let close = got.iter().zip(want).all(|(got, want)| (got - want).abs() < 0.5 + 0.025 * want);
        assert!(close, "{name}: {got:?}, expected {want:?}");
    }
}

/// Checks that arrivals spread evenly over the minimum recovery time need a backlog of `√(π/2 · N)`: the range of a
/// Brownian bridge.
#[test]
fn a_spread_over_the_min_recovery_time_needs_a_backlog_of_the_root_of_the_clients() {
    let policy = full().spread(Duration::from_secs(100)).build().unwrap();
    let scenario = ReconnectScenario::builder(100_000).rate(1_000.0).backlog(10_000).build().unwrap();
    let runs = (0..16).map(|seed| scenario.run(&policy, Seed::new(seed)));
    let (mean, deviation) = moments(runs.map(|run| {
        assert_eq!(run.attempts, run.clients, "no attempt was rejected");
        run.peak_backlog as f64
    }));
    let want = (core::f64::consts::FRAC_PI_2 * 100_000.0).sqrt();
    assert!(
        (mean - want).abs() < 4.0 * deviation / 4.0 && deviation < 0.5 * want,
        "{mean} ± {deviation}, expected {want}"
    );
}

/// The clients of the runs below, of which several attempts arrive in the same microsecond.
const CLIENTS: u64 = 50_000;

/// Returns the times at which 99 % of the clients are connected, relative to the time that the server needs for all of
/// them, where every length of scenario and policy is multiplied by `scale`. With a scale of 1, five attempts arrive in
/// each microsecond.
fn relative_t99(scale: u32) -> (f64, f64) {
    let micros = |length: u64| Duration::from_micros(length) * scale;
    let rate = 5e6 / f64::from(scale);
    let scenario = ReconnectScenario::builder(CLIENTS)
        .rate(rate)
        .backlog(1_000)
        .one_way(micros(50), micros(200))
        .disconnect_window(Duration::ZERO);
    let scenario = scenario.horizon(micros(100_000_000)).build().unwrap();
    let policy = Policy::exponential(micros(5_000), micros(300_000)).unlimited_attempts().build().unwrap();
    moments((1..=4).map(|seed| {
        let t99 = scenario.run(&policy, Seed::new(seed)).t99.unwrap();
        t99.as_secs_f64() * rate / CLIENTS as f64
    }))
}

/// Checks that the model has no length of its own: if clients with a low number were first in each microsecond, those
/// with a high number would be late where several attempts arrive in one.
#[test]
fn ties_do_not_delay_the_last_clients() {
    let ((tied, tied_deviation), (spread, spread_deviation)) = (relative_t99(1), relative_t99(200));
    let chance = 4.0 * (tied_deviation.powi(2) / 4.0 + spread_deviation.powi(2) / 4.0).sqrt();
    assert!((tied / spread - 1.0).abs() < 0.02 + chance / spread, "{tied:.3} with ties, {spread:.3} without");
}
