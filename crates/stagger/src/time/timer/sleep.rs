use core::future::Future;
use core::time::Duration;

use crate::time::cancel::Cancel;
use crate::time::clock::Clock;

/// A timer for async code: creates futures that complete after a time on its own clock.
///
/// It is never asked to wait for zero. The futures are `Unpin`, so that they can be rearmed: a timer whose future is
/// not must box it once.
pub trait Sleep: Clock {
    /// The future returned by [`sleep`](Self::sleep).
    type Sleeping: Future<Output = ()> + Unpin;

    /// Returns a future that completes after `length`.
    fn sleep(&self, length: Duration) -> Self::Sleeping;

    /// Rearms an existing future, without a new allocation where the timer can.
    fn rearm(&self, sleeping: &mut Self::Sleeping, length: Duration) {
        *sleeping = self.sleep(length);
    }

    /// Returns the distance between the instants at which the timer can fire. Default: zero, any instant. See
    /// [`RetryMachine::on_ticks`](crate::machine::RetryMachine::on_ticks) for how delays are fitted to it.
    fn resolution(&self) -> Duration {
        Duration::ZERO
    }
}

/// A timer for blocking code.
///
/// It is never asked to wait for zero.
pub trait BlockingSleep: Clock {
    /// Sleeps for `length`.
    fn sleep(&self, length: Duration);

    /// Sleeps for `length`, or until `cancel` is cancelled. The default implementation checks for cancellation only
    /// before it sleeps.
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
