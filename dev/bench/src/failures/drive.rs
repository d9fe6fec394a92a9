//! Runs the cases of section D.

use core::future::{Ready, ready};
use core::hint::black_box;
use core::time::Duration;

use crate::operation::{Failure, Script};

/// Makes an attempt in a future. `E` is the error type that the crate expects.
pub(super) async fn attempt<E: From<Failure>>(script: &'static Script) -> Result<u64, E> {
    script.attempt().map_err(E::from)
}

/// Returns immediately in place of a blocking sleep, but forces the delay to be computed.
pub(super) fn use_delay(delay: Duration) {
    black_box(&delay);
}

/// Returns a sleep that is ready immediately, but forces the delay to be computed.
pub(super) fn sleep_ready(delay: Duration) -> Ready<()> {
    use_delay(delay);
    ready(())
}

/// Creates two rows for one `fn(u64, &Runtime)`: its CPU work on a paused clock, and its time on the real one.
macro_rules! on_both_clocks {
    ($role:expr, $name:expr, $run:expr, $note:expr) => {{
        use crate::case::{Case, Table};
        use crate::tokio_runtime::{paused, real};
        [
            Case::work(Table::FailuresTokio, $role, $name, |iterations| {
                $run(iterations, &paused());
            })
            .note($note),
            Case::wait(Table::FailuresTokioReal, $role, $name, |iterations| {
                $run(iterations, &real());
            })
            .note($note),
        ]
    }};
}
pub(super) use on_both_clocks;
