use stagger_core::guard::{Limiter, LimiterPermit, Turn};
use stagger_core::pacer::Pacer;
use stagger_core::{Instant, Outcome};

use super::states::Harness;
use crate::laws::support::ms;

/// The intervals at the end of each second: 40 calls per second ask, and a server admits one every 50 ms, and from the
/// 25th second on one every 25 ms. A change of the algorithm changes this trace.
#[test]
fn the_trace_of_a_run_is_frozen() {
    let mut harness = Harness::new(Pacer::builder());
    let start = harness.now;
    let (mut waiting, mut free_at, mut trace) = (Vec::new(), Instant::ZERO, Vec::new());
    for step in 0..1_600_u64 {
        harness.now = start.saturating_add(ms(step * 25));
        waiting.push(LimiterPermit::NONE);
        let mut still = Vec::new();
        for permit in waiting {
            match harness.pacer.admit(permit, None, &harness.now) {
                Turn::Now(permit) => {
                    let is_free = harness.now >= free_at;
                    if is_free {
                        free_at = harness.now.saturating_add(ms(if step < 1_000 { 50 } else { 25 }));
                    }
                    let outcome = if is_free { Outcome::Success } else { Outcome::throttled(None) };
                    harness.pacer.record(permit, &outcome, &harness.now);
                }
                Turn::Wait { permit, .. } => still.push(permit),
                turn @ Turn::Rejected { .. } => panic!("{turn:?}"),
            }
        }
        waiting = still;
        if step % 80 == 79 {
            trace.push(harness.pacer.snapshot().interval.as_micros());
        }
    }
    assert_eq!(trace, GOLDEN);
}

/// Microseconds, every two seconds.
const GOLDEN: [u128; 20] = [
    47_546, 49_341, 52_664, 46_742, 57_273, 53_960, 50_836, 55_450, 49_341, 54_259, 57_273, 50_360, 44_698, 32_594,
    28_143, 25_801, 23_651, 25_943, 26_434, 24_308,
];
