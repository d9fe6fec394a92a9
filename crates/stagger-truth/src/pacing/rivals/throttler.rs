use std::collections::VecDeque;

use super::{Rival, Start};
use crate::pacing::Nanos;
use crate::pacing::server::{Answer, SECOND};

/// failsafe-go's adaptive throttler: rejects calls at random, as many as keep the share of failures of a minute at 10 %,
/// at most 90 % of them.
///
/// Source: its documentation, after Google's book on reliability ("Handling Overload").
#[derive(Debug, Default)]
pub struct Throttler {
    /// Seconds, requests (those that were rejected here too), and successes.
    seconds: VecDeque<(u64, f64, f64)>,
}

impl Throttler {
    fn count(&mut self, now: Nanos, requests: f64, successes: f64) {
        let here = now / SECOND;
        while self.seconds.front().is_some_and(|(second, ..)| second + 60 <= here) {
            self.seconds.pop_front();
        }
        match self.seconds.back_mut() {
            Some((second, all, good)) if *second == here => (*all, *good) = (*all + requests, *good + successes),
            _ => self.seconds.push_back((here, requests, successes)),
        }
    }

    fn rejects(&self) -> f64 {
        let (all, good) = self.seconds.iter().fold((0.0, 0.0), |(all, good), (_, a, g)| (all + a, good + g));
        if all < 10.0 { 0.0 } else { ((all - good / 0.9) / (all + 1.0)).clamp(0.0, 0.9) }
    }
}

impl Rival for Throttler {
    fn start(&mut self, now: Nanos, _: usize, draw: f64) -> Start {
        let rejected = draw < self.rejects();
        self.count(now, 1.0, 0.0);
        if rejected { Start::Rejected } else { Start::Now }
    }

    fn answered(&mut self, _: Nanos, now: Nanos, answer: Answer, _: usize) {
        self.count(now, 0.0, f64::from(u8::from(answer == Answer::Success)));
    }

    fn limit(&self) -> f64 {
        1.0 - self.rejects()
    }
}
