//! Cooperative yielding: attempts that complete immediately, without delays in between, would starve other tasks.

use core::future::poll_fn;
use core::task::Poll;

/// Number of attempts without a pause after which the task yields.
const ATTEMPTS_PER_YIELD: u32 = 64;

/// Returns whether the task should yield after this attempt; 0 is before the first.
#[inline]
pub(crate) const fn should_yield(attempt: u32) -> bool {
    attempt > 0 && attempt % ATTEMPTS_PER_YIELD == 0
}

/// Yields to other tasks if it is time to.
pub(crate) async fn yield_if_due(attempt: u32) {
    let mut yields = should_yield(attempt);
    poll_fn(|cx| {
        if !core::mem::take(&mut yields) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
