//! The runtimes that async cases run on.

use tokio::runtime::{Builder, Runtime};

/// One thread, and a clock that stands still: a sleep costs its work, and no waiting.
pub(crate) fn paused() -> Runtime {
    built(Builder::new_current_thread().enable_time().start_paused(true))
}

/// One thread and the real clock.
pub(crate) fn real() -> Runtime {
    built(Builder::new_current_thread().enable_time())
}

/// One thread, the real clock, and sockets.
pub(crate) fn connected() -> Runtime {
    Builder::new_current_thread().enable_all().build().expect("a few descriptors for the runtime")
}

fn built(builder: &mut Builder) -> Runtime {
    // A runtime of one thread without I/O opens nothing that could be refused.
    builder.build().expect("a runtime without I/O")
}
