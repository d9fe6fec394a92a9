//! Attempt latencies. Under loom there are eight buckets from 1.024 µs on, and two attempts suffice for a quantile.

use core::time::Duration;

use ::loom::sync::Arc;
use stagger_core::Ratio;
use stagger_core::hedge::Latencies;

use super::support::{model, model_with, together};

const FAST: Duration = Duration::from_nanos(1_024);
const SLOW: Duration = Duration::from_nanos(2_000);

#[test]
fn loom_concurrent_records_are_all_counted() {
    model(|| {
        let latencies = Arc::new(Latencies::new(1_000));
        let fast: fn(&Latencies) -> u64 = |latencies| {
            latencies.record(FAST);
            1
        };
        let slow: fn(&Latencies) -> u64 = |latencies| {
            latencies.record(SLOW);
            1
        };
        assert_eq!(together(&latencies, &[fast, slow, slow]), u64::from(latencies.len()));
        assert!(latencies.quantile(Ratio::percent(34)).unwrap() < Duration::from_nanos(1_200));
        assert!(latencies.quantile(Ratio::percent(67)).unwrap() > Duration::from_nanos(1_900));
    });
}

/// While one thread halves the counts, the other fills and halves them twice.
#[test]
fn loom_concurrent_halving_does_not_underflow() {
    model_with(1, || {
        let latencies = Arc::new(Latencies::new(4));
        (0..7).for_each(|_| latencies.record(FAST));
        let once: fn(&Latencies) -> u64 = |latencies| {
            latencies.record(SLOW);
            0
        };
        let often: fn(&Latencies) -> u64 = |latencies| {
            (0..8).for_each(|_| latencies.record(SLOW));
            0
        };
        together(&latencies, &[once, often]);
        // A count that underflowed would be about four billion.
        (0..3).for_each(|_| latencies.record(SLOW));
        assert!(latencies.quantile(Ratio::percent(99)).unwrap() > Duration::from_nanos(1_900));
    });
}
