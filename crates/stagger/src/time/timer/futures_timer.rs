use core::time::Duration;

use futures_timer::Delay;
use stagger_core::Instant;

use super::sleep::Sleep;
use crate::time::{Clock, SystemClock};

/// The timer of `futures-timer`, which has its own thread and works with any executor: `.timer(FuturesTimer)`.
#[derive(Clone, Copy, Debug, Default)]
pub struct FuturesTimer;

impl Clock for FuturesTimer {
    fn now(&self) -> Instant {
        SystemClock.now()
    }
}

#[diagnostic::do_not_recommend]
impl Sleep for FuturesTimer {
    type Sleeping = Delay;

    fn sleep(&self, length: Duration) -> Delay {
        Delay::new(length)
    }

    fn rearm(&self, sleeping: &mut Delay, length: Duration) {
        sleeping.reset(length);
    }
}
