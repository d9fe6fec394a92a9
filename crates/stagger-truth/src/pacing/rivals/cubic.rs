use super::{Bucket, Rival, Start};
use crate::pacing::Nanos;
use crate::pacing::server::{Answer, SECOND};

/// The adaptive mode of the AWS SDKs: a bucket whose rate is a cubic function of the time since the last refusal, at most
/// twice the measured rate of sending. Passive until the first refusal.
///
/// Source: AWS SDK specification "Adaptive retry mode"; parameters of aws-smithy-runtime: beta 0.7, scale 0.4, smoothing
/// 0.8, buckets of half a second, at least half a request per second.
#[derive(Debug)]
pub struct Cubic {
    is_active: bool,
    rate: f64,
    capacity: f64,
    bucket: Bucket,
    last_max: f64,
    window: f64,
    throttled_at: Nanos,
    measured: f64,
    bucket_of: u64,
    sent: f64,
}

const BETA: f64 = 0.7;
const SCALE: f64 = 0.4;
const SMOOTH: f64 = 0.8;
const LEAST: f64 = 0.5;

impl Default for Cubic {
    fn default() -> Self {
        Self {
            is_active: false,
            rate: LEAST,
            capacity: 1.0,
            bucket: Bucket::new(),
            last_max: 0.0,
            window: 0.0,
            throttled_at: 0,
            measured: 0.0,
            bucket_of: 0,
            sent: 0.0,
        }
    }
}

impl Cubic {
    fn measure(&mut self, now: Nanos) {
        let here = now / (SECOND / 2);
        self.sent += 1.0;
        if here > self.bucket_of {
            let rate = self.sent / ((here - self.bucket_of) as f64 * 0.5);
            self.measured = rate * SMOOTH + self.measured * (1.0 - SMOOTH);
            (self.sent, self.bucket_of) = (0.0, here);
        }
    }
}

impl Rival for Cubic {
    fn start(&mut self, now: Nanos, _: usize, _: f64) -> Start {
        if self.is_active { self.bucket.start(now, self.rate, self.capacity) } else { Start::Now }
    }

    fn answered(&mut self, _: Nanos, now: Nanos, answer: Answer, _: usize) {
        self.measure(now);
        let calculated = match answer {
            Answer::Refused(_) => {
                let used = if self.is_active { self.measured.min(self.rate) } else { self.measured };
                self.last_max = used;
                self.window = (self.last_max * (1.0 - BETA) / SCALE).cbrt();
                self.throttled_at = now;
                self.is_active = true;
                used * BETA
            }
            _ => {
                self.window = (self.last_max * (1.0 - BETA) / SCALE).cbrt();
                let since = (now - self.throttled_at) as f64 / SECOND as f64 - self.window;
                SCALE * since.powi(3) + self.last_max
            }
        };
        self.rate = calculated.min(2.0 * self.measured).max(LEAST);
        self.capacity = self.rate.max(1.0);
    }

    fn limit(&self) -> f64 {
        self.rate
    }
}
