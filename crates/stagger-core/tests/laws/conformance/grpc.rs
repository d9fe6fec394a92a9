//! GR: gRPC, proposal A6.

use stagger_core::profile::GRPC_A6;
use stagger_core::{FailureKind, Outcome, ServerHint, StopReason};

use crate::laws::support::{Call, ms, secs};

#[test]
fn gr_01_jitter_is_20_percent_around_the_capped_ceiling() {
    let want = [(80, 120), (160, 240), (320, 480), (640, 960), (800, 1200), (800, 1200)];
    for (n, (lo, hi)) in (1..).zip(want) {
        assert_eq!(GRPC_A6.policy().bounds(n), Some((ms(lo), ms(hi))), "retry {n}");
    }
}

#[test]
fn gr_09_server_pushback_is_used_exactly() {
    let pushback = Outcome::Failed { kind: FailureKind::Transient, hint: Some(ServerHint::AtLeast(secs(1))) };
    assert_eq!(Call::new(&GRPC_A6.policy()).run([pushback]).waits, [secs(1)]);
    let never = Outcome::Failed { kind: FailureKind::Transient, hint: Some(ServerHint::DoNotRetry) };
    assert_eq!(Call::new(&GRPC_A6.policy()).run([never]).stop, Some(StopReason::Hint));
}

/// In gRPC the call ends at its deadline, during the backoff. stagger stops as soon as the delay would pass the
/// deadline.
#[test]
fn gr_23_a_backoff_beyond_the_deadline_stops_at_once() {
    let policy = GRPC_A6.policy().to_builder().base(secs(5)).cap(secs(5)).build().unwrap();
    let trace = Call::new(&policy).deadline(Call::START.saturating_add(secs(1))).failing();
    assert_eq!((trace.attempts, trace.waits, trace.stop), (1, vec![], Some(StopReason::Deadline)));
}
