//! A reference model of a mass disconnect: seconds in floating point, a heap, and its own formulas for the strategies.

use crate::sim::reference::{EventQueue, Rng};

/// The clients and their server.
#[derive(Clone, Copy)]
pub(super) struct Server {
    pub(super) clients: usize,
    pub(super) rate: f64,
    pub(super) backlog: f64,
}

struct Client {
    lost: f64,
    failures: i32,
    /// The last delay, or a value that is drawn once per client.
    carry: f64,
}

/// Returns attempts per client; peak arrivals in 100 ms, the same after one second, and the peak in flight, as shares
/// of the clients; T50, T99, T100 and the mean recovery time, in seconds.
pub(super) fn run(server: Server, strategy: &str, seed: u64) -> [f64; 8] {
    let Server { clients, rate, backlog } = server;
    let min_recovery = clients as f64 / rate;
    let mut rng = Rng::new(seed);
    let mut events = EventQueue::new();
    let (mut sent, mut heard) = (Vec::new(), Vec::new());
    let mut state: Vec<_> = (0..clients)
        .map(|_| Client { lost: rng.uniform(0.0, 0.3), failures: 0, carry: rng.uniform(1.0, 5.0) })
        .collect();
    for (id, client) in state.iter_mut().enumerate() {
        let sends = client.lost + delay(strategy, client, min_recovery, &mut rng);
        sent.push(sends);
        events.put(sends + way(&mut rng), id);
    }
    let (mut free, mut slot) = (0.0_f64, 0.0_f64);
    let (mut bins, mut connected, mut took) = (Vec::new(), Vec::new(), 0.0);
    while let Some((now, id)) = events.take() {
        let bin = (now * 10.0) as usize;
        bins.resize(bins.len().max(bin + 1), 0_u32);
        bins[bin] += 1;
        let client = &mut state[id];
        if (free - now) * rate < backlog {
            free = free.max(now) + 1.0 / rate;
            let answered = free + way(&mut rng);
            heard.push(answered);
            connected.push(answered);
            took += answered - client.lost;
            continue;
        }
        let answered = now + way(&mut rng);
        heard.push(answered);
        client.failures += 1;
        let sends = if strategy == "retry_after" {
            slot = slot.max(free) + 1.02 / rate;
            // The hint is the time that remains when the answer is sent.
            answered + (slot - now)
        } else {
            answered + delay(strategy, client, min_recovery, &mut rng)
        };
        sent.push(sends);
        events.put(sends + way(&mut rng), id);
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

fn way(rng: &mut Rng) -> f64 {
    rng.uniform(0.010, 0.040)
}

/// Returns the maximum number of unanswered attempts, with a resolution of a millisecond.
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

/// Returns the delay before the next attempt, given the failures in this episode.
fn delay(strategy: &str, client: &mut Client, min_recovery: f64, rng: &mut Rng) -> f64 {
    let failures = client.failures;
    let window = |multiplier: f64, cap: f64| cap.min(0.5 * multiplier.powi(failures));
    let v = window(2.0, 30.0);
    match strategy {
        "fixed1s" => 1.0,
        "fixed1s_pm50" => rng.uniform(0.5, 1.5),
        "expo" => v,
        "full" => rng.uniform(0.0, v),
        "equal" => v / 2.0 + rng.uniform(0.0, v / 2.0),
        "decorr" => {
            let before = if failures == 0 { 0.5 } else { client.carry };
            client.carry = 30_f64.min(rng.uniform(0.5, 3.0 * before));
            client.carry
        }
        "cenkalti" => window(1.5, 60.0) * rng.uniform(0.5, 1.5),
        "pladaria" if failures == 0 => 0.0,
        "pladaria" => 10_f64.min(client.carry * 1.3_f64.powi(failures - 1)),
        "spread_oracle" if failures == 0 => rng.uniform(0.0, min_recovery),
        "spread_oracle" => rng.uniform(0.0, 0.05 * min_recovery),
        "retry_after" => rng.uniform(0.0, 0.5),
        "full_cap120" => rng.uniform(0.0, window(2.0, 120.0)),
        "full_m1.5" => rng.uniform(0.0, window(1.5, 30.0)),
        "full_m4" => rng.uniform(0.0, window(4.0, 30.0)),
        _ => panic!("unknown strategy {strategy}"),
    }
}
