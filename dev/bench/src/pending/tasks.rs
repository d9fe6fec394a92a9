//! A task per pending retry, whose attempts always fail.

use core::future::Future;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use tokio::runtime::Runtime;

use super::load::PENDING;
use crate::operation::{Failure, Script};
use crate::tokio_runtime;

/// The number of attempts of all tasks together.
static ATTEMPTS: AtomicU64 = AtomicU64::new(0);

/// Makes an attempt, which fails.
pub(super) async fn fail() -> Result<u64, Failure> {
    static FAILURE: Script = Script::failing(u32::MAX);
    attempted();
    FAILURE.step()
}

/// Counts an attempt.
pub(super) fn attempted() {
    ATTEMPTS.fetch_add(1, Ordering::Relaxed);
}

/// A million tasks on a runtime with a paused clock, which advances when all tasks wait.
pub(super) struct Tasks(Runtime);

impl Tasks {
    /// Starts one task for each number with the future that `future` returns, and returns when all tasks wait.
    pub(super) fn start<F: Future<Output: Send> + Send + 'static>(future: impl Fn(u64) -> F) -> Self {
        let runtime = tokio_runtime::paused();
        for number in 0..PENDING {
            runtime.spawn(future(u64::from(number)));
        }
        runtime.block_on(tokio::task::yield_now());
        Self(runtime)
    }

    /// Advances the clock until `times` more attempts were made, including all others of the same millisecond.
    pub(super) fn due(&self, times: u64) {
        let before = ATTEMPTS.load(Ordering::Relaxed);
        self.0.block_on(async {
            while ATTEMPTS.load(Ordering::Relaxed) - before < times {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
    }
}

/// Creates a case with a task per number, started once for all turns of the case.
macro_rules! on_tasks {
    ($future:expr) => {
        |times| {
            thread_local! {
                static TASKS: Tasks = Tasks::start($future);
            }
            TASKS.with(|tasks| tasks.due(times));
        }
    };
}
pub(super) use on_tasks;
