//! A fleet that reconnects at the same time.

use core::time::Duration;
use std::collections::BinaryHeap;

use stagger_core::Seed;
use stagger_core::admission::{Admission, Admit, ReservationToken};
use stagger_core::schedule::draw;

use crate::laws::support::{SECRET, at, ms, secs};

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
