use stagger_core::Seed;

use super::super::state::Stream;
use super::found::Tried;

/// Which values are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grain {
    Any,
    Whole,
}

/// Why a search ends early.
pub(super) enum Halt<E> {
    Cancelled,
    Failed(E),
}

/// The values that were tried, and what tries more: `run` returns how many of the seeds are down, or `None` if it was
/// cancelled.
pub(super) struct Tries<F> {
    run: F,
    /// The seeds that have not run: every run of a search has its own, because runs of the same seed at neighboring values
    /// often end alike, and would say less than as many independent ones.
    seeds: Stream,
    /// In increasing order.
    pub(super) tried: Vec<Tried>,
}

impl<E, F: FnMut(f64, &[Seed]) -> Result<Option<u64>, E>> Tries<F> {
    pub(super) const fn new(first: u64, run: F) -> Self {
        Self { run, seeds: Stream::new(Seed::new(first)), tried: Vec::new() }
    }

    /// Runs a value with this many more seeds.
    pub(super) fn add(&mut self, value: f64, seeds: u64) -> Result<(), Halt<E>> {
        let new: Vec<_> = (0..seeds).map(|_| Seed::new(self.seeds.bits())).collect();
        let down = (self.run)(value, &new).map_err(Halt::Failed)?.ok_or(Halt::Cancelled)?;
        let place = self.tried.partition_point(|tried| tried.value < value);
        match self.tried.get_mut(place).filter(|tried| tried.value <= value) {
            Some(known) => (known.down, known.seeds) = (known.down + down, known.seeds + seeds),
            None => self.tried.insert(place, Tried { value, down, seeds }),
        }
        Ok(())
    }
}

impl<F> Tries<F> {
    /// Returns how many seeds a value has run with.
    pub(super) fn seeds_at(&self, value: f64) -> u64 {
        self.tried.iter().find(|tried| tried.value.total_cmp(&value).is_eq()).map_or(0, |tried| tried.seeds)
    }

    /// Returns the value that was tried closest to another.
    pub(super) fn nearest(&self, value: f64) -> Option<Tried> {
        let distance = |tried: &&Tried| (tried.value - value).abs();
        self.tried.iter().min_by(|a, b| distance(a).total_cmp(&distance(b))).copied()
    }
}

impl Grain {
    pub(super) fn round(self, value: f64) -> f64 {
        if self == Self::Whole { value.round() } else { value }
    }
}
