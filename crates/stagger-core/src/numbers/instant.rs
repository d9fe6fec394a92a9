use core::time::Duration;

/// The longest length of time that the core computes with: `i64::MAX` nanoseconds, about 292 years.
///
/// Longer durations are treated as this one. It keeps every sum of two delays inside a `u64`.
pub(crate) const LONGEST_NANOS: u64 = i64::MAX as u64;

/// Returns `duration` in nanoseconds, saturating at [`LONGEST_NANOS`].
#[inline]
pub(crate) const fn nanos(duration: Duration) -> u64 {
    // `as_secs` first: it keeps the whole computation in 64 bits.
    let secs = duration.as_secs();
    if secs > LONGEST_NANOS / 1_000_000_000 {
        return LONGEST_NANOS;
    }
    let nanos = secs * 1_000_000_000 + duration.subsec_nanos() as u64;
    if nanos < LONGEST_NANOS { nanos } else { LONGEST_NANOS }
}

/// A point in time: nanoseconds since the epoch of the clock that returned it.
///
/// Instants of two clocks cannot be compared. The core never reads a clock: the driver passes instants in, from a
/// monotonic or a virtual clock. Arithmetic saturates, at zero and at `u64::MAX` nanoseconds (584 years). A clock that
/// steps backwards yields a length of zero, never a panic.
///
/// ```
/// use core::time::Duration;
/// use stagger_core::Instant;
///
/// let start = Instant::from_nanos(5);
/// let later = start.saturating_add(Duration::from_nanos(3));
/// assert_eq!(later.saturating_since(start), Duration::from_nanos(3));
/// assert_eq!(start.saturating_since(later), Duration::ZERO);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Instant(u64);

impl Instant {
    /// The clock's epoch.
    pub const ZERO: Self = Self(0);

    /// Creates the instant `nanos` nanoseconds after the clock's epoch.
    #[inline]
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Self(nanos)
    }

    /// Returns the nanoseconds since the clock's epoch.
    #[inline]
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Returns the instant `length` later, or the last representable one.
    #[inline]
    #[must_use]
    pub const fn saturating_add(self, length: Duration) -> Self {
        Self(self.0.saturating_add(nanos(length)))
    }

    /// Returns the time since `earlier`; zero if `earlier` is later.
    #[inline]
    #[must_use]
    pub const fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        let last = Instant::from_nanos(u64::MAX);
        assert_eq!(last.saturating_add(Duration::from_nanos(1)), last);
        assert_eq!(Instant::ZERO.saturating_add(Duration::MAX), Instant::from_nanos(LONGEST_NANOS));
        assert_eq!(Instant::ZERO.saturating_since(last), Duration::ZERO);
    }

    #[test]
    fn durations_convert_exactly_below_the_longest() {
        for (duration, want) in [
            (Duration::ZERO, 0),
            (Duration::new(3, 7), 3_000_000_007),
            (Duration::from_nanos(LONGEST_NANOS - 1_000_000_000), LONGEST_NANOS - 1_000_000_000),
            (Duration::from_nanos(LONGEST_NANOS - 1), LONGEST_NANOS - 1),
            (Duration::from_nanos(LONGEST_NANOS), LONGEST_NANOS),
            (Duration::from_nanos(LONGEST_NANOS + 1), LONGEST_NANOS),
            (Duration::from_nanos(u64::MAX), LONGEST_NANOS),
            (Duration::MAX, LONGEST_NANOS),
        ] {
            assert_eq!(nanos(duration), want, "{duration:?}");
        }
    }
}
