//! A task for each pending retry, which never gets anywhere.

use core::future::Future;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use tokio::runtime::Runtime;

use super::load::PENDING;
use crate::operation::{Failure, Script};
use crate::tokio_runtime;

/// How many attempts were made, by all tasks together.
static ATTEMPTS: AtomicU64 = AtomicU64::new(0);

/// The attempt of every task.
pub(super) async fn fail() -> Result<u64, Failure> {
    static FAILURE: Script = Script::failing(u32::MAX);
    attempted();
    FAILURE.step()
}

/// One more.
pub(super) fn attempted() {
    ATTEMPTS.fetch_add(1, Ordering::Relaxed);
}

/// A million tasks on a runtime whose clock goes on by itself when all of them wait.
pub(super) struct Tasks(Runtime);

impl Tasks {
    /// A task for each of the futures that this gives by their numbers; all of them are waiting when it returns.
    pub(super) fn of<F: Future<Output: Send> + Send + 'static>(future: impl Fn(u64) -> F) -> Self {
        let runtime = tokio_runtime::paused();
        for number in 0..PENDING {
            runtime.spawn(future(u64::from(number)));
        }
        runtime.block_on(tokio::task::yield_now());
        Self(runtime)
    }

    /// Lets time pass until this many more attempts were made, and those of the same millisecond.
    pub(super) fn due(&self, times: u64) {
        let before = ATTEMPTS.load(Ordering::Relaxed);
        self.0.block_on(async {
            while ATTEMPTS.load(Ordering::Relaxed) - before < times {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
    }
}

/// A case on a task for each of the futures that this gives, started once for all turns of the case.
macro_rules! on_tasks {
    ($future:expr) => {
        |times| {
            thread_local! {
                static TASKS: Tasks = Tasks::of($future);
            }
            TASKS.with(|tasks| tasks.due(times));
        }
    };
}
pub(super) use on_tasks;
