//! One client after the other.

use core::time::Duration;
use std::sync::Arc;
use std::thread;

use proptest::prelude::*;
use stagger_core::{admission::Admission, admission::AdmissionError, admission::Admit, admission::Reservation};

use crate::laws::support::{at, cases, ms, secs};

fn later(answer: Admit) -> Reservation {
    match answer {
        Admit::At(appointment) => appointment,
        answer => panic!("{answer:?}"),
    }
}

#[test]
fn a_burst_comes_in_and_the_others_get_appointments_one_interval_apart() {
    let admission = Admission::per_second(100).burst(3).build().unwrap();
    let now = at(secs(9));
    assert_eq!([(); 3].map(|()| admission.try_admit(now)), [Admit::Now; 3]);
    let waits = [(); 4].map(|()| later(admission.try_admit(now)).after);
    assert_eq!(waits, [10, 20, 30, 40].map(ms));
    let snapshot = admission.snapshot(now);
    assert_eq!((snapshot.reserved, snapshot.available), (5, 0));
    assert_eq!(snapshot.next_in, ms(50));
}

#[test]
fn whoever_is_too_early_is_told_how_long_to_wait_for_the_same_appointment() {
    let admission = Admission::per_second(1).burst(1).build().unwrap();
    assert_eq!(admission.try_admit(at(secs(9))), Admit::Now);
    let appointment = later(admission.try_admit(at(secs(9))));
    let again = later(admission.admit_reserved(&appointment.token, at(secs(9) + ms(400))));
    assert_eq!((again.after, again.token), (ms(600), appointment.token));
    // Clocks run apart a little.
    assert_eq!(admission.admit_reserved(&appointment.token, at(secs(9) + ms(950))), Admit::Now);
}

/// Its clock has gone back, or the ticket is of another server with the same secret.
#[test]
fn whoever_is_earlier_than_anybody_was_told_to_come_has_no_appointment() {
    let admission = Admission::per_second(1).burst(1).max_wait(secs(2)).build().unwrap();
    assert_eq!(admission.try_admit(at(secs(9))), Admit::Now);
    let appointment = later(admission.try_admit(at(secs(9))));
    assert_eq!(later(admission.admit_reserved(&appointment.token, at(secs(8)))).token, appointment.token);
    assert_eq!(admission.admit_reserved(&appointment.token, at(secs(7))), Admit::Full(secs(2)));
}

#[test]
fn what_room_there_is_is_counted_in_admissions() {
    let admission = Admission::per_second(10).burst(5).build().unwrap();
    let now = at(secs(9));
    for left in (0..5).rev() {
        assert_eq!(admission.snapshot(now).available, left + 1);
        assert_eq!(admission.try_admit(now), Admit::Now);
    }
    assert_eq!(admission.snapshot(now).available, 0);
}

#[test]
fn an_appointment_counts_from_so_early_to_so_late_as_was_set() {
    let admission = Admission::per_second(1).burst(1).tolerance(ms(0), secs(2)).build().unwrap();
    assert_eq!(admission.try_admit(at(secs(9))), Admit::Now);
    let appointment = later(admission.try_admit(at(secs(9))));
    assert_eq!(
        later(admission.admit_reserved(&appointment.token, at(secs(10) - ms(1)))).after,
        ms(1),
        "nor is it early"
    );
    assert_eq!(admission.admit_reserved(&appointment.token, at(secs(12))), Admit::Now);
    // As if it had no ticket, and somebody else came a millisecond ago.
    let next = later(admission.admit_reserved(&appointment.token, at(secs(12) + ms(1))));
    assert_eq!(next.after, ms(999));
    assert_ne!(next.token, appointment.token);
}

/// An appointment that nobody comes to is room for somebody else.
#[test]
fn what_is_not_claimed_is_given_to_others() {
    let admission = Admission::per_second(10).burst(1).build().unwrap();
    let now = secs(9);
    assert_eq!(admission.try_admit(at(now)), Admit::Now);
    for _ in 0..50 {
        let _ = later(admission.try_admit(at(now)));
    }
    // Nobody comes for a second, and those who ask then come in at the full rate.
    let came = (0..1_000).filter(|after| admission.try_admit(at(now + secs(1) + ms(*after))) == Admit::Now).count();
    assert_eq!(came, 10);
}

#[test]
fn what_is_too_far_away_is_not_promised() {
    let admission = Admission::per_second(1).burst(1).max_wait(secs(3)).build().unwrap();
    let now = at(secs(9));
    assert_eq!(admission.try_admit(now), Admit::Now);
    assert_eq!([(); 3].map(|()| later(admission.try_admit(now)).after), [1, 2, 3].map(secs));
    assert_eq!(admission.try_admit(now), Admit::Full(secs(3)));
    // A second later the line is a second shorter, and whoever asks stands at its end.
    assert_eq!(later(admission.try_admit(at(secs(10)))).after, secs(3));
}

#[test]
fn what_makes_no_sense_is_refused_with_the_way_out() {
    for (builder, want, way_out) in [
        (
            Admission::per_second(0),
            AdmissionError::Rate(0),
            "rate 0 is outside 1 to 1000000000 a second: use the rate that the server can take",
        ),
        (
            Admission::per_second(2_000_000_000),
            AdmissionError::Rate(2_000_000_000),
            "use the rate that the server can take",
        ),
        (Admission::per_second(1).burst(0), AdmissionError::Burst, "use 1 or more"),
        (
            Admission::per_second(1).max_wait(ms(999)),
            AdmissionError::MaxWait { max_wait: ms(999), interval: secs(1) },
            "raise max_wait or the rate",
        ),
    ] {
        let error = builder.build().unwrap_err();
        assert_eq!(error, want);
        assert!(error.to_string().contains(way_out), "{error}");
    }
}

#[test]
fn many_threads_are_let_in_no_faster_than_one() {
    let admission = Arc::new(Admission::per_second(1_000).burst(50).build().unwrap());
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let admission = Arc::clone(&admission);
            thread::spawn(move || {
                let mut came = 0;
                let mut slots = Vec::new();
                for _ in 0..5_000 {
                    match admission.try_admit(at(secs(1))) {
                        Admit::Now => came += 1,
                        Admit::At(appointment) => slots.push(appointment.after),
                        answer => panic!("{answer:?}"),
                    }
                }
                (came, slots)
            })
        })
        .collect();
    let (mut came, mut slots) = (0, Vec::new());
    for thread in threads {
        let (c, s) = thread.join().unwrap();
        came += c;
        slots.extend(s);
    }
    slots.sort_unstable();
    assert_eq!(came, 50);
    // Every appointment was given once, and none was left out.
    assert!(slots.iter().copied().eq((1..=19_950).map(ms)));
}

proptest! {
    #![proptest_config(cases(128))]

    /// Whatever comes when, with tickets or without.
    #[test]
    fn no_window_lets_in_more_than_the_rate_and_the_burst_and_late_comers(
        rate in 1..2_000_u32, burst in 1..50_u32,
        steps in prop::collection::vec((0..30_u64, any::<bool>()), 1..300),
    ) {
        let admission = Admission::per_second(rate).burst(burst).tolerance(Duration::ZERO, Duration::ZERO).build().unwrap();
        let (mut now, mut came, mut held) = (secs(1), Vec::new(), Vec::new());
        for (later, tickets_first) in steps {
            now += ms(later);
            // Punctual to the nanosecond: those whose appointment lies before this step.
            held.sort_by_key(|(slot, _)| *slot);
            while tickets_first && held.first().is_some_and(|(slot, _)| *slot <= now) {
                let (slot, ticket) = held.remove(0);
                if admission.admit_reserved(&ticket, at(slot)) == Admit::Now {
                    came.push(slot);
                }
            }
            match admission.try_admit(at(now)) {
                Admit::Now => came.push(now),
                Admit::At(appointment) => held.push((now + appointment.after, appointment.token)),
                _ => {}
            }
        }
        came.sort_unstable();
        let interval = Duration::from_nanos(1_000_000_000_u64.div_ceil(u64::from(rate)));
        for (at, first) in came.iter().enumerate() {
            for (count, last) in came[at..].iter().enumerate().skip(1) {
                let room = (*last - *first).as_nanos() / interval.as_nanos();
                // A ticket holder may come in the same instant as the one that has taken its place before.
                prop_assert!(count as u128 <= room + 2 * u128::from(burst), "{count} within {:?}", *last - *first);
            }
        }
    }
}
