use stagger_core::Seed;

use super::found::Tried;
use super::tries::{Halt, Tries};

/// The probability that a search takes any value for one of the other side.
const ERROR: f64 = 0.01;
/// How often a value may be tested: with each test, it has twice the seeds.
const LOOKS: u32 = 5;

/// The test that decides on which side of a border a value is: the exact binomial test of whether half of the seeds stay
/// down. Of all tests of a search together, one errs with a probability of at most [`ERROR`] (Bonferroni), so that is the
/// probability that it reports a border which does not exist.
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
        let fewer = tried.down.min(tried.seeds - tried.down);
        (tail(fewer, tried.seeds) <= self.error).then_some(2 * tried.down > tried.seeds)
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
        tries: &mut Tries<impl FnMut(f64, &[Seed]) -> Result<Option<u64>, E>>,
    ) -> Result<(Vec<Stretch>, Vec<f64>), Halt<E>> {
        loop {
            let (stretches, mixed) = self.stretches(&tries.tried);
            let Some(tried) = self.most_telling(&tries.tried, &stretches) else { return Ok((stretches, mixed)) };
            let more = self.next_look(&tried).unwrap_or(0);
            tries.add(tried.value, more)?;
        }
    }

    /// Returns the stretches of values with the same majority, and the values that remain undecided after the last test.
    fn stretches(self, tried: &[Tried]) -> (Vec<Stretch>, Vec<f64>) {
        let (mut stretches, mut mixed): (Vec<Stretch>, _) = (Vec::new(), Vec::new());
        for one in tried {
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
            return of(only).into_iter().find(|one| self.side(one).is_none() && 0 < one.down && one.down < one.seeds);
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
        let tried = |down, seeds| Tried { value: 1.0, down, seeds };
        assert_eq!(evidence.least, 13);
        for (down, seeds, want) in [(0, 12, None), (0, 13, Some(false)), (13, 13, Some(true)), (4, 24, None)] {
            assert_eq!(evidence.side(&tried(down, seeds)), want, "{down} of {seeds}");
        }
    }
}
