use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use stagger::testing::VirtualClock;
use stagger::{Instant, time::Clock, time::Sleep};

/// Virtual time whose sleeps are pending when they are first polled, so that a call can be dropped in one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Patient {
    pub(crate) clock: VirtualClock,
}

/// The future of [`Patient`].
#[derive(Debug)]
pub(crate) struct PatientSleep {
    clock: VirtualClock,
    length: Duration,
    polls: u32,
}

impl Clock for Patient {
    fn now(&self) -> Instant {
        self.clock.now()
    }
}

impl Sleep for Patient {
    type Sleeping = PatientSleep;

    fn sleep(&self, length: Duration) -> PatientSleep {
        PatientSleep { clock: self.clock.clone(), length, polls: 0 }
    }
}

impl Future for PatientSleep {
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
