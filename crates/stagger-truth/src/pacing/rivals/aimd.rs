use super::{Bucket, Rival, Start};
use crate::pacing::Nanos;
use crate::pacing::server::{Answer, SECOND};

/// The rate of first attempts as Lance, Loki and OpenDAL control it: so much more per second without a refusal, a share
/// of it in a window with one. Always active.
#[derive(Debug)]
pub struct Aimd {
    rate: f64,
    increase: f64,
    decrease: f64,
    bucket: Bucket,
    cut_at: Nanos,
    grown_at: Nanos,
}

impl Aimd {
    /// Lance and Loki: from 2,000/s, 300/s more, half of it after a refusal.
    #[must_use]
    pub const fn lance() -> Self {
        Self::new(2_000.0, 300.0, 0.5)
    }

    /// OpenDAL's gentle form: 50/s more, 0.9 of it after a refusal.
    #[must_use]
    pub const fn gentle() -> Self {
        Self::new(2_000.0, 50.0, 0.9)
    }

    const fn new(rate: f64, increase: f64, decrease: f64) -> Self {
        Self { rate, increase, decrease, bucket: Bucket::new(), cut_at: 0, grown_at: 0 }
    }
}

impl Rival for Aimd {
    fn start(&mut self, now: Nanos, _: usize, _: f64) -> Start {
        self.bucket.start(now, self.rate, 100.0)
    }

    fn answered(&mut self, _: Nanos, now: Nanos, answer: Answer, _: usize) {
        match answer {
            Answer::Refused(_) if now - self.cut_at >= SECOND => {
                self.rate = (self.rate * self.decrease).max(1.0);
                (self.cut_at, self.grown_at) = (now, now);
            }
            Answer::Success if now - self.grown_at >= SECOND => {
                self.rate = (self.rate + self.increase).min(5_000.0);
                self.grown_at = now;
            }
            _ => {}
        }
    }

    fn limit(&self) -> f64 {
        self.rate
    }
}
