use core::time::Duration;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

/// A handle that cancels blocking calls: their sleeps end at once, and no further attempt is made.
///
/// An attempt that is being made is not interrupted, since a thread cannot be; what it gives is given to the caller.
/// Clones are the same handle. Async calls are cancelled by any future instead, or by being dropped.
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
pub struct Cancel(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    cancelled: Mutex<bool>,
    wake: Condvar,
}

impl Cancel {
    /// Not cancelled.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Cancels every call that has this handle, for good.
    pub fn cancel(&self) {
        *self.lock() = true;
        self.0.wake.notify_all();
    }

    /// Whether it was cancelled.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        *self.lock()
    }

    /// Sleeps for `length`, or until it is cancelled.
    pub fn sleep(&self, length: Duration) {
        let start = Instant::now();
        let mut cancelled = self.lock();
        while !*cancelled {
            let left = length.saturating_sub(start.elapsed());
            if left.is_zero() {
                return;
            }
            cancelled = self.0.wake.wait_timeout(cancelled, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// A bool cannot be left half written, so a poisoned lock is as good as any.
    fn lock(&self) -> std::sync::MutexGuard<'_, bool> {
        self.0.cancelled.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What may cancel a blocking call.
pub trait Cancelling {
    /// Whether it has been cancelled.
    fn is_cancelled(&self) -> bool;

    /// The handle to sleep on, if there is one.
    fn handle(&self) -> Option<&Cancel>;
}

impl Cancelling for crate::future::Uncancelled {
    #[inline]
    fn is_cancelled(&self) -> bool {
        false
    }

    fn handle(&self) -> Option<&Cancel> {
        None
    }
}

impl Cancelling for &Cancel {
    fn is_cancelled(&self) -> bool {
        Cancel::is_cancelled(self)
    }

    fn handle(&self) -> Option<&Cancel> {
        Some(self)
    }
}
