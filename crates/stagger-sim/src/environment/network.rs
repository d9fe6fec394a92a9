use core::time::Duration;

use crate::engine::time::micros;

/// The one-way delay of messages: uniform between two bounds, drawn for each message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    min: u64,
    /// Number of microseconds to choose from.
    range: u64,
}

impl Network {
    /// The maximum delay; slightly less than 32 random bits can resolve to the microsecond.
    pub(crate) const MAX_DELAY: Duration = Duration::from_secs(3_600);

    pub(crate) const fn new(min: Duration, max: Duration) -> Self {
        let min = micros(min);
        Self { min, range: micros(max).saturating_add(1).saturating_sub(min) }
    }

    pub(crate) fn is_valid(self) -> bool {
        self.range > 0 && self.bounds().1 <= Self::MAX_DELAY
    }

    pub(crate) const fn bounds(self) -> (Duration, Duration) {
        (Duration::from_micros(self.min), Duration::from_micros(self.min + self.range - 1))
    }

    /// Returns the delay for 32 random bits, in microseconds.
    #[inline]
    pub(crate) const fn delay(self, bits: u32) -> u64 {
        self.min + ((bits as u64 * self.range) >> 32)
    }

    /// Returns the minimum round trip, in microseconds.
    pub(crate) const fn min_round_trip(self) -> u64 {
        2 * self.min
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_cover_the_whole_range() {
        let network = Network::new(Duration::from_millis(10), Duration::from_millis(40));
        assert_eq!((network.delay(0), network.delay(u32::MAX)), (10_000, 40_000));
        let constant = Network::new(Duration::from_millis(5), Duration::from_millis(5));
        assert_eq!((constant.delay(0), constant.delay(u32::MAX)), (5_000, 5_000));
    }
}
