//! Who sleeps. A timer is a [`Clock`] that one can sleep on.

#[cfg(feature = "async-io")]
mod async_io;
mod from_fn;
#[cfg(feature = "futures-timer")]
mod futures_timer;
mod thread;
#[cfg(feature = "tokio")]
mod tokio;

use core::future::Future;
use core::time::Duration;

#[cfg(feature = "async-io")]
pub use async_io::AsyncIo;
pub use from_fn::SleepFn;
#[cfg(feature = "futures-timer")]
pub use futures_timer::FuturesTimer;
pub use thread::ThreadSleep;
#[cfg(feature = "tokio")]
pub use tokio::Tokio;

use crate::{Cancel, time::Clock};

/// A timer for async code: it makes futures that are ready after a length of time of its own clock.
///
/// A wait of zero never reaches it. The futures are `Unpin`, so that one that is not has to be boxed by the timer
/// that makes it, once, and can be re-armed.
pub trait Sleep: Clock {
    /// What [`sleep`](Self::sleep) gives.
    type Sleeping: Future<Output = ()> + Unpin;

    /// A future that is ready when `length` has passed.
    fn sleep(&self, length: Duration) -> Self::Sleeping;

    /// Arms a future that was made before, again: without a new allocation, where the timer can.
    fn rearm(&self, sleeping: &mut Self::Sleeping, length: Duration) {
        *sleeping = self.sleep(length);
    }

    /// The distance of the points in time at which it can wake somebody up. Default zero: any. See
    /// [`RetryMachine::on_ticks`](crate::machine::RetryMachine::on_ticks) for what is made of it.
    fn resolution(&self) -> Duration {
        Duration::ZERO
    }
}

/// A timer for blocking code.
///
/// A wait of zero never reaches it.
pub trait BlockingSleep: Clock {
    /// Returns when `length` has passed.
    fn sleep(&self, length: Duration);

    /// Returns when `length` has passed, or when it is cancelled. By default it cannot be woken up in between.
    fn sleep_unless(&self, length: Duration, cancel: &Cancel) {
        if !cancel.is_cancelled() {
            self.sleep(length);
        }
    }
}

impl<T: BlockingSleep + ?Sized> BlockingSleep for &T {
    fn sleep(&self, length: Duration) {
        (**self).sleep(length);
    }

    fn sleep_unless(&self, length: Duration, cancel: &Cancel) {
        (**self).sleep_unless(length, cancel);
    }
}

impl<T: Sleep + ?Sized> Sleep for &T {
    type Sleeping = T::Sleeping;

    fn sleep(&self, length: Duration) -> Self::Sleeping {
        (**self).sleep(length)
    }

    fn rearm(&self, sleeping: &mut Self::Sleeping, length: Duration) {
        (**self).rearm(sleeping, length);
    }

    fn resolution(&self) -> Duration {
        (**self).resolution()
    }
}
