//! Shorthands shared by the tests.

use core::time::Duration;

pub(crate) use stagger_kit::{PanickingTimer, PendingTimer, assert_uniform, poll_times};

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

pub(crate) const fn nanos(n: u64) -> Duration {
    Duration::from_nanos(n)
}
