use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use stagger::Instant;
use stagger::testing::VirtualClock;
use stagger::time::{Clock, Sleep};

use super::drivers::Environment;

/// A real timer that sleeps for at most 20 µs, with a clock that advances by the whole requested length.
#[derive(Clone, Debug, Default)]
pub(crate) struct FastForward<T> {
    timer: T,
    clock: VirtualClock,
}

#[derive(Debug)]
pub(crate) struct FastForwardSleep<S> {
    sleep: S,
    length: Duration,
    clock: VirtualClock,
}

impl<T> Clock for FastForward<T> {
    fn now(&self) -> Instant {
        self.clock.now()
    }
}

impl<T: Sleep> Sleep for FastForward<T> {
    type Sleeping = FastForwardSleep<T::Sleeping>;

    fn sleep(&self, length: Duration) -> Self::Sleeping {
        FastForwardSleep { sleep: self.timer.sleep(capped(length)), length, clock: self.clock.clone() }
    }

    fn rearm(&self, sleeping: &mut Self::Sleeping, length: Duration) {
        self.timer.rearm(&mut sleeping.sleep, capped(length));
        sleeping.length = length;
    }
}

fn capped(length: Duration) -> Duration {
    length.min(Duration::from_micros(20))
}

impl<S: Future<Output = ()> + Unpin> Future for FastForwardSleep<S> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        ready!(Pin::new(&mut self.sleep).poll(cx));
        self.clock.advance(self.length);
        Poll::Ready(())
    }
}

impl<T: Sleep + Clone> Environment for FastForward<T> {
    type Timer = Self;

    fn timer(&self) -> Self {
        self.clone()
    }

    async fn elapse(&self, length: Duration) {
        self.clock.elapse(length).await;
    }
}
