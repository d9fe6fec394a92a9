//! Cooperative yielding: attempts that complete immediately, without delays in between, would starve other tasks.

use core::future::poll_fn;
use core::task::Poll;

/// Number of attempts without a pause after which the task yields.
const TURN: u32 = 64;

/// Returns whether the task should yield after this attempt; 0 is before the first.
#[inline]
pub(crate) const fn is_over(attempt: u32) -> bool {
    attempt > 0 && attempt % TURN == 0
}

/// Yields to other tasks if it is time to.
pub(crate) async fn take_turns(attempt: u32) {
    let mut waits = is_over(attempt);
    poll_fn(|cx| {
        if !core::mem::take(&mut waits) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
