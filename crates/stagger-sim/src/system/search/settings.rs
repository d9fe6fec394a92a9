use stagger_core::Seed;

use super::super::definition::System;
use super::super::error::SystemError;
use super::evidence::{Evidence, Stretch};
use super::found::Found;
use super::narrow::{Narrowing, Region};
use super::tries::{Grain, Halt, Tries};
use crate::engine::progress::Progress;
use crate::engine::sweep::Sweep;

/// A search for the borders between systems that stay down and those that come back, in any number of a system.
///
/// ```
/// use core::time::Duration;
/// use stagger_core::policy;
/// use stagger_sim::Progress;
/// use stagger_sim::system::{Edge, Search, Service, System, Trigger};
///
/// // A server of 200 requests per second, and three attempts: a stall of 10 s tips it from a third of that.
/// let at = |rate| {
///     System::builder(rate)
///         .service(Service::new("server").service_time(Duration::from_millis(5)).backlog(600))
///         .edge(Edge::from_users("server").policy(policy!(zero().max_attempts(3))))
///         .trigger(Trigger::stall())
///         .horizon(Duration::from_secs(120))
///         .build()
/// };
/// let found = Search::between(20.0, 180.0).seeds(4).precision(0.03).run(at, &Progress::new())?.expect("not cancelled");
/// let half = found.borders[0].half;
/// assert!(60.0 < half.low && half.high < 75.0, "{found:?}");
/// # Ok::<(), stagger_sim::system::SystemError>(())
/// ```
///
/// First, values at equal distances are tried, so that a border is found even if larger values are not worse: for services
/// that drop only expired work, a longer stall is survived where a shorter one is not. Borders between two tried values on
/// the same side are not seen.
///
/// A value is on one side of a border if an exact binomial test says that less than half of the seeds stay down, or more:
/// seeds are added until it does. Where chance decides, it does not, and neighboring values with mixed results are one
/// border. With a probability of at most 1 %, one of all these tests errs, and a border is reported that does not exist. If
/// no pair of values is decided, one border is reported where the share of the seeds that stay down changes with
/// significance (a likelihood ratio test, also at 1 %) and crosses one half.
///
/// Then runs are added around each border until the 95 % interval of the value at which half of the seeds stay down is
/// narrow. It is that of a curve through all runs between the neighboring borders: the logistic one, or one with a longer
/// tail on either side. The interval contains all values whose profile likelihood is not significantly smaller, over all
/// slopes and these shapes, and is wider if the results vary more around the curve than chance explains (Finney, "Probit
/// Analysis", 1971).
///
/// Every run has a seed of its own. Runs of one seed at neighboring values often end alike (with a correlation of 0.1 to 0.7
/// at borders of chains of services), so they say less about a border than independent ones.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Search {
    low: f64,
    high: f64,
    seeds: u64,
    intervals: u32,
    precision: f64,
    first_seeds: u64,
    max_runs: u64,
    grain: Grain,
}

impl Search {
    /// Searches between two values: first at nine of them, with four seeds each, then with 24 at a time, up to 3,000 around
    /// each border, until its 95 % interval is ± 1 %.
    pub const fn between(low: f64, high: f64) -> Self {
        let (seeds, first_seeds, max_runs) = (24, 4, 3_000);
        Self { low, high, seeds, intervals: 8, precision: 0.01, first_seeds, max_runs, grain: Grain::Any }
    }

    /// Sets the number of seeds that are added at a value around a border. Range: 1 to 10,000, to which other values are
    /// clamped. Default 24.
    pub const fn seeds(mut self, seeds: u64) -> Self {
        self.seeds = seeds;
        self
    }

    /// Sets the number of equal intervals whose ends are tried first. Range: 1 to 1,000, to which other values are clamped.
    /// Default 8.
    pub const fn intervals(mut self, intervals: u32) -> Self {
        self.intervals = intervals;
        self
    }

    /// Sets how far the ends of the 95 % interval of a border may be from its middle, relative to the value, or to the larger
    /// end of the range if that begins at zero or below. Range: 0.000001 to 1, to which other values are clamped. Default
    /// 0.01.
    pub const fn precision(mut self, precision: f64) -> Self {
        self.precision = precision;
        self
    }

    /// Sets the number of seeds at the values that are tried first. Range: 1 to 100, to which other values are clamped.
    /// Default 4.
    pub const fn first_seeds(mut self, seeds: u64) -> Self {
        self.first_seeds = seeds;
        self
    }

    /// Sets the number of runs after which a border is not narrowed further. Default 3,000.
    pub const fn max_runs(mut self, runs: u64) -> Self {
        self.max_runs = runs;
        self
    }

    /// Tries whole numbers only, for counts. A border lies between two of them.
    pub const fn whole_numbers(mut self) -> Self {
        self.grain = Grain::Whole;
        self
    }

    /// Searches with the system that `at` makes of a value, on all cores. Returns `None` if it was cancelled. The result does
    /// not depend on the number of cores.
    ///
    /// # Errors
    /// The error of the first system that cannot be built.
    pub fn run(
        self,
        at: impl Fn(f64) -> Result<System, SystemError>,
        progress: &Progress,
    ) -> Result<Option<Found>, SystemError> {
        self.run_from(1, at, progress)
    }

    /// Searches like [`run`](Self::run), with other seeds for every number `first`.
    ///
    /// # Errors
    /// The error of the first system that cannot be built.
    pub fn run_from<E>(
        self,
        first: u64,
        at: impl Fn(f64) -> Result<System, E>,
        progress: &Progress,
    ) -> Result<Option<Found>, E> {
        let found =
            self.find(&mut Tries::new(first, |value, seeds: &[Seed]| Ok(count_down(&at(value)?, seeds, progress))));
        match found {
            Ok(found) => Ok(Some(found)),
            Err(Halt::Cancelled) => Ok(None),
            Err(Halt::Failed(error)) => Err(error),
        }
    }

    pub(super) fn find<E>(
        self,
        tries: &mut Tries<impl FnMut(f64, &[Seed]) -> Result<Option<u64>, E>>,
    ) -> Result<Found, Halt<E>> {
        let (precision, intervals) = (self.precision_in_range(), self.intervals.clamp(1, 1_000));
        let mut values: Vec<_> = (0..=intervals)
            .map(|step| self.low + (self.high - self.low) * (f64::from(step) / f64::from(intervals)))
            .map(|value| self.grain.round(value))
            .collect();
        values.dedup();
        for &value in &values {
            tries.add(value, self.first_seeds.clamp(1, 100))?;
        }
        let (stretches, mut undecided) = Evidence::for_values(values.len()).decide(tries)?;
        let mut regions: Vec<_> = stretches.windows(2).filter_map(region).collect();
        if regions.is_empty() && !undecided.is_empty() {
            let whole = [false, true].map(|is_worse_above| Region { low: self.low, high: self.high, is_worse_above });
            regions.extend(whole.into_iter().find(|region| region.crosses(&tries.tried, precision)));
            if !regions.is_empty() {
                undecided.clear();
            }
        }
        // Values between the sides of a border are part of it.
        for pair in stretches.windows(2) {
            let between = |value: f64| {
                pair[0].values.last().is_some_and(|low| *low < value)
                    && pair[1].values.first().is_some_and(|high| value < *high)
            };
            undecided.retain(|value| !between(*value));
        }
        let narrowing = self.narrowing(precision);
        for region in &regions {
            narrowing.narrow(*region, tries)?;
        }
        let borders =
            regions.iter().map(|region| region.border(&tries.tried, precision, [self.low, self.high])).collect();
        Ok(Found { tried: tries.tried.clone(), borders, undecided })
    }

    const fn precision_in_range(self) -> f64 {
        // A value that is not a number is no precision.
        if self.precision >= 1e-6 { self.precision.min(1.0) } else { 1e-6 }
    }

    fn narrowing(self, precision: f64) -> Narrowing {
        let seeds = self.seeds.clamp(1, 10_000);
        Narrowing { grain: self.grain, precision, seeds, few: seeds.min(4), max_runs: self.max_runs }
    }
}

/// Returns the values around a border between two stretches.
fn region(pair: &[Stretch]) -> Option<Region> {
    let (low, high) = (*pair[0].values.first()?, *pair[1].values.last()?);
    Some(Region { low, high, is_worse_above: pair[1].is_down })
}

/// Returns how many of the seeds are down at the horizon; `None` if the runs were cancelled.
fn count_down(system: &System, seeds: &[Seed], progress: &Progress) -> Option<u64> {
    let runs = Sweep::new().run(&[()], seeds, progress, |(), seed, progress| system.run_with_progress(seed, progress));
    let verdicts: Option<Vec<_>> = runs.into_iter().flatten().map(|run| run.map(|run| run.is_metastable())).collect();
    Some(verdicts?.into_iter().filter(|&is_down| is_down).count() as u64)
}
