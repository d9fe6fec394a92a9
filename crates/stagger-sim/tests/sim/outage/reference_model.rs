//! A reference model of an outage: seconds in floating point, a heap, and independent implementations of the limiters.

use std::collections::VecDeque;

use crate::sim::reference::{EventQueue, Rng};

/// A cell of the grid. The server processes a thousand jobs per second, and the outage lasts from 20 s to 22 s; the
/// timeout is one second, the one-way delay 5 ms, and the horizon two minutes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub(super) rate: u32,
    pub(super) queue: usize,
    pub(super) processes: usize,
    pub(super) stalls: bool,
}

/// The results of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Figures {
    pub(super) amplification: f64,
    pub(super) success: f64,
    pub(super) recovery: Option<f64>,
    pub(super) goodput: f64,
}

const SERVICE: f64 = 1e-3;
const OUT: (f64, f64) = (20.0, 22.0);
const HORIZON: f64 = 120.0;
const WAY: f64 = 5e-3;

struct Request {
    arrived_at: f64,
    process: usize,
    /// Number of failed attempts.
    failed: i32,
    succeeded: bool,
}

enum Event {
    Send,
    Arrive(f64),
    Hear(bool),
}

pub(super) fn run(cell: Cell, strategy: &str, seed: u64) -> Figures {
    let (retries, limiter) = strategy.split_once('_').unwrap_or((strategy, ""));
    let most = match retries {
        "none" => 0,
        "full9" => 9,
        _ => 3,
    };
    let rate = f64::from(cell.rate);
    let mut rng = Rng::new(seed);
    let mut events = EventQueue::new();
    let mut requests = Vec::new();
    let mut limiters: Vec<_> = (0..cell.processes).map(|_| Limiter::named(limiter)).collect();
    let mut at = rng.exponential(1.0 / rate);
    while at < HORIZON {
        events.put(at, (requests.len(), Event::Send));
        let process = rng.below(cell.processes);
        requests.push(Request { arrived_at: at, process, failed: 0, succeeded: false });
        at += rng.exponential(1.0 / rate);
    }
    let mut done: VecDeque<f64> = VecDeque::new();
    let (mut attempts, mut successes) = (0.0, vec![0.0; HORIZON as usize]);
    while let Some((now, (id, event))) = events.take() {
        if now >= HORIZON {
            break;
        }
        let request = &mut requests[id];
        let limiter = &mut limiters[request.process];
        match event {
            Event::Send => {
                if limiter.sends(now, request.failed == 0, &mut rng) {
                    attempts += f64::from(u8::from(request.arrived_at >= OUT.0));
                    events.put(now + WAY, (id, Event::Arrive(now)));
                }
            }
            Event::Arrive(sent) => {
                let is_out = (OUT.0..OUT.1).contains(&now);
                while done.front().is_some_and(|&done| done <= now) {
                    done.pop_front();
                }
                if (is_out && !cell.stalls) || done.len() >= cell.queue {
                    events.put(now + WAY, (id, Event::Hear(false)));
                    continue;
                }
                let start = done.back().map_or(now, |&last| last.max(now));
                let mut end = start + SERVICE;
                if cell.stalls && (OUT.0..OUT.1).contains(&start) {
                    end = OUT.1 + SERVICE;
                } else if cell.stalls && start < OUT.0 && end > OUT.0 {
                    end += OUT.1 - OUT.0;
                }
                done.push_back(end);
                let (answered, gives_up) = (end + WAY, sent + 1.0);
                events.put(answered.min(gives_up), (id, Event::Hear(answered <= gives_up)));
            }
            Event::Hear(true) => {
                limiter.succeeded(now, request.failed == 0);
                request.succeeded = true;
                successes[now as usize] += 1.0;
            }
            Event::Hear(false) => {
                limiter.failed(now);
                request.failed += 1;
                if request.failed <= most && limiter.try_acquire(now) {
                    let delay = match retries {
                        "imm3" => 0.0,
                        "fixed3" => 0.1,
                        _ => rng.uniform(0.0, 2_f64.min(0.1 * 2_f64.powi(request.failed - 1))),
                    };
                    events.put(now + delay, (id, Event::Send));
                }
            }
        }
    }
    let arrived_at = |from: f64, until: f64| requests.iter().filter(move |r| (from..until).contains(&r.arrived_at));
    let healthy = |from: &usize| successes[*from..from + 5].iter().all(|&count| count >= 0.9 * rate);
    Figures {
        amplification: attempts / arrived_at(OUT.0, HORIZON).count() as f64,
        success: arrived_at(OUT.0, 100.0).filter(|r| r.succeeded).count() as f64
            / arrived_at(OUT.0, 100.0).count() as f64,
        recovery: (22..=115).find(healthy).map(|second| second as f64 - OUT.1),
        goodput: successes[110..].iter().sum::<f64>() / (10.0 * rate),
    }
}

/// The limiter of one process.
enum Limiter {
    None,
    /// 500 tokens; a retry costs five, which are refunded if it succeeds; a successful first attempt adds one.
    Aws(f64),
    /// Allows a tenth of the requests of the last ten seconds plus a hundred retries, with a resolution of a second.
    Window(Slots),
    /// A bucket of a hundred tokens; a request adds a tenth.
    PerRequest(f64),
    /// A bucket of a hundred tokens; a success adds a tenth.
    PerSuccess(f64),
    /// Ten tokens; a failure removes one, a success adds a tenth, and a retry requires more than five.
    Grpc(f64),
    /// Requests and accepted requests, in twelve slots.
    Sre(Slots),
}

/// Two counts per time slot, for the last slots.
struct Slots {
    length: f64,
    most: usize,
    slots: VecDeque<(usize, f64, f64)>,
}

impl Slots {
    const fn new(length: f64, most: usize) -> Self {
        Self { length, most, slots: VecDeque::new() }
    }

    fn add(&mut self, now: f64, first: f64, second: f64) {
        let slot = (now / self.length) as usize;
        match self.slots.back_mut() {
            Some(last) if last.0 == slot => *last = (slot, last.1 + first, last.2 + second),
            _ => self.slots.push_back((slot, first, second)),
        }
        while self.slots.front().is_some_and(|first| first.0 + self.most <= slot) {
            self.slots.pop_front();
        }
    }

    fn sums(&mut self, now: f64) -> (f64, f64) {
        self.add(now, 0.0, 0.0);
        self.slots.iter().fold((0.0, 0.0), |sum, slot| (sum.0 + slot.1, sum.1 + slot.2))
    }
}

impl Limiter {
    fn named(name: &str) -> Self {
        match name {
            "" => Self::None,
            "aws500" => Self::Aws(500.0),
            "ratio10" => Self::Window(Slots::new(1.0, 10)),
            "ratio10b" => Self::PerRequest(100.0),
            "ratio10s" => Self::PerSuccess(100.0),
            "grpc" => Self::Grpc(10.0),
            "sre" => Self::Sre(Slots::new(10.0, 12)),
            "sre12s" => Self::Sre(Slots::new(1.0, 12)),
            _ => panic!("unknown limiter {name}"),
        }
    }

    /// Returns whether an attempt that is due now is sent.
    fn sends(&mut self, now: f64, first: bool, rng: &mut Rng) -> bool {
        match self {
            Self::Window(slots) if first => slots.add(now, 1.0, 0.0),
            Self::PerRequest(tokens) if first => *tokens = 100_f64.min(*tokens + 0.1),
            Self::Sre(slots) => {
                let (requests, accepts) = slots.sums(now);
                slots.add(now, 1.0, 0.0);
                return rng.share() >= (requests - 2.0 * accepts) / (requests + 1.0);
            }
            _ => {}
        }
        true
    }

    /// Returns whether a retry is permitted.
    fn try_acquire(&mut self, now: f64) -> bool {
        match self {
            Self::None | Self::Sre(_) => true,
            Self::Aws(tokens) => pay(tokens, 5.0),
            Self::PerRequest(tokens) | Self::PerSuccess(tokens) => pay(tokens, 1.0),
            Self::Grpc(tokens) => *tokens > 5.0,
            Self::Window(slots) => {
                let (requests, retries) = slots.sums(now);
                let permitted = 100.0 + 0.1 * requests - retries >= 1.0;
                slots.add(now, 0.0, f64::from(u8::from(permitted)));
                permitted
            }
        }
    }

    fn failed(&mut self, _: f64) {
        if let Self::Grpc(tokens) = self {
            *tokens = 0_f64.max(*tokens - 1.0);
        }
    }

    fn succeeded(&mut self, now: f64, first: bool) {
        match self {
            Self::Aws(tokens) => *tokens = 500_f64.min(*tokens + if first { 1.0 } else { 5.0 }),
            Self::PerSuccess(tokens) => *tokens = 100_f64.min(*tokens + 0.1),
            Self::Grpc(tokens) => *tokens = 10_f64.min(*tokens + 0.1),
            Self::Sre(slots) => slots.add(now, 0.0, 1.0),
            Self::None | Self::Window(_) | Self::PerRequest(_) => {}
        }
    }
}

fn pay(tokens: &mut f64, price: f64) -> bool {
    let enough = *tokens >= price;
    *tokens -= if enough { price } else { 0.0 };
    enough
}
