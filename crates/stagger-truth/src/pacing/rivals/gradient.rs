use super::{Rival, Start};
use crate::pacing::Nanos;
use crate::pacing::server::{Answer, SECOND};

/// Netflix's Gradient2: the limit of requests in flight follows the ratio of the long to the short mean of the latency.
/// Refusals do not count; they are only fast answers.
///
/// Source: Netflix concurrency-limits, `Gradient2Limit` with its defaults: from 20, at least 20, at most 200, a queue of 4,
/// tolerance 1.5, smoothing 0.2, a long mean over 600 samples of a second each.
#[derive(Debug)]
pub struct Gradient {
    limit: f64,
    most: f64,
    long: f64,
    samples: f64,
    window: u64,
    sum: f64,
    count: f64,
    in_flight: usize,
}

impl Gradient {
    /// With an upper bound of the limit; the default is 200.
    #[must_use]
    pub const fn new(most: f64) -> Self {
        Self { limit: 20.0, most, long: 0.0, samples: 0.0, window: 0, sum: 0.0, count: 0.0, in_flight: 0 }
    }

    fn sample(&mut self) {
        let short = self.sum / self.count;
        self.samples += 1.0;
        self.long = if self.samples <= 10.0 {
            self.long + (short - self.long) / self.samples
        } else {
            self.long + (short - self.long) * 2.0 / 601.0
        };
        if self.long / short > 2.0 {
            self.long *= 0.95;
        }
        if (self.in_flight as f64) < self.limit / 2.0 {
            return;
        }
        let gradient = (1.5 * self.long / short).clamp(0.5, 1.0);
        let next = self.limit * gradient + 4.0;
        self.limit = (self.limit * 0.8 + next * 0.2).clamp(20.0, self.most);
    }
}

impl Rival for Gradient {
    fn start(&mut self, _: Nanos, in_flight: usize, _: f64) -> Start {
        if (in_flight as f64) < self.limit { Start::Now } else { Start::WhenAnswered }
    }

    fn answered(&mut self, began: Nanos, now: Nanos, _: Answer, in_flight: usize) {
        self.sum += (now - began) as f64;
        self.count += 1.0;
        self.in_flight = self.in_flight.max(in_flight);
        if now / SECOND != self.window && self.count >= 10.0 {
            self.sample();
            (self.window, self.sum, self.count, self.in_flight) = (now / SECOND, 0.0, 0.0, 0);
        }
    }

    fn limit(&self) -> f64 {
        self.limit
    }
}
