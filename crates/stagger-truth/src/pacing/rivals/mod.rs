//! Models of other projects' controllers, written from their descriptions, with their default parameters, and of the
//! pacer's first form: for comparison, and never shipped.

mod aimd;
mod cubic;
mod first_form;
mod gradient;
mod throttler;
mod vegas;

pub use aimd::Aimd;
pub use cubic::Cubic;
pub use first_form::FirstForm;
pub use gradient::Gradient;
pub use throttler::Throttler;
pub use vegas::Vegas;

use super::Nanos;
use super::server::{Answer, SECOND};

/// Whether the first of the waiting calls may start.
#[derive(Clone, Copy, Debug)]
pub enum Start {
    /// Now.
    Now,
    /// At this time, if nothing changes before.
    At(Nanos),
    /// When a request has been answered.
    WhenAnswered,
    /// Not at all: the call is rejected, and waits as if the server had refused it.
    Rejected,
}

/// A controller of one client process.
pub trait Rival: core::fmt::Debug {
    /// Asks whether the first of the waiting calls may start, and lets it start if the answer is now. `draw` is from
    /// `[0, 1)`.
    fn start(&mut self, now: Nanos, in_flight: usize, draw: f64) -> Start;

    /// Takes notice of the answer to a request that began at `began`.
    fn answered(&mut self, began: Nanos, now: Nanos, answer: Answer, in_flight: usize);

    /// Returns the limit, for tests of its growth.
    fn limit(&self) -> f64;
}

/// Releases at a rate, with a burst.
#[derive(Debug)]
struct Bucket {
    tokens: f64,
    filled: Nanos,
}

impl Bucket {
    const fn new() -> Self {
        Self { tokens: 1.0, filled: 0 }
    }

    fn start(&mut self, now: Nanos, rate: f64, burst: f64) -> Start {
        let passed = (now - self.filled) as f64 / SECOND as f64;
        self.tokens = (self.tokens + passed * rate).min(burst.max(1.0));
        self.filled = now;
        if self.tokens >= 1.0 {
            self.tokens -= 1.0;
            return Start::Now;
        }
        Start::At(now + ((1.0 - self.tokens) / rate * SECOND as f64) as Nanos + 1)
    }
}
