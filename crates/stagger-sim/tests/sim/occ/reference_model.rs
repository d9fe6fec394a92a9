//! A reimplementation of the article's simulator, with its units (milliseconds), strategy names and formulas.

use crate::sim::reference::{EventQueue, Rng};

const BASE: f64 = 5.0;
const CAP: f64 = 2_000.0;

/// A message to the server.
enum Message {
    Read,
    /// A write with the version that was read.
    Write(u32),
}

struct Client {
    attempt: i32,
    sleep: f64,
}

/// Returns the number of writes that arrived, and the time of the last answer.
pub(super) fn run(clients: usize, strategy: &str, seed: u64) -> (f64, f64) {
    let mut rng = Rng::new(seed);
    let mut events = EventQueue::new();
    let mut state: Vec<_> = (0..clients).map(|_| Client { attempt: 0, sleep: BASE }).collect();
    for id in 0..clients {
        events.put(way(&mut rng), (id, Message::Read));
    }
    let (mut version, mut calls, mut end) = (0, 0, 0.0_f64);
    while let Some((now, (id, message))) = events.take() {
        match message {
            Message::Read => {
                let arrives = now + way(&mut rng) + way(&mut rng);
                events.put(arrives, (id, Message::Write(version)));
            }
            Message::Write(read) => {
                calls += 1;
                let heard = now + way(&mut rng);
                end = end.max(heard);
                if read == version {
                    version += 1;
                } else {
                    let client = &mut state[id];
                    client.attempt += 1;
                    let waits = backoff(strategy, client, &mut rng);
                    events.put(heard + waits + way(&mut rng), (id, Message::Read));
                }
            }
        }
    }
    (f64::from(calls), end)
}

fn way(rng: &mut Rng) -> f64 {
    rng.normal(10.0, 2.0).abs()
}

fn backoff(strategy: &str, client: &mut Client, rng: &mut Rng) -> f64 {
    let v = CAP.min(BASE * 2_f64.powi(client.attempt));
    match strategy {
        "None" => 0.0,
        "Exponential" => v,
        "EqualJitter" => v / 2.0 + rng.uniform(0.0, v / 2.0),
        "FullJitter" => rng.uniform(0.0, v),
        "Decorr" => {
            client.sleep = CAP.min(rng.uniform(BASE, client.sleep * 3.0));
            client.sleep
        }
        _ => panic!("unknown strategy {strategy}"),
    }
}
