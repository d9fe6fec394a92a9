use stagger_core::Seed;

use super::definition::System;
use super::error::SystemError;
use crate::engine::progress::Progress;
use crate::engine::sweep::Sweep;

/// A search for the border between systems that stay down and those that come back, in any number of a system.
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
///         .build()
/// };
/// let found = Search::between(20.0, 180.0).seeds(4).run(at, &Progress::new())?.expect("not cancelled");
/// let edge = found.borders[0];
/// assert!(60.0 < edge.low && edge.high < 75.0, "{found:?}");
/// # Ok::<(), stagger_sim::system::SystemError>(())
/// ```
///
/// First, values at equal distances are tried, so that a border is found even if larger values are not worse: for services
/// that drop only expired work, a longer stall is survived where a shorter one is not. Then each pair of neighbors with
/// different majorities is bisected. Borders between two tried values of the same majority are not seen.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use]
pub struct Search {
    low: f64,
    high: f64,
    seeds: u64,
    steps: u32,
    precision: f64,
}

/// What a [`Search`] found.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Found {
    /// All values that were tried, in increasing order.
    pub tried: Vec<Tried>,
    /// The borders between values at which less than half of the seeds stay down and those at which half or more do, in
    /// increasing order.
    pub borders: Vec<Border>,
}

/// A value that a [`Search`] tried.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Tried {
    /// The value.
    pub value: f64,
    /// How many seeds are down at the horizon.
    pub down: u64,
    /// Number of seeds.
    pub seeds: u64,
}

/// A border that a [`Search`] found: the two closest values that were tried.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Border {
    /// The smaller value.
    pub low: f64,
    /// The larger value.
    pub high: f64,
    /// Whether the system stays down above the border, and not below it.
    pub is_worse_above: bool,
}

impl Search {
    /// Searches between two values: first at nine of them, then to within 0.5 % with 16 seeds.
    pub const fn between(low: f64, high: f64) -> Self {
        Self { low, high, seeds: 16, steps: 8, precision: 0.005 }
    }

    /// Sets the number of seeds at each value. Range: 1 to 10,000, to which other values are clamped.
    pub const fn seeds(mut self, seeds: u64) -> Self {
        self.seeds = seeds;
        self
    }

    /// Sets the number of equal intervals that are tried first. Range: 1 to 1,000, to which other values are clamped.
    pub const fn intervals(mut self, intervals: u32) -> Self {
        self.steps = intervals;
        self
    }

    /// Sets the distance to bisect to, relative to the larger value. Range: 0.000001 to 1, to which other values are clamped.
    pub const fn precision(mut self, precision: f64) -> Self {
        self.precision = precision;
        self
    }

    /// Searches with the system that `at` makes of a value. Returns `None` if it was cancelled. The same seeds run at every
    /// value, on all cores; the result does not depend on their number.
    ///
    /// # Errors
    /// The error of the first system that cannot be built.
    pub fn run(
        self,
        at: impl Fn(f64) -> Result<System, SystemError>,
        progress: &Progress,
    ) -> Result<Option<Found>, SystemError> {
        let seeds: Vec<_> = (1..=self.seeds.clamp(1, 10_000)).map(Seed::new).collect();
        let steps = self.steps.clamp(1, 1_000);
        // A value that is not a number is no precision.
        let precision = if self.precision >= 1e-6 { self.precision.min(1.0) } else { 1e-6 };
        let mut tried = Vec::new();
        for step in 0..=steps {
            let share = f64::from(step) / f64::from(steps);
            let value = self.low + (self.high - self.low) * share;
            let Some(result) = try_value(&at(value)?, value, &seeds, progress) else { return Ok(None) };
            tried.push(result);
        }
        let edges: Vec<_> =
            tried.windows(2).filter(|pair| pair[0].stays_down() != pair[1].stays_down()).map(pair).collect();
        let mut borders = Vec::new();
        for [mut low, mut high] in edges {
            while (high.value - low.value).abs() > precision * high.value.abs().max(low.value.abs()) {
                let value = f64::midpoint(low.value, high.value);
                if value <= low.value || value >= high.value {
                    break;
                }
                let Some(middle) = try_value(&at(value)?, value, &seeds, progress) else { return Ok(None) };
                tried.push(middle);
                let half = if middle.stays_down() == low.stays_down() { &mut low } else { &mut high };
                *half = middle;
            }
            borders.push(Border { low: low.value, high: high.value, is_worse_above: high.stays_down() });
        }
        tried.sort_by(|a, b| a.value.total_cmp(&b.value));
        Ok(Some(Found { tried, borders }))
    }
}

impl Tried {
    /// Returns whether half of the seeds or more are down at the horizon.
    #[must_use]
    pub const fn stays_down(&self) -> bool {
        2 * self.down >= self.seeds
    }

    /// Returns the share of the seeds that are down at the horizon.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.down as f64 / self.seeds as f64
    }
}

impl Found {
    /// Returns the largest value of those below which, among the values that were tried, at most this share of the seeds is
    /// down; `None` if there is none.
    #[must_use]
    pub fn highest_with_at_most(&self, share: f64) -> Option<f64> {
        self.tried.iter().take_while(|tried| tried.ratio() <= share).last().map(|tried| tried.value)
    }

    /// Returns the smallest value of those above which, among the values that were tried, at least this share of the seeds is
    /// down; `None` if there is none.
    #[must_use]
    pub fn lowest_with_at_least(&self, share: f64) -> Option<f64> {
        self.tried.iter().rev().take_while(|tried| tried.ratio() >= share).last().map(|tried| tried.value)
    }
}

fn pair(pair: &[Tried]) -> [Tried; 2] {
    [pair[0], pair[1]]
}

fn try_value(system: &System, value: f64, seeds: &[Seed], progress: &Progress) -> Option<Tried> {
    let runs = Sweep::new().run(&[()], seeds, progress, |(), seed, progress| system.run_with_progress(seed, progress));
    let verdicts: Option<Vec<_>> = runs.into_iter().flatten().map(|run| run.map(|run| run.is_metastable())).collect();
    let down = verdicts?.into_iter().filter(|&is_down| is_down).count() as u64;
    Some(Tried { value, down, seeds: seeds.len() as u64 })
}
