//! Tests of events in the same microsecond.

use core::time::Duration;

use stagger_core::{Policy, Seed};
use stagger_sim::reconnect::ReconnectScenario;

use crate::sim::reference::moments;

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
