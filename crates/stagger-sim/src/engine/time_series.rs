//! Counts over time: events per 100 ms, and attempts in flight.

use core::time::Duration;

use super::event::micros;

/// Counts of events in bins of 100 ms, from the start of the scenario. Counts saturate at `u32::MAX`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TimeSeries {
    counts: Vec<u32>,
}

/// In microseconds. A constant, because division by a variable would be expensive for every event.
const BIN: u64 = 100_000;

impl TimeSeries {
    /// The width of a bin: 100 ms. Bins start at its multiples.
    pub const BIN_WIDTH: Duration = Duration::from_micros(BIN);

    /// Records an event at this time.
    pub fn record(&mut self, at: Duration) {
        self.add(micros(at));
    }

    #[inline]
    pub(crate) fn add(&mut self, at: u64) {
        let bin = (at / BIN) as usize;
        match self.counts.get_mut(bin) {
            Some(count) => *count = count.saturating_add(1),
            None => self.grow(bin),
        }
    }

    #[cold]
    fn grow(&mut self, bin: usize) {
        self.counts.resize(bin, 0);
        self.counts.push(1);
    }

    /// Returns the counts, up to the last bin with an event.
    #[must_use]
    pub fn counts(&self) -> &[u32] {
        &self.counts
    }

    /// Returns the number of events.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.counts.iter().map(|&count| u64::from(count)).sum()
    }

    /// Returns the number of events from `from` to before `until`, both rounded down to whole bins.
    pub(crate) fn sum_within(&self, from: Duration, until: Duration) -> u64 {
        let bin = |time: Duration| usize::try_from(micros(time) / BIN).unwrap_or(usize::MAX).min(self.counts.len());
        self.counts[bin(from)..bin(until).max(bin(from))].iter().map(|&count| u64::from(count)).sum()
    }

    /// Returns the counts of whole seconds.
    pub(crate) fn seconds(&self) -> impl Iterator<Item = u64> + '_ {
        self.counts.chunks(10).map(|bins| bins.iter().map(|&count| u64::from(count)).sum())
    }

    /// Returns the largest count of a bin that starts at `from` or later; 0 if there is none.
    #[must_use]
    pub fn peak(&self, from: Duration) -> u64 {
        self.peak_over(1, from)
    }

    /// Returns the largest sum of `bins` consecutive bins that start at `from` or later; 0 if there are none.
    #[must_use]
    pub fn peak_over(&self, bins: usize, from: Duration) -> u64 {
        let first = usize::try_from(micros(from).div_ceil(BIN)).unwrap_or(usize::MAX);
        let counts = self.counts.get(first..).unwrap_or_default();
        let (mut sum, mut peak) = (0, 0);
        for (at, &count) in counts.iter().enumerate() {
            sum += u64::from(count);
            if let Some(gone) = at.checked_sub(bins) {
                sum -= u64::from(counts[gone]);
            }
            peak = sum.max(peak);
        }
        peak
    }
}

/// The number of attempts in flight over time, from their start and end times, with a resolution of a millisecond.
///
/// Starts are recorded ahead of time, when a client begins to wait. Beyond an hour the resolution becomes coarser, so
/// that the memory stays within 32 MB.
#[derive(Clone, Debug, Default)]
pub(crate) struct InFlight {
    changes: Vec<i64>,
    /// A step is a millisecond times two to this power.
    coarsening: u32,
}

const MAX_STEPS: usize = 1 << 22;

impl InFlight {
    #[inline]
    pub(crate) fn start(&mut self, at: u64) {
        self.change(at, 1);
    }

    #[inline]
    pub(crate) fn end(&mut self, at: u64) {
        self.change(at, -1);
    }

    #[inline]
    fn change(&mut self, at: u64, by: i64) {
        match self.changes.get_mut((at / 1_000) as usize >> self.coarsening) {
            Some(change) => *change += by,
            None => self.grow(at, by),
        }
    }

    #[cold]
    fn grow(&mut self, at: u64, by: i64) {
        while (at / 1_000) as usize >> self.coarsening >= MAX_STEPS {
            self.coarsening += 1;
            self.changes = self.changes.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
        let step = (at / 1_000) as usize >> self.coarsening;
        if step >= self.changes.len() {
            self.changes.resize(step + 1, 0);
        }
        self.changes[step] += by;
    }

    /// Returns the maximum number in flight at the end of a step.
    pub(crate) fn peak(&self) -> u64 {
        let (mut level, mut peak) = (0_i64, 0);
        for &change in &self.changes {
            level += change;
            peak = level.max(peak);
        }
        peak.unsigned_abs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn series(times: &[u64]) -> TimeSeries {
        let mut series = TimeSeries::default();
        times.iter().for_each(|&at| series.add(at));
        series
    }

    #[test]
    fn bins_start_at_multiples_of_their_width() {
        assert_eq!(series(&[0, 99_999, 100_000, 399_999]).counts(), [2, 1, 0, 1]);
    }

    #[test]
    fn the_peak_ignores_bins_before_its_start() {
        let series = series(&[0, 0, 0, 100_000, 200_000, 200_000]);
        assert_eq!(series.peak(Duration::ZERO), 3);
        assert_eq!(series.peak(Duration::from_micros(1)), 2);
        assert_eq!(series.peak(Duration::from_micros(200_001)), 0);
        assert_eq!(series.peak_over(2, Duration::ZERO), 4);
        assert_eq!(series.peak_over(2, Duration::from_millis(100)), 3);
    }

    #[test]
    fn attempts_are_in_flight_from_start_to_end() {
        let mut in_flight = InFlight::default();
        in_flight.start(5_000);
        in_flight.start(1_000);
        in_flight.end(4_000);
        in_flight.start(3_000);
        in_flight.end(9_000);
        assert_eq!(in_flight.peak(), 2);
    }

    #[test]
    fn beyond_an_hour_steps_become_coarser_and_counts_keep_their_time() {
        let mut in_flight = InFlight::default();
        in_flight.start(10_000_000);
        in_flight.end(20_000_000);
        in_flight.end(crate::engine::MAX_TIME);
        in_flight.start(30_000_000);
        assert_eq!(in_flight.peak(), 1);
        assert!(in_flight.changes.len() <= MAX_STEPS, "{}", in_flight.changes.len());
    }
}
