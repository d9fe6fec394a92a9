//! The operation that every case retries, so that all of them do the same work.

use core::fmt;
use core::future::Future;
use core::hint::black_box;
use core::sync::atomic::{AtomicU32, Ordering};

use tokio::runtime::{Builder, Runtime};

/// The error of an attempt that the script makes fail.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failure(u32);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} more failures to come", self.0 - 1)
    }
}

impl core::error::Error for Failure {}

/// An operation that fails a fixed number of times, succeeds once, and starts over.
///
/// The state is shared behind `&self`, because some peers take `Fn` and some need `Send + 'static`. Relaxed loads and
/// stores cost as much as those of a plain variable.
#[derive(Debug)]
pub(crate) struct Script {
    failures: u32,
    left: AtomicU32,
}

impl Script {
    pub(crate) const fn failing(failures: u32) -> Self {
        Self { failures, left: AtomicU32::new(failures) }
    }

    /// Returns whether the next attempt is the first after a success.
    #[cfg(test)]
    pub(crate) fn is_at_start(&self) -> bool {
        self.left.load(Ordering::Relaxed) == self.failures
    }

    /// Makes an attempt without inlining: an operation that is opaque to the retry loop.
    #[inline(never)]
    pub(crate) fn attempt(&self) -> Result<u64, Failure> {
        self.step()
    }

    /// Makes an attempt inline: an operation that costs next to nothing.
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

/// An operation that never fails.
pub(crate) static SUCCESS: Script = Script::failing(0);

/// An operation that fails three times, then succeeds.
pub(crate) static THREE_FAILURES: Script = Script::failing(3);

/// Runs `operation` on the script `iterations` times, with inputs and results hidden from the optimizer.
///
/// The result is passed to `black_box` by reference: if it were moved, a result just written in two halves would be
/// read back as a whole, and that stall takes longer than most of what is measured here.
#[inline]
pub(crate) fn repeat<T>(iterations: u64, script: &'static Script, mut operation: impl FnMut(&'static Script) -> T) {
    for _ in 0..iterations {
        black_box(&operation(black_box(script)));
    }
}

// The runtimes that async cases run on.

/// Creates a single-threaded runtime with a paused clock: a sleep costs its CPU work, and does not wait.
pub(crate) fn paused() -> Runtime {
    built(Builder::new_current_thread().enable_time().start_paused(true))
}

/// Awaits `operation` on the script `iterations` times on one runtime, with inputs and results hidden from the
/// optimizer as in [`repeat`].
pub(crate) fn repeat_on<Fut: Future>(
    runtime: &Runtime,
    iterations: u64,
    script: &'static Script,
    mut operation: impl FnMut(&'static Script) -> Fut,
) {
    runtime.block_on(async {
        for _ in 0..iterations {
            black_box(&operation(black_box(script)).await);
        }
    });
}

/// Creates a single-threaded runtime with the real clock.
pub(crate) fn real() -> Runtime {
    built(Builder::new_current_thread().enable_time())
}

/// Creates a single-threaded runtime with the real clock and with sockets.
pub(crate) fn connected() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a runtime needs only a few file descriptors")
}

fn built(builder: &mut Builder) -> Runtime {
    // A single-threaded runtime without I/O opens no file descriptor, so it cannot fail.
    builder.build().expect("a runtime without I/O")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_script_fails_three_times_succeeds_and_starts_over() {
        let script = Script::failing(3);
        let outcomes: Vec<_> = (0..8).map(|_| script.attempt().is_ok()).collect();
        assert_eq!(outcomes, [false, false, false, true, false, false, false, true]);
    }
}
