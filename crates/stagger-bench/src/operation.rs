//! What every case retries, so that all of them pay for the same work.

use core::fmt;
use core::hint::black_box;
use core::sync::atomic::{AtomicU32, Ordering};

/// The error of an attempt that the script lets fail.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failure(u32);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} more failures to come", self.0 - 1)
    }
}

impl core::error::Error for Failure {}

/// An operation that fails a fixed number of times, succeeds once, and starts again.
///
/// Shared state behind `&self`, because some peers take `Fn` and some want `Send + 'static`; relaxed
/// loads and stores cost what a plain variable does.
#[derive(Debug)]
pub(crate) struct Script {
    failures: u32,
    left: AtomicU32,
}

impl Script {
    pub(crate) const fn failing(failures: u32) -> Self {
        Self { failures, left: AtomicU32::new(failures) }
    }

    /// Whether the next attempt is the first after a success.
    #[cfg(test)]
    pub(crate) fn starts_again(&self) -> bool {
        self.left.load(Ordering::Relaxed) == self.failures
    }

    /// One attempt, called: an operation of which the retry loop knows nothing.
    #[inline(never)]
    pub(crate) fn attempt(&self) -> Result<u64, Failure> {
        self.step()
    }

    /// One attempt, inlined: an operation that costs next to nothing.
    #[inline]
    pub(crate) fn step(&self) -> Result<u64, Failure> {
        let left = self.left.load(Ordering::Relaxed);
        if left == 0 {
            self.left.store(self.failures, Ordering::Relaxed);
            Ok(u64::from(self.failures))
        } else {
            self.left.store(left - 1, Ordering::Relaxed);
            Err(Failure(left))
        }
    }
}

/// Never fails.
pub(crate) static SUCCESS: Script = Script::failing(0);

/// Fails three times, then succeeds.
pub(crate) static THREE_FAILURES: Script = Script::failing(3);

/// Runs `operation` on the script `iterations` times; neither what goes in nor what comes out is
/// known to the optimiser.
///
/// What comes out is shown by reference: moved into `black_box`, a result just written in two halves is
/// read back as a whole, and that stall is longer than most of what is measured here.
#[inline]
pub(crate) fn repeat<T>(iterations: u64, script: &'static Script, mut operation: impl FnMut(&'static Script) -> T) {
    for _ in 0..iterations {
        black_box(&operation(black_box(script)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_fails_three_times_succeeds_and_starts_again() {
        let script = Script::failing(3);
        let outcomes: Vec<_> = (0..8).map(|_| script.attempt().is_ok()).collect();
        assert_eq!(outcomes, [false, false, false, true, false, false, false, true]);
    }
}
