use core::time::Duration;

use crate::time::micros;

/// How long a message is underway, one way: uniform between two lengths, for each message anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    least: u64,
    /// How many microseconds there are to choose from.
    choice: u64,
}

impl Network {
    /// The longest way that 32 bits can choose to the microsecond, and a little less.
    pub(crate) const LONGEST: Duration = Duration::from_secs(3_600);

    pub(crate) const fn new(least: Duration, most: Duration) -> Self {
        let least = micros(least);
        Self { least, choice: micros(most) - least + 1 }
    }

    pub(crate) const fn bounds(self) -> (Duration, Duration) {
        (Duration::from_micros(self.least), Duration::from_micros(self.least + self.choice - 1))
    }

    /// In microseconds.
    #[inline]
    pub(crate) const fn way(self, bits: u32) -> u64 {
        self.least + ((bits as u64 * self.choice) >> 32)
    }

    /// The shortest way there and back, in microseconds.
    pub(crate) const fn shortest_round(self) -> u64 {
        2 * self.least
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_reach_from_the_least_to_the_most() {
        let network = Network::new(Duration::from_millis(10), Duration::from_millis(40));
        assert_eq!((network.way(0), network.way(u32::MAX)), (10_000, 40_000));
        let constant = Network::new(Duration::from_millis(5), Duration::from_millis(5));
        assert_eq!((constant.way(0), constant.way(u32::MAX)), (5_000, 5_000));
    }
}
