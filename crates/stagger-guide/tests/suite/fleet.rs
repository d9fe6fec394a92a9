//! A fleet that loses its connections together, and the server that it comes back to.
//!
//! The clients lose their connection within 0.3 s and wait as their policy says. Each message takes 10 to 40 ms. The
//! server accepts so many a second, one after the other, and keeps a backlog; whoever finds that full is refused at
//! once, and waits again. Nobody gives up, and nothing else gets lost.

use core::cmp::{Ordering, Reverse};
use core::time::Duration;
use std::collections::BinaryHeap;

use stagger::{Policy, Seed, schedule::draw};

const CLIENTS: usize = 10_000;
/// What the server accepts in a second.
const RATE: f64 = 500.0;
/// What it keeps waiting at most.
const BACKLOG: f64 = 250.0;
const BIN: f64 = 0.1;
const RUNS: u64 = 3;

/// How a fleet came back, on the mean of some runs.
#[derive(Debug)]
pub(super) struct Return {
    /// How often a client knocked.
    pub(super) attempts: f64,
    /// The largest share of the fleet that knocked within one tenth of a second.
    pub(super) peak: f64,
    /// When half of the clients, and when 99 % of them, were connected again, in seconds.
    pub(super) half: f64,
    pub(super) nearly_all: f64,
}

/// Numbers that are uniform on `[0, 1)`, the same in each run of the tests.
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

/// A time that is not NaN, so that it has an order; it is never negative.
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

pub(super) fn comes_back(policy: &Policy) -> Return {
    let runs: Vec<_> = (0..RUNS).map(|run| once(policy, Seed::new(run))).collect();
    let mean = |figure: fn(&Return) -> f64| runs.iter().map(figure).sum::<f64>() / runs.len() as f64;
    Return {
        attempts: mean(|run| run.attempts),
        peak: mean(|run| run.peak),
        half: mean(|run| run.half),
        nearly_all: mean(|run| run.nearly_all),
    }
}

fn once(policy: &Policy, seed: Seed) -> Return {
    let mut numbers = Numbers::new(seed.for_call(u64::MAX));
    let mut schedules: Vec<_> = (0..CLIENTS).map(|id| policy.schedule(seed.for_call(id as u64))).collect();
    let mut arrivals = BinaryHeap::new();
    for (id, schedule) in schedules.iter_mut().enumerate() {
        // A spread is the wait before the first action; without one, the drop counts as the first failure.
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
            let told = now + numbers.between(0.01, 0.04);
            let sent = told + schedules[id].next().unwrap().as_secs_f64();
            arrivals.push(Reverse((Seconds(sent + numbers.between(0.01, 0.04)), id)));
        }
    }
    connected.sort_by(f64::total_cmp);
    Return {
        attempts: f64::from(attempts) / CLIENTS as f64,
        peak: f64::from(bins.into_iter().max().unwrap_or(0)) / CLIENTS as f64,
        half: connected[CLIENTS / 2],
        nearly_all: connected[CLIENTS * 99 / 100],
    }
}

/// An independent implementation of the model gave these on the mean of 20 runs.
#[test]
fn the_model_gives_what_an_independent_one_gave() {
    for (policy, attempts, peak, half, nearly_all) in [
        ("exponential base=500ms cap=30s jitter=none", 12.901, 0.3368, 240.80, 638.04),
        ("exponential base=500ms cap=30s jitter=full", 4.843, 0.2482, 10.05, 34.51),
        ("exponential base=500ms cap=30s jitter=equal", 4.614, 0.3223, 12.01, 28.67),
    ] {
        let got = comes_back(&policy.parse().unwrap());
        for (got, want) in [(got.attempts, attempts), (got.peak, peak), (got.half, half), (got.nearly_all, nearly_all)]
        {
            assert!((got / want - 1.0).abs() < 0.02, "{policy}: {got} instead of {want}");
        }
    }
}
