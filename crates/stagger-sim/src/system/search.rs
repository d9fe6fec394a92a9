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
    /// Number of seeds at the values that are tried first.
    first_seeds: u64,
    grain: Grain,
    /// Whether the values are found at which a tenth and nine tenths of the seeds stay down.
    has_tails: bool,
}

/// Which values are tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Grain {
    Any,
    Whole,
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
    /// The value at which half of the seeds stay down: of a logistic curve through all values that were tried around the
    /// border, between those of its ends.
    pub estimate: f64,
    /// The value on the better side, next to the border, from which at most a tenth of the seeds stays down; `None` if it
    /// was not [searched for](Search::with_tails), or is outside of the values tried first.
    pub at_most_a_tenth: Option<f64>,
    /// The value on the worse side, next to the border, from which at least nine tenths of the seeds stay down.
    pub at_least_nine_tenths: Option<f64>,
}

impl Search {
    /// Searches between two values: first at nine of them, then to within 0.5 % with 16 seeds.
    pub const fn between(low: f64, high: f64) -> Self {
        let (seeds, first_seeds) = (16, u64::MAX);
        Self { low, high, seeds, steps: 8, precision: 0.005, first_seeds, grain: Grain::Any, has_tails: false }
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

    /// Sets the number of seeds at the values that are tried first, if that is fewer than at the others.
    pub const fn first_seeds(mut self, seeds: u64) -> Self {
        self.first_seeds = seeds;
        self
    }

    /// Tries whole numbers only, for counts.
    pub const fn whole_numbers(mut self) -> Self {
        self.grain = Grain::Whole;
        self
    }

    /// Also finds the values on both sides of each border from which at most a tenth, and at least nine tenths, of the seeds
    /// stay down.
    pub const fn with_tails(mut self) -> Self {
        self.has_tails = true;
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
        self.run_from(1, at, progress)
    }

    /// Searches like [`run`](Self::run), with consecutive seeds from `first`.
    ///
    /// # Errors
    /// The error of the first system that cannot be built.
    pub fn run_from<E>(
        self,
        first: u64,
        at: impl Fn(f64) -> Result<System, E>,
        progress: &Progress,
    ) -> Result<Option<Found>, E> {
        let mut tries = Tries { first, at, progress, tried: Vec::new() };
        let steps = self.steps.clamp(1, 1_000);
        let seeds = self.seeds.clamp(1, 10_000);
        for step in 0..=steps {
            let share = f64::from(step) / f64::from(steps);
            let value = self.grain.round(self.low + (self.high - self.low) * share);
            if tries.get(value, self.first_seeds.clamp(1, seeds))?.is_none() {
                return Ok(None);
            }
        }
        let grid = tries.tried.clone();
        let mut borders = Vec::new();
        for pair in grid.windows(2).filter(|pair| pair[0].stays_down() != pair[1].stays_down()) {
            let ends = [pair[0], pair[1]];
            let is_worse_above = ends[1].stays_down();
            let Some([low, high]) = self.bisect(&mut tries, ends, seeds, |tried| tried.stays_down())? else {
                return Ok(None);
            };
            let mut border = Border {
                low: low.value,
                high: high.value,
                is_worse_above,
                estimate: 0.0,
                at_most_a_tenth: None,
                at_least_nine_tenths: None,
            };
            if self.has_tails {
                let is_good = |tried: &Tried| tried.ratio() <= 0.1;
                let is_bad = |tried: &Tried| tried.ratio() >= 0.9;
                let [below, above] = [(low.value, Side::Below), (high.value, Side::Above)];
                let (better, worse) = if is_worse_above { (below, above) } else { (above, below) };
                let Some(tenth) = self.tail(&mut tries, better, seeds, is_good)? else { return Ok(None) };
                let Some(most) = self.tail(&mut tries, worse, seeds, is_bad)? else { return Ok(None) };
                (border.at_most_a_tenth, border.at_least_nine_tenths) = (tenth, most);
            }
            let around: Vec<_> = tries
                .tried
                .iter()
                .filter(|tried| (ends[0].value..=ends[1].value).contains(&tried.value))
                .copied()
                .collect();
            border.estimate =
                half_down(&around, f64::midpoint(low.value, high.value)).clamp(ends[0].value, ends[1].value);
            borders.push(border);
        }
        Ok(Some(Found { tried: tries.tried, borders }))
    }

    /// Returns the value closest to a border, on one side of it, of which a condition is true; `None` in place of it if there
    /// is none among those tried.
    fn tail<E>(
        self,
        tries: &mut Tries<'_, impl Fn(f64) -> Result<System, E>>,
        (border, side): (f64, Side),
        seeds: u64,
        is: impl Fn(&Tried) -> bool,
    ) -> Result<Option<Option<f64>>, E> {
        let of_side = |tried: &&Tried| if side == Side::Below { tried.value <= border } else { tried.value >= border };
        let mut near: Vec<_> = tries.tried.iter().filter(of_side).copied().collect();
        if side == Side::Below {
            near.reverse();
        }
        for nth in 0..near.len() {
            // Values that were tried first had fewer seeds.
            let Some(tried) = tries.get(near[nth].value, seeds)? else { return Ok(None) };
            if !is(&tried) {
                continue;
            }
            let Some(nearer) = nth.checked_sub(1) else { return Ok(Some(Some(tried.value))) };
            let ends = if side == Side::Below { [tried, near[nearer]] } else { [near[nearer], tried] };
            let found = self.bisect(tries, ends, seeds, &is)?;
            return Ok(found.map(|found| found.iter().find(|tried| is(tried)).map(|tried| tried.value)));
        }
        Ok(Some(None))
    }

    /// Returns the two closest values with different answers to a question, between two with different answers; the ends
    /// themselves if they have the same.
    fn bisect<E>(
        self,
        tries: &mut Tries<'_, impl Fn(f64) -> Result<System, E>>,
        [mut low, mut high]: [Tried; 2],
        seeds: u64,
        is: impl Fn(&Tried) -> bool,
    ) -> Result<Option<[Tried; 2]>, E> {
        // A value that is not a number is no precision.
        let precision = if self.precision >= 1e-6 { self.precision.min(1.0) } else { 1e-6 };
        while is(&low) != is(&high)
            && (high.value - low.value).abs() > precision * high.value.abs().max(low.value.abs())
        {
            let value = self.grain.round(f64::midpoint(low.value, high.value));
            if value <= low.value || value >= high.value {
                break;
            }
            let Some(middle) = tries.get(value, seeds)? else { return Ok(None) };
            let half = if is(&middle) == is(&low) { &mut low } else { &mut high };
            *half = middle;
        }
        Ok(Some([low, high]))
    }
}

/// A side of a border.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Below,
    Above,
}

/// The values that were tried.
struct Tries<'a, F> {
    first: u64,
    at: F,
    progress: &'a Progress,
    /// In increasing order.
    tried: Vec<Tried>,
}

impl<E, F: Fn(f64) -> Result<System, E>> Tries<'_, F> {
    /// Tries a value, unless it was tried with as many seeds.
    fn get(&mut self, value: f64, seeds: u64) -> Result<Option<Tried>, E> {
        let place = self.tried.partition_point(|tried| tried.value < value);
        let known = self.tried.get(place).copied().filter(|tried| tried.value <= value);
        if let Some(known) = known.filter(|known| known.seeds >= seeds) {
            return Ok(Some(known));
        }
        let seeds: Vec<_> = (0..seeds).map(|nth| Seed::new(self.first.wrapping_add(nth))).collect();
        let Some(tried) = try_value(&(self.at)(value)?, value, &seeds, self.progress) else { return Ok(None) };
        match known {
            Some(_) => self.tried[place] = tried,
            None => self.tried.insert(place, tried),
        }
        Ok(Some(tried))
    }
}

impl Grain {
    fn round(self, value: f64) -> f64 {
        if self == Self::Whole { value.round() } else { value }
    }
}

/// Returns the value at which half of the seeds are down, by a logistic regression (Newton's method) with a weak prior, which
/// keeps the curve finite where no value has mixed results.
fn half_down(tried: &[Tried], start: f64) -> f64 {
    let (Some(first), Some(last)) = (tried.first(), tried.last()) else { return start };
    let scale = (last.value - first.value).abs().max(f64::MIN_POSITIVE);
    let slope = if first.ratio() <= last.ratio() { 40.0 } else { -40.0 };
    let (mut a, mut b) = (0.0_f64, slope);
    for _ in 0..60 {
        // The gradient and the curvature of the log-likelihood, with a prior on the slope.
        let (mut ga, mut gb) = (0.0, (slope - b) / 1_600.0);
        let (mut haa, mut hab, mut hbb) = (1e-9, 0.0, 1.0 / 1_600.0);
        for one in tried {
            let x = (one.value - start) / scale;
            let expected = 1.0 / (1.0 + (-(a + b * x)).exp());
            let (rest, weight) = (one.ratio() - expected, expected * (1.0 - expected));
            let runs = one.seeds as f64;
            ga += runs * rest;
            gb += runs * rest * x;
            haa += runs * weight;
            hab += runs * weight * x;
            hbb += runs * weight * x * x;
        }
        let determinant = haa * hbb - hab * hab;
        let (da, db) = ((hbb * ga - hab * gb) / determinant, (haa * gb - hab * ga) / determinant);
        if !da.is_finite() || !db.is_finite() {
            return start;
        }
        // Short steps: far from the solution, Newton's method overshoots.
        a += da.clamp(-2.0, 2.0);
        b += db.clamp(-20.0, 20.0);
        if da.abs() < 1e-9 && db.abs() < 1e-6 {
            break;
        }
    }
    let value = start - a / b * scale;
    if value.is_finite() { value } else { start }
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

fn try_value(system: &System, value: f64, seeds: &[Seed], progress: &Progress) -> Option<Tried> {
    let runs = Sweep::new().run(&[()], seeds, progress, |(), seed, progress| system.run_with_progress(seed, progress));
    let verdicts: Option<Vec<_>> = runs.into_iter().flatten().map(|run| run.map(|run| run.is_metastable())).collect();
    let down = verdicts?.into_iter().filter(|&is_down| is_down).count() as u64;
    Some(Tried { value, down, seeds: seeds.len() as u64 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_curve_crosses_one_half_where_the_shares_do() {
        let tried = |value: f64| {
            let share = 1.0 / (1.0 + (-(value - 27.0) * 4.0).exp());
            Tried { value, down: (share * 1_000.0).round() as u64, seeds: 1_000 }
        };
        for start in [26.0, 27.3, 30.0] {
            let values: Vec<_> = [10.0, 24.0, 26.0, 26.5, 27.2, 27.5, 29.0, 40.0].map(tried).into();
            let got = half_down(&values, start);
            assert!((got - 27.0).abs() < 0.05, "{start}: {got}");
        }
    }

    #[test]
    fn a_sharp_border_is_between_its_values() {
        let tried = |value: f64, down| Tried { value, down, seeds: 16 };
        let values = [tried(10.0, 0), tried(19.9, 0), tried(20.0, 16), tried(30.0, 16)];
        let got = half_down(&values, 19.95);
        assert!((19.5..20.4).contains(&got), "{got}");
        let falling = [tried(10.0, 16), tried(19.9, 16), tried(20.0, 0), tried(30.0, 0)];
        assert!((19.5..20.4).contains(&half_down(&falling, 19.95)));
        assert!((half_down(&[], 3.0) - 3.0).abs() < 1e-12);
    }
}
