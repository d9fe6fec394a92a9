use core::time::Duration;

use stagger::Cancel;
use stagger::testing::sleeps_are_skipped;
use stagger::time::BlockingSleep;

/// Sleeps, or does not if the wait is zero, sleeping is turned off, or the call is cancelled.
pub(crate) fn sleep(timer: &impl BlockingSleep, delay: Duration, cancel: Option<&Cancel>) {
    match cancel {
        _ if delay.is_zero() || sleeps_are_skipped() => {}
        Some(cancel) => timer.sleep_unless(delay, cancel),
        None => timer.sleep(delay),
    }
}
