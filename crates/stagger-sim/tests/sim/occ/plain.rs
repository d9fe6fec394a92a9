//! The article's simulator once more, in the words of its own source: milliseconds, its names of strategies, its formulas.

use crate::sim::plain::{Agenda, Dice};

const BASE: f64 = 5.0;
const CAP: f64 = 2_000.0;

/// What reaches the server.
enum Message {
    Read,
    /// With the version that was read.
    Write(u32),
}

struct Client {
    attempt: i32,
    sleep: f64,
}

/// Writes that arrived, and when the last answer was back.
pub(super) fn run(clients: usize, strategy: &str, seed: u64) -> (f64, f64) {
    let mut dice = Dice::new(seed);
    let mut agenda = Agenda::new();
    let mut state: Vec<_> = (0..clients).map(|_| Client { attempt: 0, sleep: BASE }).collect();
    for id in 0..clients {
        agenda.put(way(&mut dice), (id, Message::Read));
    }
    let (mut version, mut calls, mut end) = (0, 0, 0.0_f64);
    while let Some((now, (id, message))) = agenda.take() {
        match message {
            Message::Read => {
                let arrives = now + way(&mut dice) + way(&mut dice);
                agenda.put(arrives, (id, Message::Write(version)));
            }
            Message::Write(read) => {
                calls += 1;
                let heard = now + way(&mut dice);
                end = end.max(heard);
                if read == version {
                    version += 1;
                } else {
                    let client = &mut state[id];
                    client.attempt += 1;
                    let waits = backoff(strategy, client, &mut dice);
                    agenda.put(heard + waits + way(&mut dice), (id, Message::Read));
                }
            }
        }
    }
    (f64::from(calls), end)
}

fn way(dice: &mut Dice) -> f64 {
    dice.normal(10.0, 2.0).abs()
}

fn backoff(strategy: &str, client: &mut Client, dice: &mut Dice) -> f64 {
    let v = CAP.min(BASE * 2_f64.powi(client.attempt));
    match strategy {
        "None" => 0.0,
        "Exponential" => v,
        "EqualJitter" => v / 2.0 + dice.uniform(0.0, v / 2.0),
        "FullJitter" => dice.uniform(0.0, v),
        "Decorr" => {
            client.sleep = CAP.min(dice.uniform(BASE, client.sleep * 3.0));
            client.sleep
        }
        _ => panic!("there is no strategy {strategy}"),
    }
}
