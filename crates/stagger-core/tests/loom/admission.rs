//! Admission.

use core::time::Duration;

use ::loom::sync::Arc;
use stagger_core::admission::{Admission, Admit};

use super::support::{NOW, model, together};

/// One a millisecond.
fn admission(burst: u32) -> Arc<Admission> {
    Arc::new(Admission::per_second(1_000).burst(burst).build().unwrap())
}

/// 0 for who is let in, else the wait in milliseconds.
fn wait(admitted: Admit) -> u64 {
    match admitted {
        Admit::Now => 0,
        Admit::At(reservation) => reservation.after.as_millis() as u64,
        other => panic!("{other:?}: there are five minutes of appointments"),
    }
}

#[test]
fn loom_room_is_given_once_and_everyone_else_has_an_appointment_alone() {
    for (burst, want) in [(1, 1 + 2), (2, 1)] {
        model(move || {
            let ask: fn(&Admission) -> u64 = |admission| wait(admission.try_admit(NOW));
            assert_eq!(together(&admission(burst), &[ask, ask, ask]), want, "of a burst of {burst}");
        });
    }
}

#[test]
fn loom_who_comes_to_its_appointment_is_let_in_and_nobody_else_in_its_place() {
    model(|| {
        let admission = admission(1);
        assert_eq!(admission.try_admit(NOW), Admit::Now);
        let Admit::At(reservation) = admission.try_admit(NOW) else { panic!("the room is used up") };
        let then = NOW.saturating_add(reservation.after);
        let other = {
            let admission = admission.clone();
            ::loom::thread::spawn(move || admission.try_admit(then))
        };
        assert_eq!(admission.admit_reserved(&reservation.token, then), Admit::Now);
        let Admit::At(next) = other.join().unwrap() else { panic!("it came in beside the reservation") };
        assert_eq!(next.after, Duration::from_millis(1));
    });
}
