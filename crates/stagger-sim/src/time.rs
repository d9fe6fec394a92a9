//! The simulations count in whole microseconds from the beginning; policies in nanoseconds.

use core::time::Duration;

use stagger_core::Instant;

/// A length in whole microseconds, rounded down, saturating.
#[inline]
pub(crate) const fn micros(length: Duration) -> u64 {
    length.as_secs().saturating_mul(1_000_000).saturating_add(length.subsec_micros() as u64)
}

/// The point in time for a policy.
#[inline]
pub(crate) const fn instant(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1_000)
}
