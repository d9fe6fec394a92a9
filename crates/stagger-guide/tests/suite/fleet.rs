//! A model of a fleet that loses its connections at the same time and reconnects to a server.
//!
//! The clients lose their connections within 0.3 s and wait as their policy says. Each message takes 10 to 40 ms. The server
//! accepts connections one after another at a fixed rate and has a backlog. If the backlog is full, it rejects a client
//! immediately, and the client waits again. Clients retry without a limit, and no message is lost.

use core::cmp::{Ordering, Reverse};
use core::time::Duration;
use std::collections::BinaryHeap;

use stagger::{Policy, Seed, schedule::draw};

const CLIENTS: usize = 10_000;
/// Connections per second that the server accepts.
const RATE: f64 = 500.0;
/// Capacity of the backlog, in connections.
const BACKLOG: f64 = 250.0;
const BIN: f64 = 0.1;
const RUNS: u64 = 3;

/// How a fleet reconnected, as the mean of [`RUNS`] runs.
#[derive(Debug)]
pub(super) struct ReconnectFigures {
    /// Attempts per client.
    pub(super) attempts: f64,
    /// The largest share of the fleet with an attempt in the same 100 ms.
    pub(super) peak: f64,
    /// Time until half of the clients were connected again, in seconds.
    pub(super) half: f64,
    /// Time until 99 % of the clients were connected again, in seconds.
    pub(super) nearly_all: f64,
}

/// Random numbers, uniform on `[0, 1)` and the same in each run of the tests.
pub(super) struct Numbers {
    seed: Seed,
    drawn: u64,
}

impl Numbers {
    pub(super) fn new(seed: Seed) -> Self {
        Self { seed, drawn: 0 }
    }

    pub(super) fn next(&mut self) -> f64 {
        self.drawn += 1;
        let bits = self.seed.for_call(self.drawn).get();
        draw(Duration::ZERO, Duration::from_nanos((1 << 53) - 1), bits).as_nanos() as f64 / (1_u64 << 53) as f64
    }

    pub(super) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.next()
    }
}

/// A time in seconds with a total order. It is never NaN or negative.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Seconds(pub(super) f64);

impl Eq for Seconds {}

impl PartialOrd for Seconds {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Seconds {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.total_cmp(&other.0)
    }
}

pub(super) fn reconnect(policy: &Policy) -> ReconnectFigures {
    let runs: Vec<_> = (0..RUNS).map(|run| once(policy, Seed::new(run))).collect();
    let mean = |figure: fn(&ReconnectFigures) -> f64| runs.iter().map(figure).sum::<f64>() / runs.len() as f64;
    ReconnectFigures {
        attempts: mean(|run| run.attempts),
        peak: mean(|run| run.peak),
        half: mean(|run| run.half),
        nearly_all: mean(|run| run.nearly_all),
    }
}

fn once(policy: &Policy, seed: Seed) -> ReconnectFigures {
    let mut numbers = Numbers::new(seed.for_call(u64::MAX));
    let mut schedules: Vec<_> = (0..CLIENTS).map(|id| policy.schedule(seed.for_call(id as u64))).collect();
    let mut arrivals = BinaryHeap::new();
    for (id, schedule) in schedules.iter_mut().enumerate() {
        // A spread is the wait before the first attempt. Without one, the loss of the connection counts as the first failure.
        let wait = match policy.spread() {
            Duration::ZERO => schedule.next().unwrap(),
            _ => policy.first_spread(seed.for_call(id as u64)),
        };
        let sent = numbers.between(0.0, 0.3) + wait.as_secs_f64();
        arrivals.push(Reverse((Seconds(sent + numbers.between(0.01, 0.04)), id)));
    }

    let (mut attempts, mut bins, mut connected) = (0_u32, Vec::new(), Vec::new());
    let mut free = 0.0_f64;
    while let Some(Reverse((Seconds(now), id))) = arrivals.pop() {
        attempts += 1;
        let bin = (now / BIN) as usize;
        bins.resize(bins.len().max(bin + 1), 0_u32);
        bins[bin] += 1;
        if (free - now) * RATE < BACKLOG {
            free = free.max(now) + 1.0 / RATE;
            connected.push(free + numbers.between(0.01, 0.04));
        } else {
            let rejected = now + numbers.between(0.01, 0.04);
            let sent = rejected + schedules[id].next().unwrap().as_secs_f64();
            arrivals.push(Reverse((Seconds(sent + numbers.between(0.01, 0.04)), id)));
        }
    }
    connected.sort_by(f64::total_cmp);
    ReconnectFigures {
        attempts: f64::from(attempts) / CLIENTS as f64,
        peak: f64::from(bins.into_iter().max().unwrap_or(0)) / CLIENTS as f64,
        half: connected[CLIENTS / 2],
        nearly_all: connected[CLIENTS * 99 / 100],
    }
}

/// Compares with the means of 20 runs of an independent implementation of the model.
#[test]
fn the_model_agrees_with_an_independent_one() {
    for (policy, attempts, peak, half, nearly_all) in [
        ("exponential base=500ms cap=30s jitter=none", 12.901, 0.3368, 240.80, 638.04),
        ("exponential base=500ms cap=30s jitter=full", 4.843, 0.2482, 10.05, 34.51),
        ("exponential base=500ms cap=30s jitter=equal", 4.614, 0.3223, 12.01, 28.67),
    ] {
        let got = reconnect(&policy.parse().unwrap());
        for (got, want) in [(got.attempts, attempts), (got.peak, peak), (got.half, half), (got.nearly_all, nearly_all)]
        {
            assert!((got / want - 1.0).abs() < 0.02, "{policy}: {got} instead of {want}");
        }
    }
}
