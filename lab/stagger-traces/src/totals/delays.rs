use std::collections::BTreeMap;

/// Shortest delay that is told apart, in nanoseconds: below it, a retry comes at once.
const SHORTEST: u64 = 1_000_000;

/// Relative width of a class of delays.
const CLASS: f64 = 0.02;

/// Number of neighboring classes that count as one delay: what a timer and a busy machine add.
const WIDTH: u16 = 3;

/// A histogram of delays in classes of equal relative width: at most 1,600 of them.
#[derive(Debug, Default)]
pub(crate) struct Delays {
    counts: BTreeMap<u16, u64>,
    total: u64,
}

/// The delay around which most of a histogram is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Step {
    /// The delay in nanoseconds; 0 if it is below a millisecond.
    pub(crate) delay: u64,
    /// The share of all delays that are within 3 % of it.
    pub(crate) share: f64,
    /// Number of all delays.
    pub(crate) samples: u64,
}

fn class(delay: u64) -> u16 {
    let relative = delay.max(SHORTEST) as f64 / SHORTEST as f64;
    // At most ln(u64::MAX / 1e6) / ln 1.02 = 1541.
    (relative.ln() / CLASS.ln_1p()) as u16
}

impl Delays {
    pub(crate) fn add(&mut self, delay: u64) {
        *self.counts.entry(class(delay)).or_default() += 1;
        self.total += 1;
    }

    /// Returns the densest part; `None` without any delay.
    pub(crate) fn step(&self) -> Option<Step> {
        let around = |first: u16| self.counts.range(first..first.saturating_add(WIDTH));
        let densest =
            self.counts.keys().copied().max_by_key(|first| around(*first).map(|(_, count)| count).sum::<u64>());
        let first = densest?;
        let (middle, _) = around(first).max_by_key(|(_, count)| **count)?;
        let delay = SHORTEST as f64 * (1.0 + CLASS).powf(f64::from(*middle) + 0.5);
        let count: u64 = around(first).map(|(_, count)| count).sum();
        Some(Step {
            delay: if *middle == 0 { 0 } else { delay as u64 },
            share: count as f64 / self.total as f64,
            samples: self.total,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(delays: impl IntoIterator<Item = u64>) -> Step {
        let mut histogram = Delays::default();
        delays.into_iter().for_each(|delay| histogram.add(delay));
        histogram.step().unwrap()
    }

    #[test]
    fn equal_delays_are_one_step_and_drawn_ones_are_not() {
        let equal = step((0..100).map(|n| 200_000_000 + n * 50_000));
        assert!(equal.share > 0.99 && (0.97..1.03).contains(&(equal.delay as f64 / 2e8)), "{equal:?}");
        // Full jitter up to 200 ms, and ±20 % around it.
        assert!(step((1..=200).map(|ms| ms * 1_000_000)).share < 0.1);
        assert!(step((0..=200).map(|n| 160_000_000 + n * 400_000)).share < 0.25);
        assert_eq!(step([0, 10, 900_000]), Step { delay: 0, share: 1.0, samples: 3 });
        assert!(step([u64::MAX]).delay > 1 << 60);
        assert_eq!(Delays::default().step(), None);
    }
}
