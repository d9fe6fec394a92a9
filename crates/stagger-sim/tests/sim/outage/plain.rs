//! A plain model of an outage: seconds in floating point, a heap, and limiters by their rules alone.

use std::collections::VecDeque;

use crate::sim::plain::{Agenda, Dice};

/// What comes, and what it meets. The server does a thousand jobs a second and is out from 20 s to 22 s; a client waits for a
/// second, a message takes 5 ms, and everything ends after two minutes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub(super) rate: u32,
    pub(super) queue: usize,
    pub(super) processes: usize,
    pub(super) stalls: bool,
}

/// What came of it.
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
    born: f64,
    process: usize,
    /// Attempts that have failed.
    failed: i32,
    succeeded: bool,
}

enum Happens {
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
    let mut dice = Dice::new(seed);
    let mut agenda = Agenda::new();
    let mut requests = Vec::new();
    let mut limiters: Vec<_> = (0..cell.processes).map(|_| Limiter::named(limiter)).collect();
    let mut at = dice.exponential(1.0 / rate);
    while at < HORIZON {
        agenda.put(at, (requests.len(), Happens::Send));
        let process = dice.below(cell.processes);
        requests.push(Request { born: at, process, failed: 0, succeeded: false });
        at += dice.exponential(1.0 / rate);
    }
    let mut done: VecDeque<f64> = VecDeque::new();
    let (mut attempts, mut successes) = (0.0, vec![0.0; HORIZON as usize]);
    while let Some((now, (id, happens))) = agenda.take() {
        if now >= HORIZON {
            break;
        }
        let request = &mut requests[id];
        let limiter = &mut limiters[request.process];
        match happens {
            Happens::Send => {
                if limiter.sends(now, request.failed == 0, &mut dice) {
                    attempts += f64::from(u8::from(now >= OUT.0));
                    agenda.put(now + WAY, (id, Happens::Arrive(now)));
                }
            }
            Happens::Arrive(sent) => {
                let is_out = (OUT.0..OUT.1).contains(&now);
                while done.front().is_some_and(|&done| done <= now) {
                    done.pop_front();
                }
                if (is_out && !cell.stalls) || done.len() >= cell.queue {
                    agenda.put(now + WAY, (id, Happens::Hear(false)));
                    continue;
                }
                let begins = done.back().map_or(now, |&last| last.max(now));
                let mut ends = begins + SERVICE;
                if cell.stalls && (OUT.0..OUT.1).contains(&begins) {
                    ends = OUT.1 + SERVICE;
                } else if cell.stalls && begins < OUT.0 && ends > OUT.0 {
                    ends += OUT.1 - OUT.0;
                }
                done.push_back(ends);
                let (answered, gives_up) = (ends + WAY, sent + 1.0);
                agenda.put(answered.min(gives_up), (id, Happens::Hear(answered <= gives_up)));
            }
            Happens::Hear(true) => {
                limiter.succeeded(now, request.failed == 0);
                request.succeeded = true;
                successes[now as usize] += 1.0;
            }
            Happens::Hear(false) => {
                limiter.failed(now);
                request.failed += 1;
                if request.failed <= most && limiter.lends(now) {
                    let delay = match retries {
                        "imm3" => 0.0,
                        "fixed3" => 0.1,
                        _ => dice.uniform(0.0, 2_f64.min(0.1 * 2_f64.powi(request.failed - 1))),
                    };
                    agenda.put(now + delay, (id, Happens::Send));
                }
            }
        }
    }
    let born = |from: f64, until: f64| requests.iter().filter(move |r| (from..until).contains(&r.born));
    let healthy = |from: &usize| successes[*from..from + 5].iter().all(|&count| count >= 0.9 * rate);
    Figures {
        amplification: attempts / born(OUT.0, HORIZON).count() as f64,
        success: born(OUT.0, 100.0).filter(|r| r.succeeded).count() as f64 / born(OUT.0, 100.0).count() as f64,
        recovery: (22..=115).find(healthy).map(|second| second as f64 - OUT.1),
        goodput: successes[110..].iter().sum::<f64>() / (10.0 * rate),
    }
}

/// What one process lets itself send.
enum Limiter {
    None,
    /// 500 tokens; a retry costs five, and gives them back when it succeeds; a first attempt that does gives one.
    Aws(f64),
    /// A tenth of the requests of ten seconds and a hundred, less the retries: both by the second.
    Window(Slots),
    /// A bucket of a hundred: a tenth for each request.
    PerRequest(f64),
    /// The same, a tenth for each success.
    PerSuccess(f64),
    /// Ten tokens, one for each failure, a tenth back for each success; a retry wants more than five.
    Grpc(f64),
    /// Requests and accepts, in twelve slots.
    Sre(Slots),
}

/// Two counts by slots of time, of which the last few are remembered.
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
            _ => panic!("there is no limiter {name}"),
        }
    }

    /// Whether an attempt is made that is due now.
    fn sends(&mut self, now: f64, first: bool, dice: &mut Dice) -> bool {
        match self {
            Self::Window(slots) if first => slots.add(now, 1.0, 0.0),
            Self::PerRequest(tokens) if first => *tokens = 100_f64.min(*tokens + 0.1),
            Self::Sre(slots) => {
                let (requests, accepts) = slots.sums(now);
                slots.add(now, 1.0, 0.0);
                return dice.share() >= (requests - 2.0 * accepts) / (requests + 1.0);
            }
            _ => {}
        }
        true
    }

    /// Whether a retry is paid for.
    fn lends(&mut self, now: f64) -> bool {
        match self {
            Self::None | Self::Sre(_) => true,
            Self::Aws(tokens) => pay(tokens, 5.0),
            Self::PerRequest(tokens) | Self::PerSuccess(tokens) => pay(tokens, 1.0),
            Self::Grpc(tokens) => *tokens > 5.0,
            Self::Window(slots) => {
                let (requests, retries) = slots.sums(now);
                let lends = 100.0 + 0.1 * requests - retries >= 1.0;
                slots.add(now, 0.0, f64::from(u8::from(lends)));
                lends
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
    let pays = *tokens >= price;
    *tokens -= if pays { price } else { 0.0 };
    pays
}
