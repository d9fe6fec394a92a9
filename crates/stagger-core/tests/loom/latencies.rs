//! How long attempts take. Here there are eight buckets, from 1.024 µs on, and two attempts are enough.

use core::time::Duration;

use ::loom::sync::Arc;
use stagger_core::Ratio;
use stagger_core::hedge::Latencies;

use super::support::{model, model_with, together};

const QUICK: Duration = Duration::from_nanos(1_024);
const SLOW: Duration = Duration::from_nanos(2_000);

#[test]
fn loom_attempts_that_end_together_are_all_counted() {
    model(|| {
        let latencies = Arc::new(Latencies::new(1_000));
        let quick: fn(&Latencies) -> u64 = |latencies| {
            latencies.record(QUICK);
            1
        };
        let slow: fn(&Latencies) -> u64 = |latencies| {
            latencies.record(SLOW);
            1
        };
        assert_eq!(together(&latencies, &[quick, slow, slow]), u64::from(latencies.len()));
        assert!(latencies.quantile(Ratio::percent(34)).unwrap() < Duration::from_nanos(1_200));
        assert!(latencies.quantile(Ratio::percent(67)).unwrap() > Duration::from_nanos(1_900));
    });
}

/// While one thread has the counts halved, the other fills and halves them twice.
#[test]
fn loom_halving_beside_halving_never_takes_away_more_than_there_is() {
    model_with(1, || {
        let latencies = Arc::new(Latencies::new(4));
        (0..7).for_each(|_| latencies.record(QUICK));
        let once: fn(&Latencies) -> u64 = |latencies| {
            latencies.record(SLOW);
            0
        };
        let often: fn(&Latencies) -> u64 = |latencies| {
            (0..8).for_each(|_| latencies.record(SLOW));
            0
        };
        together(&latencies, &[once, often]);
        // If fewer than none were left in a bucket, they would be four thousand million.
        (0..3).for_each(|_| latencies.record(SLOW));
        assert!(latencies.quantile(Ratio::percent(99)).unwrap() > Duration::from_nanos(1_900));
    });
}
