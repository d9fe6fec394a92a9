//! Conversions between simulation time, in whole microseconds, and the nanoseconds of policies.

use core::time::Duration;

use stagger_core::Instant;

/// Converts a duration to whole microseconds, rounding down and saturating.
#[inline]
pub(crate) const fn micros(length: Duration) -> u64 {
    length.as_secs().saturating_mul(1_000_000).saturating_add(length.subsec_micros() as u64)
}

/// Converts a duration to whole microseconds, rounding up and saturating.
#[inline]
pub(crate) const fn micros_up(length: Duration) -> u64 {
    micros(length).saturating_add((length.subsec_nanos() % 1_000 != 0) as u64)
}

#[inline]
pub(crate) const fn instant(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1_000)
}
