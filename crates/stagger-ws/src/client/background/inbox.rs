use core::sync::atomic::{AtomicUsize, Ordering};
use core::task::{Context, Poll};

use futures_util::task::AtomicWaker;

/// The payload of the messages that the client has not read yet. Their number is bounded by the channel.
#[derive(Debug)]
pub(super) struct UnreadBytes {
    bytes: AtomicUsize,
    limit: usize,
    task: AtomicWaker,
}

impl UnreadBytes {
    pub(super) const fn new(limit: usize) -> Self {
        Self { bytes: AtomicUsize::new(0), limit, task: AtomicWaker::new() }
    }

    pub(super) fn add(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::AcqRel);
    }

    pub(super) fn remove(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::AcqRel);
        self.task.wake();
    }

    /// Polls until there is room for a message, whatever its length.
    pub(super) fn poll_room(&self, cx: &Context<'_>) -> Poll<()> {
        if self.has_room() {
            return Poll::Ready(());
        }
        self.task.register(cx.waker());
        // Checked again: the client may have read a message in between.
        if self.has_room() { Poll::Ready(()) } else { Poll::Pending }
    }

    fn has_room(&self) -> bool {
        self.bytes.load(Ordering::Acquire) < self.limit
    }
}
