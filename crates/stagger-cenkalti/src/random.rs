use stagger::Seed;

/// A source of random numbers; any `FnMut() -> f64` is one.
pub trait Random {
    /// Returns the next number, uniform on `[0, 1)`. A value outside is clamped to the nearer end.
    fn next(&mut self) -> f64;

    /// Resets the source, together with its backoff.
    fn reset(&mut self) {}
}

impl<F: FnMut() -> f64> Random for F {
    fn next(&mut self) -> f64 {
        self()
    }
}

/// The crate's own random numbers: a seed per call, from the system's entropy unless one was set.
///
/// The seed is drawn at the first wait after each reset. With a fixed seed, the same waits follow every reset; use it
/// for tests and reports only, because calls that share a seed wait in lockstep.
#[derive(Debug, Default)]
pub struct Seeded {
    fixed: Option<Seed>,
    seed: Option<Seed>,
    drawn: u64,
}

impl Seeded {
    pub(crate) const fn with_seed(seed: Seed) -> Self {
        Self { fixed: Some(seed), seed: None, drawn: 0 }
    }
}

/// A clone starts anew, so that it never repeats the draws of the original, unless its seed is fixed.
impl Clone for Seeded {
    fn clone(&self) -> Self {
        Self { fixed: self.fixed, seed: None, drawn: 0 }
    }
}

impl Random for Seeded {
    fn next(&mut self) -> f64 {
        let fixed = self.fixed;
        let seed = self.seed.get_or_insert_with(|| fixed.unwrap_or_else(stagger::seed));
        let bits = seed.for_call(self.drawn).get();
        self.drawn = self.drawn.wrapping_add(1);
        // The 53 bits that an `f64` represents exactly.
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn reset(&mut self) {
        self.seed = None;
        self.drawn = 0;
    }
}
