use crate::{Seed, time::Entropy as _, time::SystemEntropy};

/// Where the random numbers come from: any `FnMut() -> f64` is a source too.
pub trait Random {
    /// The next one, uniform on `[0, 1)`. What is outside is taken for the nearer end.
    fn next(&mut self) -> f64;

    /// The backoff was reset.
    fn reset(&mut self) {}
}

impl<F: FnMut() -> f64> Random for F {
    fn next(&mut self) -> f64 {
        self()
    }
}

/// The crate's own randomness: a seed for each call, from the system's entropy unless one is told.
///
/// The seed is drawn at the first wait after each reset. With a seed that was told, the same waits follow every reset;
/// it is for tests and reports, since calls that share a seed wait in lockstep.
#[derive(Debug, Default)]
pub struct Seeded {
    told: Option<Seed>,
    seed: Option<Seed>,
    drawn: u64,
}

impl Seeded {
    pub(super) const fn with(seed: Seed) -> Self {
        Self { told: Some(seed), seed: None, drawn: 0 }
    }
}

/// A clone begins anew, so that it never draws what the other one draws; unless a seed was told.
impl Clone for Seeded {
    fn clone(&self) -> Self {
        Self { told: self.told, seed: None, drawn: 0 }
    }
}

impl Random for Seeded {
    fn next(&mut self) -> f64 {
        let told = self.told;
        let seed = self.seed.get_or_insert_with(|| told.unwrap_or_else(|| SystemEntropy.seed()));
        let bits = seed.for_call(self.drawn).get();
        self.drawn = self.drawn.wrapping_add(1);
        // The 53 bits that an `f64` holds exactly.
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn reset(&mut self) {
        self.seed = None;
        self.drawn = 0;
    }
}
