//! The runtimes that async cases run on.

use core::future::Future;
use core::hint::black_box;

use tokio::runtime::{Builder, Runtime};

use crate::operation::Script;

/// Creates a single-threaded runtime with a paused clock: a sleep costs its CPU work, and does not wait.
pub(crate) fn paused() -> Runtime {
    built(Builder::new_current_thread().enable_time().start_paused(true))
}

/// Awaits `operation` on the script `iterations` times on one runtime, with inputs and results hidden from the optimizer as
/// in [`repeat`](crate::operation::repeat).
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
