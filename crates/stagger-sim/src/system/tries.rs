//! The values that a search has tried, and on which side of a border each is.

use stagger_core::Seed;

use super::state::Stream;

/// What a [`Search`](super::Search) found.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Found {
    /// All values that were tried, in increasing order.
    pub tried: Vec<Tried>,
    /// The borders between values at which the system comes back and those at which it stays down, in increasing order.
    pub borders: Vec<Border>,
    /// Values apart from the borders at which chance decides: with as many seeds as a decision may take, neither less
    /// nor more than half of them stay down with significance.
    pub undecided: Vec<f64>,
    /// Number of runs that are not decided after the [longest run](super::System::LONGEST_RUN). They count on neither
    /// side.
    pub not_decided: u64,
}

/// A value that a [`Search`](super::Search) tried.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Tried {
    /// The value.
    pub value: f64,
    /// How many seeds stay down.
    pub down: u64,
    /// How many seeds are not decided, after the [longest run](super::System::LONGEST_RUN): they are on neither side.
    pub not_decided: u64,
    /// Number of seeds, those that are not decided included.
    pub seeds: u64,
}

/// A border: where the share of the seeds that stay down rises or falls across one half.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Border {
    /// Whether the system stays down above the border, and not below it.
    pub is_worse_above: bool,
    /// Where half of the seeds stay down.
    pub half: BorderPoint,
    /// Where a tenth of the seeds stays down; `None` if that is outside of the range of the search.
    pub tenth: Option<BorderPoint>,
    /// Where nine tenths of the seeds stay down; `None` if that is outside of the range of the search.
    pub nine_tenths: Option<BorderPoint>,
}

/// The value at which a share of the seeds stays down.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct BorderPoint {
    /// The estimate.
    pub value: f64,
    /// Lower end of the 95 % interval. At the low end of the range of the search, it may be lower.
    pub low: f64,
    /// Upper end of the 95 % interval. At the high end of the range of the search, it may be higher.
    pub high: f64,
}

impl Tried {
    /// Returns whether half of the decided seeds or more stay down.
    #[must_use]
    pub const fn stays_down(&self) -> bool {
        self.decided() > 0 && 2 * self.down >= self.decided()
    }

    /// Returns the share of the decided seeds that stay down; one half if there are none.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        if self.decided() == 0 { 0.5 } else { self.down as f64 / self.decided() as f64 }
    }

    /// Returns the number of seeds that are decided.
    #[must_use]
    pub const fn decided(&self) -> u64 {
        self.seeds - self.not_decided
    }
}

/// How the runs of a value ended.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ends {
    pub(super) down: u64,
    pub(super) not_decided: u64,
}

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

/// The values that were tried, and what tries more: `run` returns how the runs with some seeds end, or `None` if it was
/// cancelled.
pub(super) struct Tries<F> {
    run: F,
    /// The seeds that have not run: every run of a search has its own, because runs of the same seed at neighboring
    /// values often end alike, and would say less than as many independent ones.
    seeds: Stream,
    /// In increasing order.
    pub(super) tried: Vec<Tried>,
}

impl<E, F: FnMut(f64, &[Seed]) -> Result<Option<Ends>, E>> Tries<F> {
    pub(super) const fn new(first: u64, run: F) -> Self {
        Self { run, seeds: Stream::new(Seed::new(first)), tried: Vec::new() }
    }

    /// Runs a value with this many more seeds.
    pub(super) fn add(&mut self, value: f64, seeds: u64) -> Result<(), Halt<E>> {
        let new: Vec<_> = (0..seeds).map(|_| Seed::new(self.seeds.bits())).collect();
        let Ends { down, not_decided } = (self.run)(value, &new).map_err(Halt::Failed)?.ok_or(Halt::Cancelled)?;
        let place = self.tried.partition_point(|tried| tried.value < value);
        match self.tried.get_mut(place) {
            Some(known) if known.value <= value => {
                known.down += down;
                known.not_decided += not_decided;
                known.seeds += seeds;
            }
            _ => self.tried.insert(place, Tried { value, down, not_decided, seeds }),
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

/// The probability that a search takes any value for one of the other side.
const ERROR: f64 = 0.01;
/// How often a value may be tested: with each test, it has twice the seeds.
const LOOKS: u32 = 5;

/// The test that decides on which side of a border a value is: the exact binomial test of whether half of the seeds
/// stay down. Of all tests of a search together, one errs with a probability of at most [`ERROR`] (Bonferroni), so that
/// is the probability that it reports a border which does not exist.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence {
    /// The error of one test.
    error: f64,
    /// The least number of seeds that can decide.
    least: u64,
}

/// Neighboring values of which each is on the same side, as far as is known.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Stretch {
    pub(super) is_down: bool,
    pub(super) values: Vec<f64>,
}

impl Evidence {
    pub(super) fn for_values(values: usize) -> Self {
        let error = ERROR / (values.max(1) as f64 * f64::from(LOOKS));
        Self { error, least: (-error.log2()).ceil() as u64 }
    }

    /// Returns whether more than half of the seeds stay down at a value, if the test decides.
    fn side(self, tried: &Tried) -> Option<bool> {
        let decided = tried.decided();
        let fewer = tried.down.min(decided - tried.down);
        if tail(fewer, decided) <= self.error { Some(2 * tried.down > decided) } else { None }
    }

    /// Returns how many seeds to add for the next test; `None` after the last.
    fn next_look(self, tried: &Tried) -> Option<u64> {
        let looks = (0..LOOKS - 1).map(|look| self.least << look);
        looks.map(|seeds| seeds.saturating_sub(tried.seeds)).find(|&more| more > 0)
    }

    /// Adds seeds until each stretch of values with the same majority has one that the test decides, and returns the
    /// stretches, with the values that it does not decide.
    pub(super) fn decide<E>(
        self,
        tries: &mut Tries<impl FnMut(f64, &[Seed]) -> Result<Option<Ends>, E>>,
    ) -> Result<(Vec<Stretch>, Vec<f64>), Halt<E>> {
        loop {
            let (stretches, mixed) = self.stretches(&tries.tried);
            let Some(tried) = self.most_telling(&tries.tried, &stretches) else { return Ok((stretches, mixed)) };
            let more = self.next_look(&tried).unwrap_or(0);
            tries.add(tried.value, more)?;
        }
    }

    /// Returns the stretches of values with the same majority, and the values that remain undecided after the last
    /// test.
    fn stretches(self, tried: &[Tried]) -> (Vec<Stretch>, Vec<f64>) {
        let (mut stretches, mut mixed): (Vec<Stretch>, _) = (Vec::new(), Vec::new());
        for one in tried {
            // On no side: more seeds would say nothing either.
            if one.decided() == 0 {
                continue;
            }
            if self.side(one).is_none() && self.next_look(one).is_none() {
                mixed.push(one.value);
                continue;
            }
            let is_down = one.stays_down();
            match stretches.last_mut().filter(|last| last.is_down == is_down) {
                Some(last) => last.values.push(one.value),
                None => stretches.push(Stretch { is_down, values: vec![one.value] }),
            }
        }
        (stretches, mixed)
    }

    /// Returns the value to test next: that with the clearest majority in a stretch without a decided one. If there is
    /// only one stretch, its values with mixed results.
    fn most_telling(self, tried: &[Tried], stretches: &[Stretch]) -> Option<Tried> {
        let of = |stretch: &Stretch| {
            tried.iter().filter(|tried| stretch.values.contains(&tried.value)).copied().collect::<Vec<_>>()
        };
        let clearness = |tried: &Tried| (tried.ratio() - 0.5).abs();
        if let [only] = stretches {
            return of(only)
                .into_iter()
                .find(|one| self.side(one).is_none() && 0 < one.down && one.down < one.decided());
        }
        let open = stretches.iter().enumerate().map(|(nth, stretch)| (nth, of(stretch)));
        let mut open = open.filter(|(_, values)| values.iter().all(|one| self.side(one).is_none()));
        let (nth, mut values) = open.next()?;
        // Among equals, that farthest from the next border: the last is taken.
        if nth == 0 {
            values.reverse();
        }
        values.into_iter().max_by(|a, b| clearness(a).total_cmp(&clearness(b)))
    }
}

/// Returns the probability that at most `count` of `seeds` fair coins show heads.
fn tail(count: u64, seeds: u64) -> f64 {
    let mut term = 0.5_f64.powi(seeds.min(10_000) as i32);
    let mut sum = term;
    for nth in 0..count {
        term *= (seeds - nth) as f64 / (nth + 1) as f64;
        sum += term;
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_of_the_binomial_distribution_is_exact() {
        // Sums of binomial coefficients: pbinom(3, 24, 0.5), pbinom(31, 96, 0.5), pbinom(0, 12, 0.5).
        for (count, seeds, want) in [(3, 24, 1.385_808_0e-4), (31, 96, 3.373_592_9e-4), (0, 12, 2.441_406_25e-4)] {
            let got = tail(count, seeds);
            assert!((got / want - 1.0).abs() < 1e-4, "{count} of {seeds}: {got:e}");
        }
    }

    #[test]
    fn a_dozen_seeds_decide_if_all_end_alike() {
        let evidence = Evidence::for_values(9);
        let tried = |down, seeds| Tried { value: 1.0, down, not_decided: 0, seeds };
        assert_eq!(evidence.least, 13);
        for (down, seeds, want) in [(0, 12, None), (0, 13, Some(false)), (13, 13, Some(true)), (4, 24, None)] {
            assert_eq!(evidence.side(&tried(down, seeds)), want, "{down} of {seeds}");
        }
    }
}
