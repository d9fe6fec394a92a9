use std::collections::VecDeque;

use super::{Rival, Start};
use crate::pacing::Nanos;
use crate::pacing::server::{Answer, SECOND};

/// What the pacer was at first: the rate of the second before the first refusal, cut to what was admitted in the last
/// second, growing alike at every rate.
#[derive(Debug, Default)]
pub struct FirstForm {
    /// The rate, once there was a refusal.
    rate: Option<f64>,
    successes: VecDeque<Nanos>,
    released: Nanos,
    tick: u64,
    is_refused: bool,
    is_held: bool,
    refused_tick: u64,
    held_tick: u64,
    cut_at: Nanos,
}

const TICK: Nanos = SECOND / 10;

impl FirstForm {
    fn admitted(&self, now: Nanos) -> f64 {
        self.successes.iter().rev().take_while(|at| **at + SECOND >= now).count() as f64
    }

    fn advance(&mut self, now: Nanos) {
        let here = now / TICK;
        if self.tick == here {
            return;
        }
        if let Some(rate) = &mut self.rate {
            if self.is_refused {
                self.refused_tick = self.tick;
            } else if self.is_held {
                let clean = ((self.tick - self.refused_tick) / 10) as i32;
                *rate *= 1.0 + (0.005 * 1.3_f64.powi((clean - 2).max(0))).min(0.1);
            }
            if self.is_held {
                self.held_tick = self.tick;
            }
            if here - self.held_tick >= 300 {
                self.rate = None;
            }
        }
        (self.tick, self.is_refused, self.is_held) = (here, false, false);
    }
}

impl Rival for FirstForm {
    fn start(&mut self, now: Nanos, _: usize, _: f64) -> Start {
        self.advance(now);
        let Some(rate) = self.rate else { return Start::Now };
        let next = self.released + (SECOND as f64 / rate) as Nanos;
        if now >= next {
            self.released = next.max(now.saturating_sub(SECOND / 20));
            return Start::Now;
        }
        self.is_held = true;
        Start::At(next)
    }

    fn answered(&mut self, _: Nanos, now: Nanos, answer: Answer, _: usize) {
        self.advance(now);
        match answer {
            Answer::Success => {
                self.successes.push_back(now);
                while self.successes.front().is_some_and(|at| at + SECOND < now) {
                    self.successes.pop_front();
                }
            }
            Answer::Refused(_) => {
                self.is_refused = true;
                let admitted = self.admitted(now);
                let next = match self.rate {
                    None => {
                        (self.released, self.held_tick) = (now, self.tick);
                        admitted
                    }
                    Some(rate) if now - self.cut_at >= SECOND / 2 => rate.min(admitted.max(rate / 2.0)),
                    Some(_) => return,
                };
                (self.rate, self.cut_at) = (Some((0.97 * next).max(1.0)), now);
            }
            Answer::Error => {}
        }
    }

    fn limit(&self) -> f64 {
        self.rate.unwrap_or(f64::INFINITY)
    }
}
