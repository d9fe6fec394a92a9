//! The time of a decision, which is read only if something needs it.

use core::cell::Cell;

use crate::numbers::instant::Instant;

/// The current time, read from the driver's clock at most once per decision, and only if it is needed.
pub trait Now {
    /// Returns the current instant. Repeated calls return the same value.
    fn now(&self) -> Instant;

    /// Returns an instant that was read before and is not after [`now`](Self::now), such as the start of the call, if
    /// one is known. A guard that has something to do once in a while need not read the clock to know that it is not
    /// due yet. Default: `None`.
    fn earlier(&self) -> Option<Instant> {
        None
    }
}

/// A fixed time: for tests, and for drivers that have already read their clock.
impl Now for Instant {
    fn now(&self) -> Instant {
        *self
    }
}

/// A clock that has not been read yet.
pub(crate) struct Unread<F> {
    read: Cell<Option<F>>,
    seen: Cell<Instant>,
    earlier: Option<Instant>,
}

impl<F: FnOnce() -> Instant> Unread<F> {
    #[inline]
    pub(crate) const fn new(read: F) -> Self {
        Self::after(None, read)
    }

    #[inline]
    pub(crate) const fn after(earlier: Option<Instant>, read: F) -> Self {
        Self { read: Cell::new(Some(read)), seen: Cell::new(Instant::ZERO), earlier }
    }
}

impl<F: FnOnce() -> Instant> Now for Unread<F> {
    #[inline]
    fn now(&self) -> Instant {
        if let Some(read) = self.read.take() {
            self.seen.set(read());
        }
        self.seen.get()
    }

    #[inline]
    fn earlier(&self) -> Option<Instant> {
        self.earlier
    }
}
