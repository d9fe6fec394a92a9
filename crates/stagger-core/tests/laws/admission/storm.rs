//! A fleet that comes back at once.

use core::time::Duration;
use std::collections::BinaryHeap;

use stagger_core::{Seed, admission::Admission, admission::Admit, admission::ReservationToken, schedule::draw};

use crate::laws::support::{at, ms, secs};

struct Fleet {
    attempts: usize,
    all_in_after: Duration,
    /// The most that came in within one second.
    busiest: usize,
}

/// Ten thousand clients lose their connection within 300 ms. A message takes 20 to 60 ms there and back.
fn come_back(clients: u64, rate: u32) -> Fleet {
    let admission = Admission::per_second(rate).secret(Seed::new(42)).build().unwrap();
    let start = secs(100);
    let wait = |id: u64, n: u64, longest| draw(Duration::ZERO, longest, Seed::new(3).for_call(id).for_call(n).get());
    let mut arrivals: BinaryHeap<_> = (0..clients)
        .map(|id| core::cmp::Reverse((start + wait(id, 0, ms(300)), id, None::<(u64, [u8; 32])>)))
        .collect();
    let (mut attempts, mut came) = (0, Vec::new());
    while let Some(core::cmp::Reverse((now, id, held))) = arrivals.pop() {
        attempts += 1;
        let ticket: Option<ReservationToken> =
            held.map(|(_, text)| core::str::from_utf8(&text).unwrap().parse().unwrap());
        match ticket.map_or_else(|| admission.try_admit(at(now)), |ticket| admission.admit_reserved(&ticket, at(now))) {
            Admit::Now => came.push(now),
            Admit::At(appointment) => {
                // The answer travels back, and the client so as to arrive at its time or a little later.
                let then = now + appointment.after + wait(id, attempts as u64, ms(20));
                let mut text = [0; 32];
                text.copy_from_slice(appointment.token.to_string().as_bytes());
                arrivals.push(core::cmp::Reverse((then, id, Some((0, text)))));
            }
            answer => panic!("{answer:?}"),
        }
    }
    assert_eq!(came.len() as u64, clients);
    came.sort_unstable();
    let busiest =
        (0..came.len()).map(|at| came[at..].partition_point(|&time| time < came[at] + secs(1))).max().unwrap();
    Fleet { attempts, all_in_after: *came.last().unwrap() - start, busiest }
}

/// The limit for anybody who must be told when to come: every client is refused once, and the server is never idle.
#[test]
fn a_herd_returns_as_a_line() {
    let fleet = come_back(10_000, 500);
    assert!(fleet.attempts <= 2 * 10_000, "{}", fleet.attempts);
    // 10,000 clients at 500 a second take 20 s.
    assert!(fleet.all_in_after < ms(20_400), "{:?}", fleet.all_in_after);
    // 500, the burst of 50, and those whom 20 ms bring into the next second.
    assert!(fleet.busiest <= 570, "{}", fleet.busiest);
}
