use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use stagger::testing::VirtualClock;
use stagger::{Instant, time::Clock, time::Sleep};

use super::drivers::World;

/// A real timer that is asked for at most 20 µs, on a clock that believes that it was asked for all of it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Hurried<T> {
    timer: T,
    clock: VirtualClock,
}

#[derive(Debug)]
pub(crate) struct HurriedSleep<S> {
    sleep: S,
    length: Duration,
    clock: VirtualClock,
}

impl<T> Clock for Hurried<T> {
    fn now(&self) -> Instant {
        self.clock.now()
    }
}

impl<T: Sleep> Sleep for Hurried<T> {
    type Sleeping = HurriedSleep<T::Sleeping>;

    fn sleep(&self, length: Duration) -> Self::Sleeping {
        HurriedSleep { sleep: self.timer.sleep(hurried(length)), length, clock: self.clock.clone() }
    }

    fn rearm(&self, sleeping: &mut Self::Sleeping, length: Duration) {
        self.timer.rearm(&mut sleeping.sleep, hurried(length));
        sleeping.length = length;
    }
}

fn hurried(length: Duration) -> Duration {
    length.min(Duration::from_micros(20))
}

impl<S: Future<Output = ()> + Unpin> Future for HurriedSleep<S> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        ready!(Pin::new(&mut self.sleep).poll(cx));
        self.clock.advance(self.length);
        Poll::Ready(())
    }
}

impl<T: Sleep + Clone> World for Hurried<T> {
    type Timer = Self;

    fn timer(&self) -> Self {
        self.clone()
    }

    async fn pass(&self, length: Duration) {
        self.clock.pass(length).await;
    }
}
