//! The loop that every row of section A runs.

use core::hint::black_box;
use core::time::Duration;

/// The ceiling of the first retry.
pub(super) const BASE: Duration = Duration::from_millis(100);

/// The limit of all ceilings.
pub(super) const CAP: Duration = Duration::from_secs(30);

/// The number of delays drawn from one state before the next is set up, as for a call that fails this many times.
pub(super) const LENGTH: u64 = 8;

/// Draws `iterations` delays in sessions of [`LENGTH`], setting up each session with `begin`.
///
/// The configuration and the length of a session are hidden from the optimizer. Otherwise it would compute the ceilings
/// once for all sessions, which it cannot do for the retries of a real call. `iterations` must be a multiple of
/// [`LENGTH`], as it is in all measurements.
#[inline]
pub(super) fn sessions<'a, C, I: Iterator>(iterations: u64, configuration: &'a C, mut begin: impl FnMut(&'a C) -> I) {
    for _ in 0..iterations / LENGTH {
        let mut delays = begin(black_box(configuration));
        for _ in 0..black_box(LENGTH) {
            black_box(&delays.next());
        }
    }
}
