//! Admission control.

use core::time::Duration;

use ::loom::sync::Arc;
use stagger_core::admission::{Admission, Admit, Secret};

use super::support::{NOW, model, together};

/// Creates an admission control that admits one client per millisecond.
fn admission(burst: u32) -> Arc<Admission> {
    Arc::new(Admission::per_second(1_000).burst(burst).build(Secret::new([7; 16])).unwrap())
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

/// Redeems or not; a client whose token is not valid and for whom there is no room is told the time of one admission.
fn is_admitted(admitted: Admit) -> u64 {
    match admitted {
        Admit::Now => 1,
        Admit::Full(wait) if wait == Duration::from_millis(1) => 0,
        other => panic!("{other:?}: the token is due"),
    }
}

#[test]
fn loom_a_reservation_that_two_clients_show_admits_one() {
    model(|| {
        let admission = admission(1);
        assert_eq!(admission.try_admit(NOW), Admit::Now);
        let Admit::At(reservation) = admission.try_admit(NOW) else { panic!("the burst should be used up") };
        let then = NOW.saturating_add(reservation.after);
        let others: Vec<_> = (0..2)
            .map(|_| {
                let admission = admission.clone();
                ::loom::thread::spawn(move || is_admitted(admission.admit_reserved(&reservation.token, then)))
            })
            .collect();
        let here = is_admitted(admission.admit_reserved(&reservation.token, then));
        let there: u64 = others.into_iter().map(|other| other.join().unwrap()).sum();
        assert_eq!(here + there, 1);
    });
}

/// A second after its time, a reservation is free for others: it goes to its client or to one other.
#[test]
fn loom_a_late_client_and_a_newcomer_do_not_share_a_reservation() {
    model(|| {
        let admission = Arc::new(
            Admission::per_second(1).burst(1).max_wait(Duration::from_secs(9)).build(Secret::new([7; 16])).unwrap(),
        );
        assert_eq!(admission.try_admit(NOW), Admit::Now);
        let reservations = [(); 3].map(|()| match admission.try_admit(NOW) {
            Admit::At(reservation) => reservation,
            other => panic!("{other:?}"),
        });
        let then = NOW.saturating_add(Duration::from_secs(2));
        let newcomer = {
            let admission = admission.clone();
            ::loom::thread::spawn(move || u64::from(admission.try_admit(then) == Admit::Now))
        };
        let late = u64::from(admission.admit_reserved(&reservations[0].token, then) == Admit::Now);
        let on_time = u64::from(admission.admit_reserved(&reservations[1].token, then) == Admit::Now);
        assert_eq!((late + newcomer.join().unwrap(), on_time), (1, 1));
    });
}

/// The time of the last reservation has come without its client. Whoever comes then takes new capacity, and no thread
/// that comes at the same time takes that for a reservation without a client.
#[test]
fn loom_capacity_that_one_client_took_is_not_given_to_another() {
    model(|| {
        let admission = Arc::new(
            Admission::per_second(1)
                .burst(1)
                .tolerance(Duration::ZERO, Duration::ZERO)
                .build(Secret::new([7; 16]))
                .unwrap(),
        );
        let newcomer: fn(&Admission) -> u64 = |admission| u64::from(admission.try_admit(NOW) == Admit::Now);
        assert_eq!(together(&admission, &[newcomer, newcomer, newcomer]), 1);
    });
}
