//! Timers of calls in virtual time: one that a test interrupts, and one that must not be used.

use core::future::Ready;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use stagger::Instant;
use stagger::testing::VirtualClock;
use stagger::time::{BlockingSleep, Clock, Sleep};

/// A virtual timer whose sleeps are pending at their first poll, so that a test can drop a call during a sleep.
#[derive(Clone, Debug, Default)]
pub struct PendingTimer {
    /// The clock that a sleep advances when it ends.
    pub clock: VirtualClock,
}

/// A sleep of [`PendingTimer`].
#[derive(Debug)]
pub struct PendingSleep {
    clock: VirtualClock,
    length: Duration,
    polls: u32,
}

impl Clock for PendingTimer {
    fn now(&self) -> Instant {
        self.clock.now()
    }
}

impl Sleep for PendingTimer {
    type Sleeping = PendingSleep;

    fn sleep(&self, length: Duration) -> PendingSleep {
        PendingSleep { clock: self.clock.clone(), length, polls: 0 }
    }
}

impl Future for PendingSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.polls += 1;
        if self.polls == 1 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.clock.advance(self.length);
        Poll::Ready(())
    }
}

/// A timer that panics if a sleep is requested.
#[derive(Clone, Copy, Debug)]
pub struct PanickingTimer;

impl Clock for PanickingTimer {
    fn now(&self) -> Instant {
        Instant::ZERO
    }
}

impl Sleep for PanickingTimer {
    type Sleeping = Ready<()>;

    fn sleep(&self, length: Duration) -> Ready<()> {
        panic!("unexpected sleep of {length:?}")
    }
}

impl BlockingSleep for PanickingTimer {
    fn sleep(&self, length: Duration) {
        panic!("unexpected sleep of {length:?}")
    }
}
