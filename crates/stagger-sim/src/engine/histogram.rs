//! Quantiles of whole numbers, in a bounded amount of memory.

/// A histogram of whole numbers with a relative precision of a thousandth, for quantiles.
///
/// Up to 2048 every number has its own cell; above, each power of two is divided into 1024 cells. The memory depends on
/// the largest number only, and is at most 350 kB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Histogram {
    cells: Vec<u64>,
    count: u64,
    sum: u128,
    largest: u64,
}

/// Logarithm of the number of cells per power of two.
const FINE_BITS: u32 = 10;

impl Histogram {
    #[inline]
    pub(crate) fn add(&mut self, value: u64) {
        let cell = cell(value);
        if cell >= self.cells.len() {
            self.cells.resize(cell + 1, 0);
        }
        self.cells[cell] += 1;
        self.count += 1;
        self.sum += u128::from(value);
        self.largest = self.largest.max(value);
    }

    pub(crate) const fn count(&self) -> u64 {
        self.count
    }

    pub(crate) const fn sum(&self) -> u128 {
        self.sum
    }

    /// Returns the largest number, exactly; 0 if the histogram is empty.
    pub(crate) const fn largest(&self) -> u64 {
        self.largest
    }

    /// Returns the `rank`-th smallest number, from 1; `None` if there are fewer.
    fn ranked(&self, rank: u64) -> Option<u64> {
        self.ranks().at(rank)
    }

    /// Starts a pass over the numbers in ascending order.
    const fn ranks(&self) -> Ranks<'_> {
        Ranks { histogram: self, cells: 0, below: 0 }
    }

    /// Returns the count of each number from 0 to the largest, but at most to 2,047.
    pub(crate) fn small(&self) -> &[u64] {
        &self.cells[..self.cells.len().min(2 << FINE_BITS)]
    }

    /// Returns the quantile at `share` of a population of `whole`; `None` if the histogram has fewer numbers than that.
    pub(crate) fn quantile(&self, share: f64, whole: u64) -> Option<u64> {
        self.ranked(rank(share, whole))
    }

    /// Returns the quantiles at 1 % to 100 % of a population of `whole`, up to the first that the histogram lacks, in a
    /// single pass.
    pub(crate) fn percentiles(&self, whole: u64) -> impl Iterator<Item = u64> + '_ {
        let mut ranks = self.ranks();
        (1..=100).map_while(move |percent| ranks.at(rank(f64::from(percent) / 100.0, whole)))
    }
}

/// A pass over the numbers of a histogram in ascending order.
struct Ranks<'a> {
    histogram: &'a Histogram,
    /// Number of cells passed, and the count of numbers in them.
    cells: usize,
    below: u64,
}

impl Ranks<'_> {
    /// Returns the `rank`-th smallest number, from 1; `None` if there are fewer. Ranks do not descend.
    fn at(&mut self, rank: u64) -> Option<u64> {
        let Histogram { cells, count, largest, .. } = self.histogram;
        if rank >= *count {
            return if rank == *count && rank > 0 { Some(*largest) } else { None };
        }
        for count in cells.get(self.cells..)? {
            if self.below >= rank.max(1) {
                break;
            }
            self.below += count;
            self.cells += 1;
        }
        Some(middle(self.cells.checked_sub(1)?).min(*largest))
    }
}

/// Returns the rank of the quantile at `share` of a population of `whole`.
fn rank(share: f64, whole: u64) -> u64 {
    // Slightly less, because rounding would turn 0.07 of 100 into rank 8.
    let rank = (share * whole as f64 * (1.0 - 1e-12)).ceil() as u64;
    rank.max(1)
}

#[inline]
const fn cell(value: u64) -> usize {
    let shift = (u64::BITS - 1 - FINE_BITS).saturating_sub((value | 1).leading_zeros());
    ((shift as usize) << FINE_BITS) + (value >> shift) as usize
}

/// Returns the number in the middle of a cell.
const fn middle(cell: usize) -> u64 {
    let shift = (cell >> FINE_BITS).saturating_sub(1);
    let fine = (cell - (shift << FINE_BITS)) as u64;
    (fine << shift) + ((1 << shift) >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_ordered_and_contain_their_middles() {
        let mut last = 0;
        for value in
            (0..5_000).chain((13..63).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + (1 << (bit - 1))]))
        {
            let cell = cell(value);
            assert!(cell >= last, "{value}");
            last = cell;
            assert_eq!(super::cell(middle(cell)), cell, "{value}");
            assert!(middle(cell).abs_diff(value) <= value / 1_024, "{value}: {}", middle(cell));
        }
    }

    #[test]
    fn small_numbers_and_the_largest_are_exact() {
        let mut histogram = Histogram::default();
        [5, 1, 3, 3, 1_000_003].into_iter().for_each(|value| histogram.add(value));
        let got: Vec<_> = (0..7).map(|rank| histogram.ranked(rank)).collect();
        assert_eq!(got[1..], [Some(1), Some(3), Some(3), Some(5), Some(1_000_003), None]);
        assert_eq!(histogram.small()[..7], [0, 1, 0, 2, 0, 1, 0]);
        assert_eq!(histogram.small().len(), 2_048);
        assert_eq!(histogram.quantile(0.5, 5), Some(3));
        assert_eq!(histogram.quantile(0.99, 6), None, "one of six is missing");
        assert_eq!((histogram.sum(), histogram.count(), histogram.largest()), (1_000_015, 5, 1_000_003));
    }

    #[test]
    fn each_percentile_of_a_hundred_is_one_number() {
        let mut histogram = Histogram::default();
        (1..=100).for_each(|value| histogram.add(value));
        for percent in 1..=100_u32 {
            assert_eq!(histogram.quantile(f64::from(percent) / 100.0, 100), Some(u64::from(percent)));
        }
    }

    #[test]
    fn a_single_pass_gives_the_percentiles_one_by_one() {
        let mut histogram = Histogram::default();
        (1..=777_u64).for_each(|value| histogram.add(value * value * value));
        for whole in [1, 99, 100, 777, 778, 900, 10_000] {
            let one_by_one = (1..=100).map_while(|percent| histogram.quantile(f64::from(percent) / 100.0, whole));
            assert!(histogram.percentiles(whole).eq(one_by_one), "{whole}");
        }
    }

    #[test]
    fn an_empty_histogram_has_no_quantile() {
        assert_eq!(Histogram::default().quantile(0.5, 0), None);
        assert_eq!(Histogram::default().ranked(0), None);
    }
}
