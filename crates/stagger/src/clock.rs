use std::sync::OnceLock;

use crate::Instant;

/// Where the present comes from.
///
/// It must be monotonic. [`SystemClock`] is the real one; [`testing::VirtualClock`](crate::testing::VirtualClock) is
/// moved by hand or by whoever sleeps on it. A shared clock is a clock: `&C` and `Arc<C>` will do.
pub trait Clock {
    /// The present instant of this clock.
    fn now(&self) -> Instant;
}

/// The system's monotonic clock. What lies before the first time that this process reads it can be told too, as far back
/// as a century.
///
/// 24 ns a reading on a usual x86-64 machine. Where the system suspends, so does it.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

/// Where clocks begin: the call that a retry belongs to may have begun before this process.
pub(crate) const MIDDLE: Instant = Instant::from_nanos(u64::MAX / 4);

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        static EPOCH: OnceLock<std::time::Instant> = OnceLock::new();
        MIDDLE.saturating_add(EPOCH.get_or_init(std::time::Instant::now).elapsed())
    }
}

impl<C: Clock + ?Sized> Clock for &C {
    fn now(&self) -> Instant {
        (**self).now()
    }
}

impl<C: Clock + ?Sized> Clock for std::sync::Arc<C> {
    fn now(&self) -> Instant {
        (**self).now()
    }
}
