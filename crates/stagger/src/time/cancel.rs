//! Cancellation of blocking calls.

use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

/// A handle that cancels blocking calls: their sleeps end immediately and no further attempt is made.
///
/// An attempt in progress is not interrupted, because a thread cannot be; its result is returned to the caller. Clones
/// are the same handle. Async calls are cancelled by dropping them or by any future.
///
/// ```
/// use stagger::{Cancel, Error, Policy, StopReason, blocking, policy};
///
/// const FOR_EVER: Policy = policy!(exponential(secs(60), secs(60)).unlimited_attempts());
///
/// let cancel = Cancel::new();
/// let other = cancel.clone();
/// let thread = std::thread::spawn(move || {
///     blocking::retry(&FOR_EVER, || Err::<(), _>("not yet")).cancelled_by(&other).run()
/// });
/// cancel.cancel();
/// let error = thread.join().unwrap().unwrap_err();
/// assert_eq!((error.stop_reason(), error.error()), (StopReason::Cancelled, Some(&"not yet")));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Cancel(Arc<CancelState>);

#[derive(Debug, Default)]
struct CancelState {
    cancelled: Mutex<bool>,
    wake: Condvar,
}

impl Cancel {
    /// Creates a handle that has not been cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels every call that uses this handle, permanently.
    pub fn cancel(&self) {
        *self.lock() = true;
        self.0.wake.notify_all();
    }

    /// Returns whether the handle was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        *self.lock()
    }

    /// Sleeps for `length`, or until the handle is cancelled.
    pub fn sleep(&self, length: Duration) {
        let start = Instant::now();
        let mut cancelled = self.lock();
        // A condition variable may wake up without a notification.
        while !*cancelled {
            let left = length.saturating_sub(start.elapsed());
            if left.is_zero() {
                return;
            }
            cancelled = self.0.wake.wait_timeout(cancelled, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Locks the flag. A bool cannot be left half-written, so a poisoned lock is still valid.
    fn lock(&self) -> std::sync::MutexGuard<'_, bool> {
        self.0.cancelled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that can only be cancelled by dropping it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Uncancelled;

impl Future for Uncancelled {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        Poll::Pending
    }
}
