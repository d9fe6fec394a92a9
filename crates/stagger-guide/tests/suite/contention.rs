//! The model of M. Brooker, "Exponential Backoff And Jitter", AWS, 2015: clients that all change one row, which takes a
//! change only from whoever read its present version. Each message takes about 10 ms (normally distributed, standard
//! deviation 2 ms). All begin together; each commits once.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use stagger::{Policy, Seed};

use super::fleet::{Numbers, Seconds};

const CLIENTS: usize = 100;
const RUNS: u64 = 40;

/// What reaches the server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Message {
    Read,
    /// Of the row as it was in this version.
    Write(u32),
}

/// How many writes it takes until every client has committed, on the mean of some runs.
pub(super) fn calls(policy: &Policy) -> f64 {
    (0..RUNS).map(|run| f64::from(once(policy, Seed::new(run)))).sum::<f64>() / RUNS as f64
}

fn once(policy: &Policy, seed: Seed) -> u32 {
    let mut numbers = Numbers::new(seed.for_call(u64::MAX));
    // The sum of twelve uniform numbers is as good as normally distributed, with a variance of 1.
    let mut trip = move || {
        let normal = (0..12).map(|_| numbers.next()).sum::<f64>() - 6.0;
        (10.0 + 2.0 * normal).abs() / 1000.0
    };
    let mut schedules: Vec<_> = (0..CLIENTS).map(|id| policy.schedule(seed.for_call(id as u64))).collect();
    let mut arrivals: BinaryHeap<_> = (0..CLIENTS).map(|id| Reverse((Seconds(trip()), id, Message::Read))).collect();
    let (mut version, mut calls) = (0, 0);
    while let Some(Reverse((Seconds(now), id, message))) = arrivals.pop() {
        let told = now + trip();
        match message {
            Message::Read => arrivals.push(Reverse((Seconds(told + trip()), id, Message::Write(version)))),
            Message::Write(read) => {
                calls += 1;
                if read == version {
                    version += 1;
                } else {
                    let sent = told + schedules[id].next().unwrap().as_secs_f64();
                    arrivals.push(Reverse((Seconds(sent + trip()), id, Message::Read)));
                }
            }
        }
    }
    calls
}

/// The means of 100 trials that the article's own program gave: exponential, equal, full.
#[test]
fn the_model_gives_what_the_articles_program_gives() {
    for (policy, want) in [
        ("exponential base=10ms cap=2s jitter=none", 1856.0),
        ("exponential base=10ms cap=2s jitter=equal", 812.0),
        ("exponential base=10ms cap=2s jitter=full", 796.0),
    ] {
        let got = calls(&policy.parse().unwrap());
        assert!((got / want - 1.0).abs() < 0.02, "{policy}: {got} calls instead of {want}");
    }
}
