use core::time::Duration;

use stagger_core::machine::{Decision, RetryMachine};
use stagger_core::{DelaySource, StopReason};

use crate::retrier::event::Action;
use crate::testing;

/// The next action of the driver.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    /// Arm the timer for `delay`; zero means no timer. When it fires, check
    /// [`remaining_wait`](super::machine::Call::remaining_wait).
    Wait {
        /// The decided delay, fitted to the timer.
        delay: Duration,
        /// The decided delay.
        after: Duration,
        source: DelaySource,
    },
    Stop(StopReason),
}

impl Next {
    /// Returns the action that follows a decision about a failed attempt.
    #[inline(always)]
    pub(super) fn after(decision: &Decision, retry: &RetryMachine<'_>, resolution: Duration) -> Self {
        match *decision {
            Decision::Retry { after, source, .. } if testing::sleeps_are_skipped() => {
                Self::Wait { delay: Duration::ZERO, after, source }
            }
            Decision::Retry { after, source, .. } => {
                Self::Wait { delay: retry.on_ticks(after, source, resolution), after, source }
            }
            Decision::Stop(stop) => Self::Stop(stop),
            // Not reachable for an error; treated like an outcome of success beside an error.
            _ => Self::Stop(StopReason::Permanent),
        }
    }
}

/// Returns a decision as the listeners receive it.
pub(super) const fn action(decision: &Decision) -> Action {
    match decision {
        Decision::Done => Action::Done,
        Decision::Retry { after, source, .. } => Action::Retry { after: *after, source: *source },
        Decision::Stop(stop) => Action::Stop(*stop),
        _ => Action::Stop(StopReason::Permanent),
    }
}
