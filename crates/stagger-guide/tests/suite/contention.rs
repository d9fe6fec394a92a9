//! The model of M. Brooker, "Exponential Backoff And Jitter", AWS, 2015: clients that all update one row with optimistic
//! concurrency control, so a write succeeds only if the client read the current version. Each message takes about 10 ms
//! (normally distributed, standard deviation 2 ms). All clients start together, and each commits once.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use stagger::{Policy, Seed};

use super::fleet::{Numbers, Seconds};

const CLIENTS: usize = 100;
const RUNS: u64 = 40;

/// A message that arrives at the server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Message {
    Read,
    /// A write by a client that has read this version.
    Write(u32),
}

/// Returns the number of writes until every client has committed, as the mean of [`RUNS`] runs.
pub(super) fn writes(policy: &Policy) -> f64 {
    (0..RUNS).map(|run| f64::from(once(policy, Seed::new(run)))).sum::<f64>() / RUNS as f64
}

fn once(policy: &Policy, seed: Seed) -> u32 {
    let mut numbers = Numbers::new(seed.for_call(u64::MAX));
    // The sum of twelve uniform numbers is approximately normally distributed, with a variance of 1.
    let mut trip = move || {
        let normal = (0..12).map(|_| numbers.next()).sum::<f64>() - 6.0;
        (10.0 + 2.0 * normal).abs() / 1000.0
    };
    let mut schedules: Vec<_> = (0..CLIENTS).map(|id| policy.schedule(seed.for_call(id as u64))).collect();
    let mut arrivals: BinaryHeap<_> = (0..CLIENTS).map(|id| Reverse((Seconds(trip()), id, Message::Read))).collect();
    let (mut version, mut writes) = (0, 0);
    while let Some(Reverse((Seconds(now), id, message))) = arrivals.pop() {
        let received = now + trip();
        match message {
            Message::Read => arrivals.push(Reverse((Seconds(received + trip()), id, Message::Write(version)))),
            Message::Write(read) => {
                writes += 1;
                if read == version {
                    version += 1;
                } else {
                    let sent = received + schedules[id].next().unwrap().as_secs_f64();
                    arrivals.push(Reverse((Seconds(sent + trip()), id, Message::Read)));
                }
            }
        }
    }
    writes
}

/// Compares with the means of 100 trials of the article's own program: exponential, equal, full.
#[test]
fn the_model_agrees_with_the_program_of_the_article() {
    for (policy, want) in [
        ("exponential base=10ms cap=2s jitter=none", 1856.0),
        ("exponential base=10ms cap=2s jitter=equal", 812.0),
        ("exponential base=10ms cap=2s jitter=full", 796.0),
    ] {
        let got = writes(&policy.parse().unwrap());
        assert!((got / want - 1.0).abs() < 0.02, "{policy}: {got} writes instead of {want}");
    }
}
