use core::iter;
use core::pin::pin;
use core::time::Duration;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

/// Locks, ignoring poisoning: only the application's code can panic while a lock is held, and never while the state is
/// inconsistent.
pub(crate) fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits until `check` returns a value. It is called again after each notification.
pub(crate) async fn wait_until<T>(changed: &Notify, mut check: impl FnMut() -> Option<T>) -> T {
    loop {
        let mut notified = pin!(changed.notified());
        // Before the check; otherwise a notification in between would be missed.
        notified.as_mut().enable();
        if let Some(value) = check() {
            return value;
        }
        notified.await;
    }
}

/// Returns `from + length`. A length of many billions of years is halved until the sum can be represented, where `+`
/// would panic.
pub(crate) fn saturating_add(from: Instant, length: Duration) -> Instant {
    let mut lengths = iter::successors(Some(length), |length| Some(*length / 2));
    lengths.find_map(|length| from.checked_add(length)).unwrap_or(from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_that_cannot_be_represented_is_far_away() {
        let now = Instant::now();
        assert_eq!(saturating_add(now, Duration::from_secs(7)), now + Duration::from_secs(7));
        assert!(saturating_add(now, Duration::MAX) > now + Duration::from_secs(86_400 * 365));
        let (mut last, mut step) = (now, Duration::MAX);
        while !step.is_zero() {
            last = last.checked_add(step).unwrap_or(last);
            step /= 2;
        }
        assert!(saturating_add(last, Duration::from_secs(1)) > now);
    }
}
