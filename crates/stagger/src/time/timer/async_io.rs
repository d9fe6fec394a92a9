use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use stagger_core::Instant;

use super::sleep::Sleep;
use crate::time::{Clock, SystemClock};

/// The timer of `async-io`, used by smol and async-std: `.timer(AsyncIo)`.
#[derive(Clone, Copy, Debug, Default)]
pub struct AsyncIo;

/// The future of [`AsyncIo`].
#[derive(Debug)]
pub struct AsyncIoSleeping(async_io::Timer);

impl Future for AsyncIoSleeping {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx).map(drop)
    }
}

impl Clock for AsyncIo {
    fn now(&self) -> Instant {
        SystemClock.now()
    }
}

#[diagnostic::do_not_recommend]
impl Sleep for AsyncIo {
    type Sleeping = AsyncIoSleeping;

    fn sleep(&self, length: Duration) -> Self::Sleeping {
        AsyncIoSleeping(async_io::Timer::after(length))
    }

    fn rearm(&self, sleeping: &mut Self::Sleeping, length: Duration) {
        sleeping.0.set_after(length);
    }
}
