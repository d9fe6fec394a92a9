use std::time::Instant as SystemInstant;

use stagger_core::Instant;

/// The monotonic clock of one run, with its epoch at the call of [`start`](Self::start).
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    origin: SystemInstant,
}

impl Clock {
    pub(super) fn start() -> Self {
        Self { origin: SystemInstant::now() }
    }

    pub(super) fn now(&self) -> Instant {
        Instant::ZERO.saturating_add(self.origin.elapsed())
    }
}
