//! The loop that every row of section A runs in.

use core::hint::black_box;
use core::time::Duration;

/// Ceiling of the first retry.
pub(super) const BASE: Duration = Duration::from_millis(100);

/// No ceiling grows beyond this.
pub(super) const CAP: Duration = Duration::from_secs(30);

/// Delays drawn from one state before the next one is set up: a call that fails this often.
pub(super) const LENGTH: u64 = 8;

/// Draws `iterations` delays in sessions of [`LENGTH`], setting up each session with `begin`.
///
/// The optimiser knows neither the configuration nor the length of a session, or it would work out a
/// session's ceilings once for all of them: retries of a real call are further apart than that.
/// `iterations` is taken to be a multiple of [`LENGTH`], which is what the measurements ask for.
#[inline]
pub(super) fn sessions<'a, C, I: Iterator>(iterations: u64, configuration: &'a C, mut begin: impl FnMut(&'a C) -> I) {
    for _ in 0..iterations / LENGTH {
        let mut delays = begin(black_box(configuration));
        for _ in 0..black_box(LENGTH) {
            black_box(&delays.next());
        }
    }
}
