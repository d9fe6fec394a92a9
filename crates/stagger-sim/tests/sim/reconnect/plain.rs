//! A plain model of a mass disconnect: seconds in floating point, a heap, formulas of its own for the strategies.

use crate::sim::plain::{Agenda, Dice};

/// The clients, and the server that they come back to.
#[derive(Clone, Copy)]
pub(super) struct Server {
    pub(super) clients: usize,
    pub(super) rate: f64,
    pub(super) backlog: f64,
}

struct Client {
    lost: f64,
    failures: i32,
    /// The last delay, or what was drawn once for all of them.
    carry: f64,
}

/// Attempts per client; peak arrivals in 100 ms, the same after a second, and peak in flight, as shares of the clients; T50,
/// T99, T100 and the mean time that clients took, in seconds.
pub(super) fn run(server: Server, strategy: &str, seed: u64) -> [f64; 8] {
    let Server { clients, rate, backlog } = server;
    let everyone = clients as f64 / rate;
    let mut dice = Dice::new(seed);
    let mut agenda = Agenda::new();
    let (mut sent, mut heard) = (Vec::new(), Vec::new());
    let mut state: Vec<_> = (0..clients)
        .map(|_| Client { lost: dice.uniform(0.0, 0.3), failures: 0, carry: dice.uniform(1.0, 5.0) })
        .collect();
    for (id, client) in state.iter_mut().enumerate() {
        let sends = client.lost + delay(strategy, client, everyone, &mut dice);
        sent.push(sends);
        agenda.put(sends + way(&mut dice), id);
    }
    let (mut free, mut slot) = (0.0_f64, 0.0_f64);
    let (mut bins, mut connected, mut took) = (Vec::new(), Vec::new(), 0.0);
    while let Some((now, id)) = agenda.take() {
        let bin = (now * 10.0) as usize;
        bins.resize(bins.len().max(bin + 1), 0_u32);
        bins[bin] += 1;
        let client = &mut state[id];
        if (free - now) * rate < backlog {
            free = free.max(now) + 1.0 / rate;
            let answered = free + way(&mut dice);
            heard.push(answered);
            connected.push(answered);
            took += answered - client.lost;
            continue;
        }
        let answered = now + way(&mut dice);
        heard.push(answered);
        client.failures += 1;
        let sends = if strategy == "retry_after" {
            slot = slot.max(free) + 1.02 / rate;
            // What is told is the time that is left when the answer is written.
            answered + (slot - now)
        } else {
            answered + delay(strategy, client, everyone, &mut dice)
        };
        sent.push(sends);
        agenda.put(sends + way(&mut dice), id);
    }
    connected.sort_by(f64::total_cmp);
    let share = |count: u32| f64::from(count) / clients as f64;
    let (peak, late) = (bins.iter().max(), bins[10..].iter().max());
    [
        sent.len() as f64 / clients as f64,
        share(*peak.unwrap()),
        late.map_or(0.0, |&late| share(late)),
        in_flight(&sent, &heard) / clients as f64,
        connected[clients / 2 - 1],
        connected[clients * 99 / 100 - 1],
        connected[clients - 1],
        took / clients as f64,
    ]
}

fn way(dice: &mut Dice) -> f64 {
    dice.uniform(0.010, 0.040)
}

/// The most that were sent and not answered, by milliseconds.
fn in_flight(sent: &[f64], heard: &[f64]) -> f64 {
    let step = |time: f64| (time * 1e3) as usize;
    let last = heard.iter().map(|&time| step(time)).max().unwrap_or(0);
    let mut changes = vec![0_i64; last + 1];
    sent.iter().for_each(|&time| changes[step(time)] += 1);
    heard.iter().for_each(|&time| changes[step(time)] -= 1);
    let levels = changes.into_iter().scan(0, |level, change| {
        *level += change;
        Some(*level)
    });
    levels.max().unwrap_or(0) as f64
}

/// Before the next attempt, with so many failures in this episode.
fn delay(strategy: &str, client: &mut Client, everyone: f64, dice: &mut Dice) -> f64 {
    let failures = client.failures;
    let window = |multiplier: f64, cap: f64| cap.min(0.5 * multiplier.powi(failures));
    let v = window(2.0, 30.0);
    match strategy {
        "fixed1s" => 1.0,
        "fixed1s_pm50" => dice.uniform(0.5, 1.5),
        "expo" => v,
        "full" => dice.uniform(0.0, v),
        "equal" => v / 2.0 + dice.uniform(0.0, v / 2.0),
        "decorr" => {
            let before = if failures == 0 { 0.5 } else { client.carry };
            client.carry = 30_f64.min(dice.uniform(0.5, 3.0 * before));
            client.carry
        }
        "cenkalti" => window(1.5, 60.0) * dice.uniform(0.5, 1.5),
        "pladaria" if failures == 0 => 0.0,
        "pladaria" => 10_f64.min(client.carry * 1.3_f64.powi(failures - 1)),
        "spread_oracle" if failures == 0 => dice.uniform(0.0, everyone),
        "spread_oracle" => dice.uniform(0.0, 0.05 * everyone),
        "retry_after" => dice.uniform(0.0, 0.5),
        "full_cap120" => dice.uniform(0.0, window(2.0, 120.0)),
        "full_m1.5" => dice.uniform(0.0, window(1.5, 30.0)),
        "full_m4" => dice.uniform(0.0, window(4.0, 30.0)),
        _ => panic!("there is no strategy {strategy}"),
    }
}
