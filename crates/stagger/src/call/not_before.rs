//! The end of a wait in 48 bits.

use core::time::Duration;

use stagger_core::Instant;

/// The end of a wait, packed into 48 bits to fit the call's padding: if a hint asked for it, the earliest instant of
/// the retry.
///
/// Exact to the nanosecond for waits of up to 18 minutes, because otherwise a 1 ms timer would be armed again for the
/// rounding error. Longer waits, of up to two years, are rounded up to the next microsecond.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotBefore([u16; 3]);

impl NotBefore {
    /// The value before a wait has set one.
    pub(crate) const UNSET: Self = Self([0; 3]);

    /// Creates the end of a wait that begins now.
    pub(crate) fn after(wait: Duration, now: Instant) -> Self {
        let until = now.saturating_add(wait).as_nanos();
        let word = if wait <= FINE { until & MASK } else { until.div_ceil(1_000) & MASK | COARSE };
        Self([word as u16, (word >> 16) as u16, (word >> 32) as u16])
    }

    /// Returns how long to wait from `now`.
    pub(crate) fn remaining(self, now: Instant) -> Duration {
        let (word, unit, longest) = self.unpack();
        let left = word.wrapping_sub(now.as_nanos() / unit) & MASK;
        // A distance greater than any wait means that the instant has passed.
        Duration::from_nanos(if left > longest { 0 } else { left * unit })
    }

    /// Returns for how long the wait has been over; zero if it is not.
    pub(crate) fn late(self, now: Instant) -> Duration {
        let (word, unit, _) = self.unpack();
        let late = (now.as_nanos() / unit).wrapping_sub(word) & MASK;
        Duration::from_nanos(if self.remaining(now).is_zero() { late * unit } else { 0 })
    }

    /// Returns the number, its unit in nanoseconds, and the longest wait that it is used for.
    fn unpack(self) -> (u64, u64, u64) {
        let [low, middle, high] = self.0.map(u64::from);
        let word = low | middle << 16 | high << 32;
        let (unit, longest) = if word & COARSE == 0 { (1, FINE.as_nanos() as u64) } else { (1_000, MASK / 2) };
        (word, unit, longest)
    }
}

/// Set if the number counts microseconds; the bit above the number.
const COARSE: u64 = MASK + 1;
const MASK: u64 = (1 << 47) - 1;
/// The longest wait counted in nanoseconds. It is a small part of the 39 hours after which the number wraps around, so
/// that a wait overslept by hours is not mistaken for one that has just begun.
const FINE: Duration = Duration::from_nanos(1 << 40);

#[cfg(test)]
mod tests {
    use super::*;

    const BEGINNINGS: [u64; 6] = [0, 1, 999, (1 << 47) - 5_000_000, (1 << 47) * 1_000 - 5_000_000, u64::MAX / 2];

    #[test]
    fn the_end_of_a_wait_is_exact_to_the_nanosecond_in_48_bits() {
        let at = Instant::from_nanos;
        for begin in BEGINNINGS {
            let until = NotBefore::after(Duration::from_nanos(7_000_001), at(begin));
            assert_eq!(until.remaining(at(begin)), Duration::from_nanos(7_000_001), "{begin}");
            assert_eq!(until.remaining(at(begin + 7_000_000)), Duration::from_nanos(1), "{begin}");
            assert_eq!(until.late(at(begin + 7_000_000)), Duration::ZERO, "{begin}");
            for overslept in [0, 1, 3_600_000_000_000, 86_400_000_000_000] {
                let now = at(begin + 7_000_001 + overslept);
                assert_eq!(until.remaining(now), Duration::ZERO, "{begin}, {overslept}");
                assert_eq!(until.late(now), Duration::from_nanos(overslept), "{begin}, {overslept}");
            }
        }
    }

    #[test]
    fn the_end_of_a_long_wait_is_at_most_two_microseconds_late() {
        let day = Duration::from_secs(86_400);
        for begin in BEGINNINGS.map(Instant::from_nanos) {
            for wait in [FINE + Duration::from_nanos(1), day, 700 * day] {
                let until = NotBefore::after(wait, begin);
                let left = until.remaining(begin);
                assert!(left >= wait && left - wait <= Duration::from_micros(2), "{begin:?}: {left:?} of {wait:?}");
                assert_eq!(until.remaining(begin.saturating_add(wait + day)), Duration::ZERO, "{begin:?}, {wait:?}");
            }
        }
    }
}
