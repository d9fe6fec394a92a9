use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use stagger::testing::VirtualClock;
use stagger::{Instant, time::Clock, time::Sleep};

/// A virtual timer whose sleeps are pending at their first poll, so that a test can drop a call during a sleep.
#[derive(Clone, Debug, Default)]
pub(crate) struct PendingTimer {
    pub(crate) clock: VirtualClock,
}

/// A sleep of [`PendingTimer`].
#[derive(Debug)]
pub(crate) struct PendingSleep {
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
