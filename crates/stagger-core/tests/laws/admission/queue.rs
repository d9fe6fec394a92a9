//! The virtual queue: admission order, reservations, limits.

use core::time::Duration;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::thread;

use proptest::prelude::*;
use stagger_core::admission::{Admission, AdmissionError, Admit, Reservation, ReservationToken, Secret};
use stagger_core::machine::ReconnectStep;
use stagger_core::schedule::draw;
use stagger_core::{Outcome, Seed, ServerHint, profile};

use crate::laws::reconnect::link::{Link, connects, waits};
use crate::laws::support::{SECRET, at, cases, ms, secs};

fn reserved(answer: Admit) -> Reservation {
    match answer {
        Admit::At(reservation) => reservation,
        answer => panic!("{answer:?}"),
    }
}

#[test]
fn a_burst_is_admitted_and_reservations_are_an_interval_apart() {
    let admission = Admission::per_second(100).burst(3).build(SECRET).unwrap();
    let now = at(secs(9));
    assert_eq!([(); 3].map(|()| admission.try_admit(now)), [Admit::Now; 3]);
    let waits = [(); 4].map(|()| reserved(admission.try_admit(now)).after);
    assert_eq!(waits, [10, 20, 30, 40].map(ms));
    let snapshot = admission.snapshot(now);
    assert_eq!((snapshot.reserved, snapshot.available), (4, 0));
    assert_eq!(snapshot.next_in, ms(50));
    assert_eq!(admission.snapshot(now.saturating_add(ms(5))).reserved, 4, "all of them are still to come");
    assert_eq!(admission.snapshot(now.saturating_add(ms(10))).reserved, 3);
}

#[test]
fn an_early_client_keeps_its_reservation() {
    for (early, then) in [(ms(0), ms(1_000)), (ms(50), ms(950))] {
        let admission = Admission::per_second(1).burst(1).tolerance(early, secs(10)).build(SECRET).unwrap();
        assert_eq!(admission.try_admit(at(secs(9))), Admit::Now);
        let reservation = reserved(admission.try_admit(at(secs(9))));
        for wait in [ms(600), early + Duration::from_nanos(1)] {
            let again = reserved(admission.admit_reserved(&reservation.token, at(secs(10) - wait)));
            assert_eq!((again.after, again.token), (wait, reservation.token));
        }
        assert_eq!(admission.admit_reserved(&reservation.token, at(secs(9) + then)), Admit::Now);
    }
}

/// The clock stepped back, or the secret was used before.
#[test]
fn a_reservation_beyond_max_wait_is_invalid() {
    let admission = Admission::per_second(1).burst(1).max_wait(secs(2)).build(SECRET).unwrap();
    assert_eq!(admission.try_admit(at(secs(9))), Admit::Now);
    let reservation = reserved(admission.try_admit(at(secs(9))));
    assert_eq!(reserved(admission.admit_reserved(&reservation.token, at(secs(8)))).token, reservation.token);
    assert_eq!(admission.admit_reserved(&reservation.token, at(secs(7))), Admit::Full(secs(1)));
}

#[test]
fn available_counts_admissions() {
    let admission = Admission::per_second(10).burst(5).build(SECRET).unwrap();
    let now = at(secs(9));
    for remaining in (0..5).rev() {
        assert_eq!(admission.snapshot(now).available, remaining + 1);
        assert_eq!(admission.try_admit(now), Admit::Now);
    }
    assert_eq!(admission.snapshot(now).available, 0);
}

#[test]
fn a_reservation_is_valid_within_the_tolerance() {
    let admission = Admission::per_second(1).burst(1).tolerance(ms(0), secs(2)).build(SECRET).unwrap();
    assert_eq!(admission.try_admit(at(secs(9))), Admit::Now);
    let reservation = reserved(admission.try_admit(at(secs(9))));
    assert_eq!(
        reserved(admission.admit_reserved(&reservation.token, at(secs(10) - ms(1)))).after,
        ms(1),
        "one millisecond early"
    );
    // No room is left without a reservation.
    assert_eq!(admission.try_admit(at(secs(12))), Admit::Now);
    assert_eq!(admission.admit_reserved(&reservation.token, at(secs(12))), Admit::Now);
    assert_eq!(admission.admit_reserved(&reservation.token, at(secs(12))), Admit::Full(secs(1)), "redeemed");

    let expired = reserved(admission.try_admit(at(secs(12))));
    assert_eq!(expired.after, secs(1));
    assert_eq!(reserved(admission.try_admit(at(secs(13)))).after, secs(1));
    let late = at(secs(15) + Duration::from_nanos(1));
    assert_eq!(admission.try_admit(late), Admit::Now, "uses up the burst");
    assert_eq!(admission.admit_reserved(&expired.token, late), Admit::Full(secs(1)));
}

/// A reservation that its client does not use becomes available to others.
#[test]
fn unused_reservations_are_reassigned() {
    let admission = Admission::per_second(10).burst(1).build(SECRET).unwrap();
    let now = secs(9);
    assert_eq!(admission.try_admit(at(now)), Admit::Now);
    for _ in 0..50 {
        let _ = reserved(admission.try_admit(at(now)));
    }
    // No client comes for a second; then clients are admitted at the full rate.
    let admitted = (0..1_000).filter(|after| admission.try_admit(at(now + ms(1_100 + after))) == Admit::Now).count();
    assert_eq!(admitted, 10);
}

/// A second, as ARCHITECTURE.md promises: long enough for a client that opens a connection first.
#[test]
fn an_unclaimed_reservation_is_reassigned_after_a_second() {
    let admission = Admission::per_second(10).burst(1).build(SECRET).unwrap();
    assert_eq!(admission.try_admit(at(secs(9))), Admit::Now);
    let first = reserved(admission.try_admit(at(secs(9))));
    for _ in 0..19 {
        let _ = reserved(admission.try_admit(at(secs(9))));
    }
    // The first reservation is for 100 ms after the admission; its client does not come.
    let free = secs(9) + ms(100) + secs(1);
    assert_eq!(admission.snapshot(at(free - Duration::from_nanos(1))).available, 0);
    let _ = reserved(admission.try_admit(at(free - Duration::from_nanos(1))));
    assert_eq!(admission.snapshot(at(free)).available, 1);
    assert_eq!(admission.try_admit(at(free)), Admit::Now);
    assert_eq!(admission.admit_reserved(&first.token, at(free)), Admit::Full(ms(100)), "it came too late");
    // The next one is free an interval later, not at once.
    let _ = reserved(admission.try_admit(at(free)));
    assert_eq!(admission.try_admit(at(free + ms(100))), Admit::Now);
}

#[test]
fn reservations_beyond_max_wait_are_not_granted() {
    let admission = Admission::per_second(1).burst(1).max_wait(secs(3)).build(SECRET).unwrap();
    let now = at(secs(9));
    assert_eq!(admission.try_admit(now), Admit::Now);
    assert_eq!([(); 3].map(|()| reserved(admission.try_admit(now)).after), [1, 2, 3].map(secs));
    assert_eq!(admission.try_admit(now), Admit::Full(secs(3)));
    // A second later the queue is a second shorter, and a new client joins its end.
    assert_eq!(reserved(admission.try_admit(at(secs(10)))).after, secs(3));
}

#[test]
fn invalid_settings_are_rejected_with_a_fix() {
    let too_short = secs(1) - Duration::from_nanos(1);
    for (builder, want, fix) in [
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
            Admission::per_second(1).max_wait(too_short),
            AdmissionError::MaxWait { max_wait: too_short, interval: secs(1) },
            "raise max_wait or the rate",
        ),
    ] {
        let error = builder.build(SECRET).unwrap_err();
        assert_eq!(error, want);
        assert!(error.to_string().contains(fix), "{error}");
    }
    assert!(Admission::per_second(1).max_wait(secs(1)).build(SECRET).is_ok());
}

#[test]
fn a_secret_of_zero_is_rejected_with_a_fix() {
    let error = Admission::per_second(1).build(Secret::new([0; 16])).unwrap_err();
    assert_eq!(error, AdmissionError::Secret);
    assert!(error.to_string().contains("draw a random one when the server starts"), "{error}");
    let mut smallest = [0; 16];
    smallest[15] = 1;
    assert!(Admission::per_second(1).build(Secret::new(smallest)).is_ok());
}

/// The time for which a client is told to come is reserved whether the limit is used up or not.
#[test]
fn a_rejection_for_another_reason_reserves_the_present() {
    let admission = Admission::per_second(10).burst(5).build(SECRET).unwrap();
    let reservation = reserved(admission.reserve(at(secs(9))));
    assert_eq!(reservation.after, ms(0));
    for (then, want) in [(secs(9), Admit::Now), (secs(9), Admit::Now), (secs(9), Admit::Now)] {
        assert_eq!(admission.try_admit(at(then)), want);
    }
    assert_eq!(admission.admit_reserved(&reservation.token, at(secs(9) + secs(10))), Admit::Now);
}

#[test]
fn concurrent_threads_do_not_exceed_the_burst() {
    let admission = Arc::new(Admission::per_second(1_000).burst(50).build(SECRET).unwrap());
    let threads: Vec<_> = (0..4)
        .map(|_| {
            let admission = Arc::clone(&admission);
            thread::spawn(move || {
                let mut admitted = 0;
                let mut waits = Vec::new();
                for _ in 0..5_000 {
                    match admission.try_admit(at(secs(1))) {
                        Admit::Now => admitted += 1,
                        Admit::At(reservation) => waits.push(reservation.after),
                        answer => panic!("{answer:?}"),
                    }
                }
                (admitted, waits)
            })
        })
        .collect();
    let (mut admitted, mut waits) = (0, Vec::new());
    for thread in threads {
        let (c, s) = thread.join().unwrap();
        admitted += c;
        waits.extend(s);
    }
    waits.sort_unstable();
    assert_eq!(admitted, 50);
    // Every reservation was granted exactly once, without gaps.
    assert!(waits.iter().copied().eq((1..=19_950).map(ms)));
}

#[test]
fn threads_that_show_the_same_tokens_are_admitted_once_per_token() {
    let admission = Admission::per_second(1_000).burst(1).build(SECRET).unwrap();
    assert_eq!(admission.try_admit(at(secs(1))), Admit::Now);
    let tokens: Vec<_> = (0..2_000)
        .map(|_| match admission.try_admit(at(secs(1))) {
            Admit::At(reservation) => reservation.token,
            answer => panic!("{answer:?}"),
        })
        .collect();
    let admitted: usize = thread::scope(|scope| {
        let show = || {
            let shown = tokens.iter().zip(1..);
            shown.filter(|(token, n)| admission.admit_reserved(token, at(secs(1) + ms(*n))) == Admit::Now).count()
        };
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(show)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(admitted, 2_000);
}

proptest! {
    #![proptest_config(cases(128))]

    /// Holds for any arrival times, with and without reservations.
    #[test]
    fn no_interval_admits_more_than_rate_and_twice_the_burst(
        rate in 1..2_000_u32, burst in 1..50_u32,
        steps in prop::collection::vec((0..30_u64, any::<bool>()), 1..300),
    ) {
        let builder = Admission::per_second(rate).burst(burst).tolerance(Duration::ZERO, Duration::ZERO);
        let admission = builder.build(SECRET).unwrap();
        let (mut now, mut admitted, mut held) = (secs(1), Vec::new(), Vec::new());
        for (elapsed, reserved_first) in steps {
            now += ms(elapsed);
            // Clients with a reservation before this step return exactly on time.
            held.sort_by_key(|(time, _)| *time);
            while reserved_first && held.first().is_some_and(|(time, _)| *time <= now) {
                let (time, token) = held.remove(0);
                if admission.admit_reserved(&token, at(time)) == Admit::Now {
                    admitted.push(time);
                }
            }
            match admission.try_admit(at(now)) {
                Admit::Now => admitted.push(now),
                Admit::At(reservation) => held.push((now + reservation.after, reservation.token)),
                _ => {}
            }
        }
        admitted.sort_unstable();
        let interval = Duration::from_nanos(1_000_000_000_u64.div_ceil(u64::from(rate)));
        for (index, first) in admitted.iter().enumerate() {
            for (count, last) in admitted[index..].iter().enumerate().skip(1) {
                let intervals = (*last - *first).as_nanos() / interval.as_nanos();
                // A client with a reservation may come in the same instant as one that already took its place.
                prop_assert!(count as u128 <= intervals + 2 * u128::from(burst), "{count} within {:?}", *last - *first);
            }
        }
    }
}

// Clients of an admission that hints have brought back early too often.

const CLIENTS: u64 = 200;

/// Lets a client, to whom another server has sent this many hints of zero before, come back to a server whose virtual
/// queue is `ahead` long all the time. Returns how many attempts it makes until it is admitted.
fn attempts_until_admitted(seed: u64, hints_before: usize, ahead: Duration) -> u32 {
    const RATE: u32 = 100;
    let admission = Admission::per_second(RATE).burst(1).build(SECRET).unwrap();
    let mut link = Link::new(profile::WEB_SOCKET.policy()).seed(seed);
    connects(link.reconnect_now());
    for _ in 0..hints_before {
        assert_eq!(waits(link.ended(Outcome::throttled(Some(ServerHint::Reserved(Duration::ZERO))))).0, Duration::ZERO);
        link.retry();
    }
    let (mut token, mut attempts) = (None, 0);
    loop {
        attempts += 1;
        // The other clients of the fleet, each of which comes at its time.
        while admission.snapshot(at(link.now)).next_in < ahead {
            let _ = admission.reserve(at(link.now));
        }
        let admitted = match token.take() {
            Some(token) => admission.admit_reserved(&token, at(link.now)),
            None => admission.reserve(at(link.now)),
        };
        let hint = match admitted {
            Admit::Now => return attempts,
            Admit::At(reservation) => {
                token = Some(reservation.token);
                ServerHint::Reserved(reservation.after)
            }
            Admit::Full(after) => ServerHint::AtLeast(after),
            other => panic!("{other:?}"),
        };
        let step = link.ended(Outcome::throttled(Some(hint)));
        assert!(matches!(step, ReconnectStep::Wait { .. }), "{step:?}");
        link.retry();
    }
}

#[test]
fn a_client_that_comes_late_because_of_earlier_hints_keeps_its_next_reservation() {
    for seed in 0..CLIENTS {
        for hints_before in 0..3 {
            assert_eq!(
                attempts_until_admitted(seed, hints_before, secs(3)),
                2,
                "seed {seed}, {hints_before} hints before"
            );
        }
        // Late for its reservation, without it, and with the next one.
        assert!(attempts_until_admitted(seed, 3, secs(3)) <= 4, "seed {seed}");
        // As late as the policy's own delays, of at most 30 s: nothing is shortened.
        assert_eq!(attempts_until_admitted(seed, 3, secs(31)), 2, "seed {seed}");
    }
}

// A fleet that reconnects at the same time.

struct Fleet {
    attempts: usize,
    all_admitted_after: Duration,
    /// The maximum number of admissions within one second.
    busiest: usize,
}

/// Simulates clients that lose their connections within 300 ms and return up to 20 ms late.
fn reconnect(clients: u64, rate: u32) -> Fleet {
    let admission = Admission::per_second(rate).build(SECRET).unwrap();
    let start = secs(100);
    let wait = |id: u64, n: u64, max| draw(Duration::ZERO, max, Seed::new(3).for_call(id).for_call(n).get());
    let mut arrivals: BinaryHeap<_> = (0..clients)
        .map(|id| core::cmp::Reverse((start + wait(id, 0, ms(300)), id, None::<(u64, [u8; 32])>)))
        .collect();
    let (mut attempts, mut admitted) = (0, Vec::new());
    while let Some(core::cmp::Reverse((now, id, held))) = arrivals.pop() {
        attempts += 1;
        let token: Option<ReservationToken> =
            held.map(|(_, text)| core::str::from_utf8(&text).unwrap().parse().unwrap());
        match token.map_or_else(|| admission.try_admit(at(now)), |token| admission.admit_reserved(&token, at(now))) {
            Admit::Now => admitted.push(now),
            Admit::At(reservation) => {
                // Network delay: the client arrives at its time or up to 20 ms later.
                let then = now + reservation.after + wait(id, attempts as u64, ms(20));
                let mut text = [0; 32];
                text.copy_from_slice(reservation.token.to_string().as_bytes());
                arrivals.push(core::cmp::Reverse((then, id, Some((0, text)))));
            }
            answer => panic!("{answer:?}"),
        }
    }
    assert_eq!(admitted.len() as u64, clients);
    admitted.sort_unstable();
    let busiest = (0..admitted.len())
        .map(|first| admitted[first..].partition_point(|&time| time < admitted[first] + secs(1)))
        .max()
        .unwrap();
    Fleet { attempts, all_admitted_after: *admitted.last().unwrap() - start, busiest }
}

/// The optimum for admission with reservations: every client is rejected at most once, and the server is never idle.
#[test]
fn a_thundering_herd_returns_at_the_admission_rate() {
    let fleet = reconnect(10_000, 500);
    assert!(fleet.attempts <= 2 * 10_000, "{}", fleet.attempts);
    // 10,000 clients at 500 a second take 20 s.
    assert!(fleet.all_admitted_after < ms(20_400), "{:?}", fleet.all_admitted_after);
    // 500, the burst of 50, and the clients that 20 ms of delay move into the next second.
    assert!(fleet.busiest <= 570, "{}", fleet.busiest);
}
