//! The runtimes that async cases run on.

use tokio::runtime::{Builder, Runtime};

/// Creates a single-threaded runtime with a paused clock: a sleep costs its CPU work, and does not wait.
pub(crate) fn paused() -> Runtime {
    built(Builder::new_current_thread().enable_time().start_paused(true))
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
