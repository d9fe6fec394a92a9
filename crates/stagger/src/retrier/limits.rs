//! The limits of calls: on their time, and on threads that sleep in them.

use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::Arc;

use stagger_core::Instant;

/// The time limits of a call: a deadline for all of it, and a timeout for each attempt.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) deadline: Option<Instant>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) last: LastAttempt,
}

impl Limits {
    /// No limits.
    pub(crate) const NONE: Self = Self { deadline: None, timeout: None, last: LastAttempt::Timed };

    /// Returns the timeout of an attempt.
    #[inline]
    pub(crate) const fn timeout(&self, is_last: IsLast) -> Option<Duration> {
        match (is_last, self.last) {
            (IsLast::Yes, LastAttempt::Untimed) => None,
            _ => self.timeout,
        }
    }
}

/// Whether an attempt is the last one that the policy allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IsLast {
    /// The last attempt.
    Yes,
    /// Another attempt may follow.
    No,
}

/// Whether the timeout of an attempt also applies to the last one.
///
/// A timeout leaves time for another attempt. When there is no other, cutting off the last attempt only turns a late
/// response into no response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum LastAttempt {
    /// The timeout applies to every attempt. The default.
    #[default]
    Timed,
    /// The last attempt is limited by the deadline only.
    Untimed,
}

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
            if asleep < self.most { Some(asleep + 1) } else { None }
        });
        match entered {
            Ok(_) => Some(Asleep(Arc::clone(self))),
            Err(_) => None,
        }
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
