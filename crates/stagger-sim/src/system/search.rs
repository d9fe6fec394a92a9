//! The search for borders: which values are tried, and how each border is narrowed.

use stagger_core::Seed;

use super::curve::{Count, Crossing, Curve};
use super::definition::{System, SystemError};
use super::tries::{Border, BorderPoint, Ends, Evidence, Found, Grain, Halt, Stretch, Tried, Tries};
use crate::engine::{Progress, Sweep};
use crate::outage::Verdict;

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
/// let search = Search::between(20.0, 180.0).seeds(4).precision(0.03);
/// let found = search.run(at, &Progress::new())?.expect("not cancelled");
/// let half = found.borders[0].half;
/// assert!(60.0 < half.low && half.high < 75.0, "{found:?}");
/// # Ok::<(), stagger_sim::system::SystemError>(())
/// ```
///
/// First, values at equal distances are tried, so that a border is found even if larger values are not worse: for
/// services that drop only expired work, a longer stall is survived where a shorter one is not. Borders between two
/// tried values on the same side are not seen.
///
/// A value is on one side of a border if an exact binomial test says that less than half of the seeds stay down, or
/// more: seeds are added until it does. Where chance decides, it does not, and neighboring values with mixed results
/// are one border. With a probability of at most 1 %, one of all these tests errs, and a border is reported that does
/// not exist. If no pair of values is decided, one border is reported where the share of the seeds that stay down
/// changes with significance (a likelihood ratio test, also at 1 %) and crosses one half.
///
/// Then runs are added around each border until the 95 % interval of the value at which half of the seeds stay down is
/// narrow. It is that of a curve through all runs between the neighboring borders: the logistic one, or one with a
/// longer tail on either side. The interval contains all values whose profile likelihood is not significantly smaller,
/// over all slopes and these shapes, and is wider if the results vary more around the curve than chance explains
/// (Finney, "Probit Analysis", 1971).
///
/// A run goes on [until it is decided](System::run_until_decided), and one that is not is on neither side.
///
/// Every run has a seed of its own. Runs of one seed at neighboring values often end alike (with a correlation of 0.1
/// to 0.7 at borders of chains of services), so they say less about a border than independent ones.
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
    /// Searches between two values: first at nine of them, with four seeds each, then with 24 at a time, up to 3,000
    /// around each border, until its 95 % interval is ± 1 %.
    pub const fn between(low: f64, high: f64) -> Self {
        let (seeds, first_seeds, max_runs) = (24, 4, 3_000);
        Self { low, high, seeds, intervals: 8, precision: 0.01, first_seeds, max_runs, grain: Grain::Any }
    }

    /// Sets the number of seeds that are added at a value around a border. Range: 1 to 10,000, to which other values
    /// are clamped. Default 24.
    pub const fn seeds(mut self, seeds: u64) -> Self {
        self.seeds = seeds;
        self
    }

    /// Sets the number of equal intervals whose ends are tried first. Range: 1 to 1,000, to which other values are
    /// clamped. Default 8.
    pub const fn intervals(mut self, intervals: u32) -> Self {
        self.intervals = intervals;
        self
    }

    /// Sets how far the ends of the 95 % interval of a border may be from its middle, relative to the value, or to the
    /// larger end of the range if that begins at zero or below. Range: 0.000001 to 1, to which other values are
    /// clamped. Default 0.01.
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

    /// Searches with the system that `at` makes of a value, on all cores. Returns `None` if it was cancelled. The
    /// result does not depend on the number of cores.
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
        let found = self.find(&mut Tries::new(first, |value, seeds: &[Seed]| Ok(count(&at(value)?, seeds, progress))));
        match found {
            Ok(found) => Ok(Some(found)),
            Err(Halt::Cancelled) => Ok(None),
            Err(Halt::Failed(error)) => Err(error),
        }
    }

    fn find<E>(self, tries: &mut Tries<impl FnMut(f64, &[Seed]) -> Result<Option<Ends>, E>>) -> Result<Found, Halt<E>> {
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
            if let (Some(&low), Some(&high)) = (pair[0].values.last(), pair[1].values.first()) {
                undecided.retain(|&value| value <= low || high <= value);
            }
        }
        let narrowing = self.narrowing(precision);
        for region in &regions {
            narrowing.narrow(*region, tries)?;
        }
        let borders =
            regions.iter().map(|region| region.border(&tries.tried, precision, [self.low, self.high])).collect();
        let not_decided = tries.tried.iter().map(|tried| tried.not_decided).sum();
        Ok(Found { tried: tries.tried.clone(), borders, undecided, not_decided })
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

/// Returns how the runs with these seeds end; `None` if they were cancelled.
fn count(system: &System, seeds: &[Seed], progress: &Progress) -> Option<Ends> {
    let runs = Sweep::new().run(&[()], seeds, progress, |(), seed, progress| {
        system.run_until_decided_with_progress(seed, progress).map(|run| run.verdict())
    });
    let verdicts: Vec<_> = runs.into_iter().flatten().collect::<Option<_>>()?;
    let count = |is: fn(&Verdict) -> bool| verdicts.iter().filter(|verdict| is(verdict)).count() as u64;
    Some(Ends { down: count(Verdict::is_down), not_decided: count(|verdict| *verdict == Verdict::NotDecided) })
}

/// How a border is narrowed.
#[derive(Clone, Copy, Debug)]
struct Narrowing {
    grain: Grain,
    /// Half the width of the interval to reach, relative to the value.
    precision: f64,
    /// Seeds to add at a time.
    seeds: u64,
    /// Seeds of a value that is tried while the results are not mixed.
    few: u64,
    max_runs: u64,
}

/// Values that a border is computed from, and the axis of its curve: the logarithm of the value if all are above zero.
#[derive(Clone, Copy, Debug)]
struct Region {
    low: f64,
    high: f64,
    is_worse_above: bool,
}

/// Shares of the seeds near which runs are added, in turn: of all curves with two parameters, the outer ones say most
/// about the slope, and the middle one about the border.
const TARGETS: [f64; 6] = [0.5, 0.12, 0.6, 0.88, 0.4, 0.5];

/// The largest number of seeds of a whole number that cannot be told apart from its neighbors, in steps.
const STEPS_OF_WHOLE: u64 = 4;

impl Narrowing {
    /// Adds runs around a border until its interval is narrow, or their number is reached.
    fn narrow<E>(
        self,
        region: Region,
        tries: &mut Tries<impl FnMut(f64, &[Seed]) -> Result<Option<Ends>, E>>,
    ) -> Result<(), Halt<E>> {
        let (mut runs, mut turn) = (0, 0);
        while runs < self.max_runs {
            let counts = region.counts(&tries.tried);
            let curve = Curve::through(&counts, region.distance(self.precision / 10.0));
            let half = curve.crossing(0.5);
            let is_narrow = half.high - half.low <= 2.0 * region.distance(self.precision);
            let next = match curve.gap() {
                Some(gap) => self.in_gap(region, tries, gap, is_narrow),
                // A few runs may agree by chance, so each of the targets has its turn.
                None if is_narrow && turn >= TARGETS.len() => None,
                None => {
                    let shares = TARGETS.iter().cycle().skip(turn % TARGETS.len()).take(TARGETS.len());
                    turn += 1;
                    let mut next = shares
                        .map(|&share| self.rounded(region.near(&curve, half, share).clamp(region.low, region.high)));
                    let most = STEPS_OF_WHOLE * self.seeds;
                    let is_open = |value: &f64| self.grain == Grain::Any || tries.seeds_at(*value) < most;
                    next.find(is_open).map(|value| (value, self.seeds))
                }
            };
            let Some((value, seeds)) = next else { return Ok(()) };
            tries.add(value, seeds)?;
            runs += seeds;
            // Where no run is decided, more of them would not be, either.
            if tries.nearest(value).is_some_and(|tried| tried.decided() == 0) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Returns what to try next if no results are mixed: the middle of the gap with a few seeds, and when the gap is
    /// narrow, its ends with all of them.
    fn in_gap<F>(self, region: Region, tries: &Tries<F>, gap: [f64; 2], is_narrow: bool) -> Option<(f64, u64)> {
        let ends = gap.map(|at| region.value(at));
        let middle = self.grain.round(region.value(f64::midpoint(gap[0], gap[1])));
        if !is_narrow && ends[0].min(ends[1]) < middle && middle < ends[0].max(ends[1]) {
            return Some((middle, self.few));
        }
        let tried = ends.into_iter().filter_map(|end| tries.nearest(end));
        let end = tried.min_by_key(|tried| tried.seeds).filter(|tried| tried.seeds < self.seeds)?;
        Some((end.value, self.seeds - end.seeds))
    }

    /// Rounds a value to a few digits, so that values that are practically the same are one.
    fn rounded(self, value: f64) -> f64 {
        let value = self.grain.round(value);
        let step = 10_f64.powf((self.precision * value.abs() / 2.0).log10().floor());
        if self.grain == Grain::Whole || !step.is_normal() { value } else { (value / step).round() * step }
    }
}

impl Region {
    /// Returns the border, and what the curve says about it.
    fn border(self, tried: &[Tried], precision: f64, [low, high]: [f64; 2]) -> Border {
        let counts = self.counts(tried);
        let curve = Curve::through(&counts, self.distance(precision / 10.0));
        let point = |share| {
            let point = self.point(curve.crossing(share));
            BorderPoint { low: point.low.max(low), high: point.high.min(high), ..point }
        };
        let tail = |share| Some(point(share)).filter(|point| low <= point.value && point.value <= high);
        let half = point(0.5);
        let half = BorderPoint { value: half.value.clamp(low, high), ..half };
        Border { is_worse_above: self.is_worse_above, half, tenth: tail(0.1), nine_tenths: tail(0.9) }
    }

    /// Returns whether the share changes with significance, and crosses one half between the values.
    fn crosses(self, tried: &[Tried], precision: f64) -> bool {
        let counts = self.counts(tried);
        let curve = Curve::through(&counts, self.distance(precision / 10.0));
        let half = self.point(curve.crossing(0.5));
        self.low < half.value && half.value < self.high && curve.rises()
    }

    /// Returns the counts of the region, from better to worse.
    fn counts(self, tried: &[Tried]) -> Vec<Count> {
        let inside = tried.iter().filter(|tried| tried.decided() > 0 && (self.low..=self.high).contains(&tried.value));
        let count = |tried: &Tried| Count {
            at: self.axis(tried.value),
            down: tried.down as f64,
            seeds: tried.decided() as f64,
        };
        let mut counts: Vec<_> = inside.map(count).collect();
        counts.sort_by(|a, b| a.at.total_cmp(&b.at));
        counts
    }

    /// Returns the value near which a share of the seeds stays down: beyond the interval of the border as long as that
    /// is wide.
    fn near(self, curve: &Curve<'_>, half: Crossing, share: f64) -> f64 {
        let at = curve.likeliest(share);
        self.value(if share < 0.5 {
            at.min(half.low)
        } else if share > 0.5 {
            at.max(half.high)
        } else {
            at
        })
    }

    fn point(self, crossing: Crossing) -> BorderPoint {
        let [low, high] =
            if self.is_worse_above { [crossing.low, crossing.high] } else { [crossing.high, crossing.low] };
        BorderPoint { value: self.value(crossing.at), low: self.value(low), high: self.value(high) }
    }

    /// Returns a relative difference as a distance on the axis.
    fn distance(self, difference: f64) -> f64 {
        difference * if self.low > 0.0 { 1.0 } else { self.low.abs().max(self.high.abs()) }
    }

    /// Returns the place of a value on the axis, on which larger is worse.
    fn axis(self, value: f64) -> f64 {
        let at = if self.low > 0.0 { value.ln() } else { value };
        if self.is_worse_above { at } else { -at }
    }

    fn value(self, at: f64) -> f64 {
        let at = if self.is_worse_above { at } else { -at };
        if self.low > 0.0 { at.exp() } else { at }
    }
}

#[cfg(test)]
mod tests {
    //! Searches on artificial responses, whose borders are known.

    use core::convert::Infallible;

    use super::*;

    /// Searches where a share of the seeds stays down that is known for each value.
    fn find(search: Search, first: u64, share: impl Fn(f64) -> f64) -> Found {
        let run = |value: f64, seeds: &[Seed]| {
            let is_down = |seed: &&Seed| ((seed.draw(1) >> 11) as f64) < share(value) * (1_u64 << 53) as f64;
            Ok::<_, Infallible>(Some(Ends { down: seeds.iter().filter(is_down).count() as u64, not_decided: 0 }))
        };
        match search.find(&mut Tries::new(first, run)) {
            Ok(found) => found,
            Err(_) => unreachable!("nothing cancels it or fails"),
        }
    }

    fn logistic(z: f64) -> f64 {
        1.0 / (1.0 + (-z).exp())
    }

    fn runs(found: &Found) -> u64 {
        found.tried.iter().map(|tried| tried.seeds).sum()
    }

    #[test]
    fn runs_that_are_not_decided_are_on_neither_side() {
        let decided_below = |most: f64| {
            let run = move |value: f64, seeds: &[Seed]| {
                let count = seeds.len() as u64;
                let is_decided = value < most;
                let down = if is_decided && value > 67.3 { count } else { 0 };
                Ok::<_, Infallible>(Some(Ends { down, not_decided: if is_decided { 0 } else { count } }))
            };
            match Search::between(20.0, 180.0).find(&mut Tries::new(1, run)) {
                Ok(found) => found,
                Err(_) => unreachable!("nothing cancels it or fails"),
            }
        };
        let found = decided_below(120.0);
        assert_eq!(found.borders.len(), 1, "{found:?}");
        assert!((found.borders[0].half.value / 67.3 - 1.0).abs() < 0.02 && found.not_decided > 0, "{found:?}");
        // Neither down nor up: no border, and no value of which chance would decide.
        let found = decided_below(60.0);
        assert!(found.borders.is_empty() && found.undecided.is_empty() && found.not_decided > 0, "{found:?}");
        let found = decided_below(0.0);
        assert!(found.borders.is_empty() && found.undecided.is_empty(), "{found:?}");
    }

    /// The response of the chain of three services: half of the seeds at 28, and 10 % to 90 % from 24 to 32.5.
    fn chain(value: f64) -> f64 {
        logistic((value / 28.0).ln() * 15.0)
    }

    #[test]
    fn searches_with_other_seeds_agree() {
        let search = Search::between(20.0, 40.0).precision(0.02);
        let found: Vec<_> = (1..=2).map(|seed| find(search, seed, chain)).collect();
        for one in &found {
            assert_eq!(one.borders.len(), 1, "{one:?}");
            let border = one.borders[0];
            assert!(border.is_worse_above && (border.half.value / 28.0 - 1.0).abs() < 0.04, "{border:?}");
            assert!(border.half.high - border.half.low <= 0.0402 * border.half.value, "{border:?}");
            for (point, want) in
                [(border.tenth, 28.0 / 9_f64.powf(1.0 / 15.0)), (border.nine_tenths, 28.0 * 9_f64.powf(1.0 / 15.0))]
            {
                let point = point.unwrap();
                assert!((point.value / want - 1.0).abs() < 0.1, "{point:?}, {want}");
            }
            assert!(runs(one) < 800, "{}", runs(one));
        }
        assert_eq!(found[0], find(search, 1, chain), "the same seed gives the same search");
    }

    #[test]
    fn intervals_contain_the_border_as_often_as_they_say() {
        let found: Vec<_> =
            (1..=100).map(|seed| find(Search::between(20.0, 40.0).precision(0.03), seed, chain)).collect();
        assert!(found.iter().all(|one| one.borders.len() == 1));
        let half: Vec<_> = found.iter().map(|one| one.borders[0].half).collect();
        // Of 95 expected, with a standard deviation of 2.2.
        let covered = half.iter().filter(|half| half.low <= 28.0 && 28.0 <= half.high).count();
        assert!((88..=100).contains(&covered), "{covered} of 100");
        let farthest = half.iter().map(|half| (half.value / 28.0 - 1.0).abs()).fold(0.0, f64::max);
        assert!(farthest < 0.06, "{farthest}");
    }

    #[test]
    fn a_sharp_border_takes_few_runs() {
        let found = find(Search::between(20.0, 180.0), 1, |value| f64::from(value > 67.3));
        let half = found.borders[0].half;
        assert!(
            found.borders.len() == 1 && half.low <= 67.3 && 67.3 <= half.high && half.high / half.low < 1.021,
            "{half:?}"
        );
        assert!(runs(&found) < 120, "{}", runs(&found));
    }

    #[test]
    fn each_border_of_a_response_that_falls_again_is_found() {
        let response = |value: f64| logistic((value - 2.0) * 20.0) * logistic((7.0 - value) * 4.0);
        let borders = find(Search::between(0.0, 10.0).precision(0.02), 1, response).borders;
        let sides: Vec<_> = borders.iter().map(|border| border.is_worse_above).collect();
        assert_eq!(sides, [true, false], "{borders:?}");
        for (border, want) in borders.iter().zip([2.0, 7.0]) {
            assert!((border.half.value - want).abs() < 0.3, "{border:?}");
        }
        // The system is in the better half above the second one.
        let [tenth, nine] = [borders[1].tenth, borders[1].nine_tenths].map(|point| point.unwrap().value);
        assert!(nine < 7.0 && 7.0 < tenth, "{borders:?}");
    }

    #[test]
    fn a_border_that_is_broader_than_the_range_has_no_tails() {
        let found = find(Search::between(26.0, 30.0), 1, chain);
        let border = found.borders[0];
        assert!(found.borders.len() == 1 && (border.half.value / 28.0 - 1.0).abs() < 0.03, "{border:?}");
        assert_eq!((border.tenth, border.nine_tenths), (None, None));
    }

    #[test]
    fn where_chance_decides_everywhere_there_is_no_border() {
        let found = find(Search::between(20.0, 40.0), 1, |_| 0.5);
        assert!(found.borders.is_empty() && found.undecided.len() >= 8, "{found:?}");
        assert!(find(Search::between(20.0, 40.0), 1, |_| 0.02).undecided.is_empty());
    }

    #[test]
    fn a_border_between_whole_numbers_is_found_with_few_runs() {
        let found = find(Search::between(1.0, 9.0).whole_numbers(), 1, |value| f64::from(value > 3.5));
        let half = found.borders[0].half;
        assert!((3.0..4.0).contains(&half.low) && half.value > 3.0 && half.high <= 4.01, "{half:?}");
        assert!(runs(&found) < 120, "{}", runs(&found));
        let mixed = find(Search::between(1.0, 9.0).whole_numbers(), 1, |value| logistic((value - 4.0) * 2.0));
        assert!((mixed.borders[0].half.value - 4.0).abs() < 0.5 && runs(&mixed) < 1_200, "{mixed:?}");
    }

    /// Measures what the documentation promises: `cargo test --release -p stagger-sim --lib
    /// search::tests::accuracy -- --ignored --nocapture`.
    #[test]
    #[ignore = "takes minutes, for a table of the guide"]
    fn accuracy() {
        let long = |value: f64| (-(-(value / 28.0).ln() * 15.0 + 2_f64.ln().ln()).exp()).exp();
        let steep = |value: f64| logistic((value / 28.0).ln() * 400.0);
        let step = |value: f64| f64::from(value > 28.0);
        let responses: [(&str, &dyn Fn(f64) -> f64); 4] = [
            ("rises over a third of the value", &chain),
            ("the same, with a long tail above", &long),
            ("rises within 1 % of the value", &steep),
            ("from none to all at once", &step),
        ];
        for (name, share) in responses {
            let quantile = |want: f64| {
                let (mut low, mut high) = (1.0, 100.0);
                for _ in 0..60 {
                    let middle = f64::midpoint(low, high);
                    if share(middle) < want { low = middle } else { high = middle }
                }
                low
            };
            let (mut covered, mut borders, mut total, mut errors) = ([0; 3], 0, 0, Vec::new());
            let searches = 400;
            for seed in 1..=searches {
                let found = find(Search::between(20.0, 40.0), seed, share);
                total += runs(&found);
                borders += u32::from(found.borders.len() != 1);
                let Some(border) = found.borders.first() else { continue };
                errors.push(100.0 * (border.half.value / quantile(0.5) - 1.0).abs());
                let points = [(Some(border.half), 0.5), (border.tenth, 0.1), (border.nine_tenths, 0.9)];
                for (covered, (point, share)) in covered.iter_mut().zip(points) {
                    let want = quantile(share);
                    *covered += u32::from(point.is_some_and(|point| point.low <= want && want <= point.high));
                }
            }
            let [half, tenth, nine] = covered.map(|count| 100.0 * f64::from(count) / searches as f64);
            errors.sort_by(f64::total_cmp);
            println!(
                "| {name} | {half:.1} % | {tenth:.1} % | {nine:.1} % | {borders} | {} | {:.2} % | {:.2} % |",
                total / searches,
                errors[errors.len() / 2],
                errors[errors.len() - 1]
            );
        }
    }
}
