//! Admission control.

use core::time::Duration;

use ::loom::sync::Arc;
use stagger_core::admission::{Admission, Admit};

use super::support::{NOW, model, together};

/// Creates an admission control that admits one client per millisecond.
fn admission(burst: u32) -> Arc<Admission> {
    Arc::new(Admission::per_second(1_000).burst(burst).build().unwrap())
}

/// Returns 0 if admitted, else the wait in milliseconds.
fn wait(admitted: Admit) -> u64 {
    match admitted {
        Admit::Now => 0,
        Admit::At(reservation) => reservation.after.as_millis() as u64,
        other => panic!("{other:?}: max_wait is five minutes"),
    }
}

#[test]
fn loom_the_burst_is_admitted_once_and_reservations_are_distinct() {
    for (burst, want) in [(1, 1 + 2), (2, 1)] {
        model(move || {
            let admit: fn(&Admission) -> u64 = |admission| wait(admission.try_admit(NOW));
            assert_eq!(together(&admission(burst), &[admit, admit, admit]), want, "burst {burst}");
        });
    }
}

#[test]
fn loom_a_reservation_is_not_taken_by_another_client() {
    model(|| {
        let admission = admission(1);
        assert_eq!(admission.try_admit(NOW), Admit::Now);
        let Admit::At(reservation) = admission.try_admit(NOW) else { panic!("the burst should be used up") };
        let then = NOW.saturating_add(reservation.after);
        let other = {
            let admission = admission.clone();
            ::loom::thread::spawn(move || admission.try_admit(then))
        };
        assert_eq!(admission.admit_reserved(&reservation.token, then), Admit::Now);
        let Admit::At(next) = other.join().unwrap() else {
            panic!("a client without a reservation was admitted in its place")
        };
        assert_eq!(next.after, Duration::from_millis(1));
    });
}
