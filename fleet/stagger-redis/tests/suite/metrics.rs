//! The metrics of a fleet, and their documented names.

use metrics_util::debugging::{DebugValue, DebuggingRecorder};
use stagger_redis::Fleet;

use super::sharing::until;
use super::worker::Redis;

const CONTRACT: &str = include_str!("../../src/metrics.md");

/// Returns the names in the table.
fn names() -> Vec<&'static str> {
    let names = CONTRACT.lines().skip(2).filter_map(|line| line.split('`').nth(1));
    names.collect()
}

#[tokio::test]
async fn every_metric_is_recorded_under_its_documented_name() {
    let recorder = DebuggingRecorder::new();
    let snapshotter = recorder.snapshotter();
    recorder.install().unwrap();
    stagger_redis::describe_metrics();
    let mut redis = Redis::start(&[]);
    let fleet = Fleet::builder(&redis.url(), 1).namespace("shop").build().unwrap();
    let tokens = fleet.tokens("t").build().unwrap();
    let window = fleet.window("t").build().unwrap();
    let breaker = fleet.breaker("t").build().unwrap();
    let quiet = fleet.quiet_period("t").build().unwrap();
    let admission = fleet.admission("t", 100, stagger::admission::Secret::new([7; 16])).build().unwrap();
    fleet.controls(&stagger::control::RetryControls::new());
    until(|| fleet.snapshot().reports >= 2).await;
    redis.server.kill();
    until(|| fleet.snapshot().losses == 1 && fleet.snapshot().failures > 3).await;
    let recorded = snapshotter.snapshot().into_vec();
    let mut found: Vec<_> = recorded.iter().map(|(key, ..)| key.key().name()).collect();
    found.sort_unstable();
    found.dedup();
    let mut want = names();
    want.sort_unstable();
    assert_eq!(found, want);
    let value = |name: &str| recorded.iter().find(|(key, ..)| key.key().name() == name).map(|(.., value)| value);
    assert!(matches!(value("stagger_fleet_leased"), Some(DebugValue::Gauge(leased)) if leased.0 < 0.5));
    assert!(matches!(value("stagger_fleet_losses_total"), Some(DebugValue::Counter(1))));
    assert!(recorded.iter().all(|(_, _, description, _)| description.is_some()));
    drop((tokens, window, breaker, quiet, admission));
}
