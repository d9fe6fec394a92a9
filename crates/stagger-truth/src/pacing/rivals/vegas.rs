use super::{Rival, Start};
use crate::pacing::Nanos;
use crate::pacing::server::{Answer, SECOND};

/// failsafe-go's adaptive limiter: a limit of requests in flight by a form of TCP Vegas. Refusals are not measured.
///
/// Source: its documentation: limits of 1 to 200 from 20, a recent window of a second and at least 50 samples, a baseline of
/// ten windows, a limit of at most five times what is in flight. The queue is estimated by the ratio of the baseline's
/// latency to the recent one; below alpha the limit grows, above beta it shrinks, both by the logarithm of the limit.
#[derive(Debug)]
pub struct Vegas {
    limit: f64,
    baseline: f64,
    since: Nanos,
    sum: f64,
    count: f64,
    in_flight: usize,
}

impl Default for Vegas {
    fn default() -> Self {
        Self { limit: 20.0, baseline: 0.0, since: 0, sum: 0.0, count: 0.0, in_flight: 0 }
    }
}

impl Vegas {
    fn sample(&mut self) {
        let recent = self.sum / self.count;
        self.baseline =
            if self.baseline == 0.0 { recent } else { self.baseline + (recent - self.baseline) * 2.0 / 11.0 };
        let queue = self.limit * (1.0 - (self.baseline / recent).min(1.0));
        let step = self.limit.log10().max(1.0);
        if queue > 6.0 * step {
            self.limit -= step;
        } else if queue < 3.0 * step {
            self.limit += step;
        }
        self.limit = self.limit.min(self.in_flight.max(1) as f64 * 5.0).clamp(1.0, 200.0);
    }
}

impl Rival for Vegas {
    fn start(&mut self, _: Nanos, in_flight: usize, _: f64) -> Start {
        if (in_flight as f64) < self.limit { Start::Now } else { Start::WhenAnswered }
    }

    fn answered(&mut self, began: Nanos, now: Nanos, answer: Answer, in_flight: usize) {
        self.in_flight = self.in_flight.max(in_flight + 1);
        if matches!(answer, Answer::Refused(_)) {
            return;
        }
        self.sum += (now - began) as f64;
        self.count += 1.0;
        if now - self.since >= SECOND && self.count >= 50.0 {
            self.sample();
            (self.since, self.sum, self.count, self.in_flight) = (now, 0.0, 0.0, 0);
        }
    }

    fn limit(&self) -> f64 {
        self.limit
    }
}
