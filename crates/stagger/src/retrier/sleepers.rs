use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Arc;

/// The threads that sleep in the blocking calls of a retrier, and how many may.
#[derive(Debug)]
pub struct Sleepers {
    most: usize,
    asleep: AtomicUsize,
}

impl Sleepers {
    pub(crate) const fn new(most: usize) -> Self {
        Self { most, asleep: AtomicUsize::new(0) }
    }

    /// Returns the number of threads that are asleep.
    pub(crate) fn asleep(&self) -> usize {
        self.asleep.load(Ordering::Relaxed)
    }

    /// Lets the current thread sleep until the returned value is dropped. Returns `None` if as many as allowed do.
    pub(crate) fn enter(self: &Arc<Self>) -> Option<Asleep> {
        // Only the number itself is shared: nothing else is published by it.
        let entered = self.asleep.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |asleep| {
            (asleep < self.most).then(|| asleep.saturating_add(1))
        });
        entered.is_ok().then(|| Asleep(Arc::clone(self)))
    }
}

/// A thread that is asleep. Dropping it wakes the thread up, also if its timer panics.
#[derive(Debug)]
pub(crate) struct Asleep(Arc<Sleepers>);

impl Drop for Asleep {
    fn drop(&mut self) {
        self.0.asleep.fetch_sub(1, Ordering::Relaxed);
    }
}
