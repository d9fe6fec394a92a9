//! Random circumstances.

use core::time::Duration;

use stagger::Seed;

/// The random draws of a case: a function of its seed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws {
    seed: Seed,
    count: u64,
}

impl Draws {
    /// Creates the draws of the case with this seed.
    pub(crate) const fn new(seed: Seed) -> Self {
        Self { seed, count: 0 }
    }

    /// Draws a number uniformly from `[0, 1)`.
    pub(crate) fn share(&mut self) -> f64 {
        self.count += 1;
        (self.seed.draw(self.count) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Draws a number between these two, both above 0, uniformly in its logarithm.
    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.share())
    }

    /// Draws a duration between these two, in seconds, in whole milliseconds.
    pub(crate) fn duration(&mut self, low: f64, high: f64) -> Duration {
        let seconds = self.between(low, high);
        Duration::from_millis((seconds * 1_000.0).round() as u64)
    }

    /// Draws one of these; returns `None` if there are none.
    pub(crate) fn one_of<T: Copy>(&mut self, all: &[T]) -> Option<T> {
        all.get(((self.share() * all.len() as f64) as usize).min(all.len().saturating_sub(1))).copied()
    }

    /// Draws whether something happens that has this probability.
    pub(crate) fn is(&mut self, probability: f64) -> bool {
        self.share() < probability
    }

    /// Draws 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.count += 1;
        self.seed.draw(self.count)
    }

    /// Draws a seed for a simulation.
    pub(crate) fn seed(&mut self) -> Seed {
        Seed::new(self.bits())
    }
}
