//! Whose turn it is. Attempts that are ready at once, without delays in between, would never let another task run.

use core::future::poll_fn;
use core::task::Poll;

/// After how many attempts without a pause another task gets its turn.
const TURN: u32 = 64;

/// Whether it is another task's turn after this attempt; 0 is before the first.
#[inline]
pub(crate) const fn is_over(attempt: u32) -> bool {
    attempt > 0 && attempt % TURN == 0
}

/// Lets another task run, if it is its turn.
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
