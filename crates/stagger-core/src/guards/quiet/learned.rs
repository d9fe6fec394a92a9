use core::time::Duration;

use super::pace::{FASTEST, SLOWEST};
use super::period::QuietPeriod;
use super::recent::Finding;
use super::snapshot::{QuietState, QuietTrigger};
use crate::guards::guard::LimiterMode;
use crate::guards::hold::Permit;
use crate::guards::now::Now;
use crate::numbers::instant::nanos;

/// The rate of the return, for quiet periods that are created when they are needed.
impl QuietPeriod {
    /// Returns the time between two calls with which a return would begin if a pause began now: the mean of the last second
    /// or more, between 1 µs and 1 s.
    ///
    /// One quiet period can learn the rate at which a server admits calls for others, which are created when a pause
    /// begins: see [`assume_interval`](Self::assume_interval).
    #[must_use]
    pub fn learned_interval(&self, now: &dyn Now) -> Duration {
        Duration::from_nanos(self.admitted.interval(now.now().as_nanos()))
    }

    /// Sets the time between two calls with which a return begins, for a quiet period that has recorded no success yet.
    /// Default: 1 s. Range: 1 µs to 1 s; other values count as the nearer limit.
    pub fn assume_interval(&self, interval: Duration) {
        self.admitted.assume(nanos(interval).clamp(FASTEST, SLOWEST));
    }

    /// Returns what begins a pause.
    #[must_use]
    pub const fn trigger(&self) -> QuietTrigger {
        self.settings.trigger
    }

    /// Returns the longest pause that a hint can cause.
    #[must_use]
    pub const fn max(&self) -> Duration {
        Duration::from_nanos(self.settings.max)
    }

    /// Returns whether an attempt that was admitted with this permit, and has not begun, may still begin.
    pub(super) fn allows(&self, permit: Permit) -> bool {
        let state = self.load();
        match (state.mode(), permit) {
            _ if self.settings.hold.mode == LimiterMode::Observe => true,
            (QuietState::Open, _) => true,
            (QuietState::Probing, Permit::Probe { generation })
            | (QuietState::Returning, Permit::Probe { generation } | Permit::Admitted { generation }) => {
                generation == state.generation()
            }
            _ => false,
        }
    }

    /// Counts a refusal without a hint, and returns whether there are too many, if they begin a pause.
    pub(super) fn has_too_many_refusals(&self) -> bool {
        self.settings.trigger == QuietTrigger::HintsAndRefusals && self.recent.count(true) == Finding::TooManyRefusals
    }
}

impl Default for QuietPeriod {
    fn default() -> Self {
        Self::new()
    }
}
