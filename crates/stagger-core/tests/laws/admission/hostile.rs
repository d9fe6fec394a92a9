//! Clients that show tokens again, make them up, or come when they please.

use core::cmp::Reverse;
use core::time::Duration;
use std::collections::BinaryHeap;

use proptest::prelude::*;
use stagger_core::admission::{Admission, AdmissionBuilder, Admit, Reservation, ReservationToken, Secret};
use stagger_core::{Instant, Seed};

use crate::laws::support::{SECRET, at, cases, ms, secs};

fn build(builder: AdmissionBuilder) -> Admission {
    builder.build(SECRET).unwrap()
}

fn reserved(answer: Admit) -> Reservation {
    match answer {
        Admit::At(reservation) => reservation,
        answer => panic!("{answer:?}"),
    }
}

/// Makes up a token for a time near `now`, as a client would that has seen the form of tokens.
fn forged(now: Instant, seed: Seed) -> ReservationToken {
    let time = now.as_nanos() + seed.draw(0) % 1_000_000_000 - 500_000_000;
    format!("{time:016x}{:016x}", seed.draw(1)).parse().unwrap()
}

/// Returns the wait of a client that comes at `now` without a token.
fn newcomer(admission: &Admission, now: Instant) -> Duration {
    reserved(admission.try_admit(now)).after
}

#[test]
fn a_reservation_that_is_shown_a_thousand_times_admits_once() {
    let admission = build(Admission::per_second(10).burst(1));
    assert_eq!(admission.try_admit(at(secs(9))), Admit::Now);
    let token = reserved(admission.try_admit(at(secs(9)))).token;
    let admitted = (0..1_000).filter(|n| admission.admit_reserved(&token, at(secs(9) + ms(100 + n))) == Admit::Now);
    // One by the reservation; the others take what is free for anyone, at ten a second.
    assert_eq!(admitted.count(), 10);
}

#[test]
fn a_reservation_that_is_shown_36_000_times_does_not_delay_a_newcomer() {
    let admission = build(Admission::per_second(10).burst(1));
    assert_eq!(admission.try_admit(at(secs(9))), Admit::Now);
    let token = reserved(admission.try_admit(at(secs(9)))).token;
    let then = at(secs(9) + ms(100));
    let admitted = (0..36_000).filter(|_| admission.admit_reserved(&token, then) == Admit::Now);
    assert_eq!(admitted.count(), 1);
    assert_eq!(newcomer(&admission, then), ms(100), "the time after the one admission");
}

/// The reserved times of others, and the next free one, are those of a server that was never attacked.
#[test]
fn replays_and_forgeries_move_no_reservation() {
    let [attacked, calm] = [(); 2].map(|()| {
        let admission = build(Admission::per_second(10).burst(1));
        let waits = [(); 20].map(|()| admission.try_admit(at(secs(9))));
        (admission, waits)
    });
    assert_eq!(attacked.1, calm.1);
    let token = reserved(attacked.1[1]).token;
    for n in 0..1_000 {
        let now = at(secs(9) + ms(100 + n));
        let _ = attacked.0.admit_reserved(&token, now);
        let _ = attacked.0.admit_reserved(&forged(now, Seed::new(n)), now);
    }
    let then = at(secs(9) + ms(1_100));
    let [at_its_time, early] = [11, 12].map(|number| reserved(attacked.1[number]));
    assert_eq!(attacked.0.admit_reserved(&at_its_time.token, then), Admit::Now);
    assert_eq!(attacked.0.admit_reserved(&early.token, then), Admit::At(Reservation { after: ms(100), ..early }));
    let snapshots = [&attacked.0, &calm.0].map(|admission| admission.snapshot(then));
    assert_eq!((snapshots[0].reserved, snapshots[0].next_in), (snapshots[1].reserved, snapshots[1].next_in));
    assert_eq!(newcomer(&attacked.0, then), ms(900));
}

/// 10,000 hostile tokens a second for a minute: shown again, made up, from another server, and too early.
#[test]
fn honest_clients_get_the_rate_among_10_000_hostile_tokens_a_second() {
    const RATE: u64 = 500;
    for demand in [RATE * 9 / 10, RATE, RATE * 2] {
        let admission = build(Admission::per_second(RATE as u32).max_wait(secs(120)));
        let other = Admission::per_second(RATE as u32).burst(1).build(Secret::new([8; 16])).unwrap();
        let size = size_of_val(&admission);
        let start = secs(100);
        // The attacker has one reservation of its own, and sees those of honest clients once they are used.
        let mut spent = Vec::new();
        let mut returns = BinaryHeap::new();
        let (mut honest, mut hostile) = (0, 0);
        let mut kept = None;
        for tick in 0..600_000_u64 {
            let now = start + Duration::from_micros(100 * tick);
            let seed = Seed::new(5).for_call(tick);
            if tick % (10_000 / demand) == 0 {
                match admission.try_admit(at(now)) {
                    Admit::Now => honest += 1,
                    Admit::At(reservation) if tick > 5_000 && kept.is_none() => kept = Some(reservation.token),
                    Admit::At(reservation) => {
                        // Up to 20 ms on the way.
                        let then = now + reservation.after + Duration::from_micros(seed.draw(2) % 20_000);
                        returns.push(Reverse((then, reservation.token.to_string())));
                    }
                    answer => panic!("{answer:?}"),
                }
            }
            while returns.peek().is_some_and(|Reverse((then, _))| *then <= now) {
                let Some(Reverse((then, token))) = returns.pop() else { unreachable!() };
                let token: ReservationToken = token.parse().unwrap();
                assert_eq!(admission.admit_reserved(&token, at(then)), Admit::Now, "an honest client at {now:?}");
                honest += 1;
                spent.push(token);
            }
            let token = match (tick % 4, &kept) {
                (0, _) if !spent.is_empty() => spent[(seed.draw(3) as usize) % spent.len()],
                (1, _) if !spent.is_empty() => spent[spent.len() - 1],
                (2, Some(kept)) => *kept,
                (3, _) => match other.try_admit(at(now)) {
                    Admit::At(reservation) => reservation.token,
                    _ => forged(at(now), seed),
                },
                _ => forged(at(now), seed),
            };
            hostile += u64::from(admission.admit_reserved(&token, at(now)) == Admit::Now);
        }
        let most = RATE * 60 + RATE / 10;
        assert!(honest + hostile <= most, "{honest} and {hostile} are admitted, of {most}");
        let want = demand.min(RATE) * 60 * 95 / 100;
        assert!(honest >= want, "{honest} honest clients in a minute, {hostile} hostile, demand {demand}");
        assert_eq!(size, size_of_val(&admission), "the state is a fixed array");
    }
}

#[derive(Clone, Copy, Debug)]
enum Visit {
    /// Comes without a token; returns on time.
    Honest,
    /// Comes without a token; returns never, or as a `Show`.
    Collect,
    /// Is rejected for another reason, with a reservation.
    Reserve,
    /// Shows any token that was ever collected or used.
    Show(prop::sample::Index),
    /// Shows a token it made up.
    Forge(u64),
}

fn visit() -> impl Strategy<Value = Visit> {
    prop_oneof![
        3 => Just(Visit::Honest),
        2 => Just(Visit::Collect),
        1 => Just(Visit::Reserve),
        5 => any::<prop::sample::Index>().prop_map(Visit::Show),
        2 => any::<u64>().prop_map(Visit::Forge),
    ]
}

proptest! {
    #![proptest_config(cases(96))]

    /// For any arrival times, with replays, forgeries, and tokens that are shown early, late or never.
    #[test]
    fn no_time_from_the_start_admits_more_than_rate_and_burst(
        rate in 1..2_000_u32, burst in 1..50_u32, lateness in 0..900_u64,
        visits in prop::collection::vec((0..60_u64, visit()), 1..400),
    ) {
        let admission = build(Admission::per_second(rate).burst(burst));
        let interval = 1_000_000_000_u64.div_ceil(u64::from(rate));
        let (start, mut now, mut admitted) = (secs(1), secs(1), 0_u64);
        let (mut known, mut honest) = (Vec::new(), Vec::<(Duration, ReservationToken)>::new());
        for (elapsed, visit) in visits {
            let until = now + ms(elapsed);
            honest.sort_by_key(|(time, _)| *time);
            while honest.first().is_some_and(|(time, _)| *time <= until) {
                let (time, token) = honest.remove(0);
                prop_assert_eq!(admission.admit_reserved(&token, at(time)), Admit::Now, "an honest client");
                admitted += 1;
                known.push(token);
                prop_assert!(admitted <= (time - start).as_nanos() as u64 / interval + u64::from(burst));
            }
            now = until;
            let answer = match visit {
                Visit::Honest | Visit::Collect => admission.try_admit(at(now)),
                Visit::Reserve => admission.reserve(at(now)),
                Visit::Show(index) if !known.is_empty() => admission.admit_reserved(index.get(&known), at(now)),
                Visit::Show(_) => continue,
                Visit::Forge(seed) => admission.admit_reserved(&forged(at(now), Seed::new(seed)), at(now)),
            };
            match (answer, visit) {
                (Admit::Now, _) => admitted += 1,
                (Admit::At(reservation), Visit::Honest) => {
                    let late = ms(if lateness < 450 { 0 } else { Seed::new(lateness).draw(admitted) % lateness });
                    honest.push((now + reservation.after + late, reservation.token));
                }
                (Admit::At(reservation), _) => known.push(reservation.token),
                _ => {}
            }
            let most = (now - start).as_nanos() as u64 / interval + u64::from(burst);
            prop_assert!(admitted <= most, "{admitted} of {most} after {:?}", now - start);
        }
    }
}

// Reservations as text.

fn reservation(secret: u8) -> Reservation {
    let admission = Admission::per_second(10).burst(1).build(Secret::new([secret; 16])).unwrap();
    assert_eq!(admission.try_admit(at(secs(5))), Admit::Now);
    match admission.try_admit(at(secs(5))) {
        Admit::At(reservation) => reservation,
        answer => panic!("{answer:?}"),
    }
}

#[test]
fn a_reservation_round_trips() {
    let reservation = reservation(7);
    let text = reservation.to_string();
    assert!(text.starts_with("100;token=") && text.len() == 10 + 32, "{text}");
    assert_eq!(text.parse(), Ok(reservation));
    assert_eq!(text.replace(";t", " ; t").parse(), Ok(reservation));
    assert_eq!(reservation.token.to_string().parse(), Ok(reservation.token));
}

/// If the wait were rounded down, the client would come a fraction of a millisecond early and have to wait again.
#[test]
fn a_wait_is_rounded_up() {
    let token = reservation(7).token;
    for (micros, want) in [(0, "0"), (1, "1"), (999, "1"), (1000, "1"), (1001, "2")] {
        let text = Reservation { after: Duration::from_micros(micros), token }.to_string();
        assert_eq!(text.split_once(';').unwrap().0, want, "{micros} µs");
    }
}

#[test]
fn malformed_reservations_are_rejected_with_an_example() {
    let good = reservation(7).to_string();
    for text in [
        "",
        "100",
        "100;",
        ";token=0123456789abcdef0123456789abcdef",
        "-1;token=0123456789abcdef0123456789abcdef",
        "+1;token=0123456789abcdef0123456789abcdef",
        "1.5;token=0123456789abcdef0123456789abcdef",
        "100;token=0123456789abcdef0123456789abcde",
        "100;token=+123456789abcdef0123456789abcdef",
        "100;token=0123456789abcdef0123456789abcdeg",
        "100;token=ä123456789abcdef0123456789abcde",
        "99999999999999999999999;token=0123456789abcdef0123456789abcdef",
        &good[1..10],
    ] {
        let error = text.parse::<Reservation>().unwrap_err().to_string();
        assert!(error.contains("write it as 1520;token="), "{text:?}: {error}");
    }
}

/// Each token is authenticated with the secret of the server that issued it.
#[test]
fn a_token_of_another_server_is_ignored() {
    let admission = Admission::per_second(10).burst(1).build(Secret::new([7; 16])).unwrap();
    assert_eq!(admission.try_admit(at(secs(5))), Admit::Now);
    let Admit::At(ours) = admission.try_admit(at(secs(5))) else { panic!("the burst is used up") };
    let (theirs, then) = (reservation(8).token, at(secs(5) + ms(100)));
    // It has no reservation here, and takes none from a client without a token.
    assert_eq!(admission.admit_reserved(&theirs, then), Admit::Full(ms(100)));
    assert_eq!(admission.admit_reserved(&ours.token, then), Admit::Now);
    assert!(matches!(admission.try_admit(then), Admit::At(next) if next.after == ms(100)));
}

proptest! {
    #![proptest_config(cases(512))]

    #[test]
    fn any_text_is_parsed_or_rejected(text in "\\PC{0,60}") {
        if let Ok(reservation) = text.parse::<Reservation>() {
            prop_assert_eq!(reservation.to_string().parse(), Ok(reservation));
        }
        let _ = text.parse::<ReservationToken>();
    }
}
