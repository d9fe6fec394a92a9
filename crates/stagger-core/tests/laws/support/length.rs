use core::time::Duration;

use stagger_core::Instant;
use stagger_core::admission::Secret;

/// The secret of admissions in tests.
pub(crate) const SECRET: Secret = Secret::new([7; 16]);

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub(crate) const fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

/// Returns the instant `length` after the clock's epoch.
pub(crate) const fn at(length: Duration) -> Instant {
    Instant::ZERO.saturating_add(length)
}

/// Returns the bits for a sample `r` in `[0, 1]`, the form in which other libraries' test tables give it.
pub(crate) fn bits_of(r: f64) -> u64 {
    // 2^64 saturates to `u64::MAX`, so `r = 1` is the upper end.
    (r * 18_446_744_073_709_551_616.0) as u64
}
