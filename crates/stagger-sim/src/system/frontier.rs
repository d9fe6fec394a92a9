//! A map of what a system survives, over two of its numbers.

use stagger_core::Seed;

use super::definition::System;
use crate::engine::{Progress, Sweep};
use crate::outage::Verdict;

/// A map of what a system survives: two of its numbers, each with several values.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Frontier {
    across: Vec<f64>,
    up: Vec<f64>,
    seeds: u64,
}

/// What a [`Frontier`] found.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FrontierMap {
    /// The values of the first number.
    pub across: Vec<f64>,
    /// The values of the second number.
    pub up: Vec<f64>,
    /// The share of the seeds that stay down: a row for each value of the second number, with a cell for each of the
    /// first.
    pub down: Vec<Vec<f64>>,
    /// The share of the seeds that are not decided after the [longest run](System::LONGEST_RUN), likewise. They are in
    /// no other share.
    pub not_decided: Vec<Vec<f64>>,
}

impl Frontier {
    /// The most cells of a map.
    pub const MAX_CELLS: usize = 10_000;

    /// Creates a map of these values, with 3 seeds. Values beyond [`MAX_CELLS`](Self::MAX_CELLS) are left out.
    pub fn new(across: impl IntoIterator<Item = f64>, up: impl IntoIterator<Item = f64>) -> Self {
        let across: Vec<_> = across.into_iter().take(Self::MAX_CELLS).collect();
        let up = up.into_iter().take(Self::MAX_CELLS / across.len().max(1)).collect();
        Self { across, up, seeds: 3 }
    }

    /// Sets the number of seeds in each cell. Range: 1 to 10,000, to which other values are clamped.
    pub const fn seeds(mut self, seeds: u64) -> Self {
        self.seeds = seeds;
        self
    }

    /// Runs the system that `at` makes of every pair of values, on all cores, with consecutive seeds from `first`.
    /// Returns `None` if it was cancelled.
    ///
    /// # Errors
    /// The error of the first system that cannot be built.
    pub fn run<E>(
        self,
        first: u64,
        at: impl Fn(f64, f64) -> Result<System, E>,
        progress: &Progress,
    ) -> Result<Option<FrontierMap>, E> {
        let Self { across, up, seeds } = self;
        let pairs = up.iter().flat_map(|&y| across.iter().map(move |&x| (x, y)));
        let systems = pairs.map(|(x, y)| at(x, y)).collect::<Result<Vec<_>, E>>()?;
        let seeds: Vec<_> = (0..seeds.clamp(1, 10_000)).map(|nth| Seed::new(first.wrapping_add(nth))).collect();
        let runs = Sweep::new().run(&systems, &seeds, progress, |system, seed, progress| {
            system.run_until_decided_with_progress(seed, progress).map(|figures| figures.verdict())
        });
        let Some(cells) = runs.into_iter().map(|runs| runs.into_iter().collect()).collect::<Option<Vec<Vec<_>>>>()
        else {
            return Ok(None);
        };
        let shares = |is: fn(&Verdict) -> bool| -> Vec<Vec<f64>> {
            let share = |runs: &Vec<Verdict>| runs.iter().filter(|run| is(run)).count() as f64 / runs.len() as f64;
            let cells: Vec<_> = cells.iter().map(share).collect();
            cells.chunks(across.len().max(1)).map(<[f64]>::to_vec).collect()
        };
        let (down, not_decided) = (shares(Verdict::is_down), shares(|verdict| *verdict == Verdict::NotDecided));
        Ok(Some(FrontierMap { across, up, down, not_decided }))
    }
}
