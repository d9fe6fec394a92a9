use core::future::Ready;
use core::time::Duration;

use stagger::Instant;
use stagger::time::{BlockingSleep, Clock, Sleep};

/// A timer that panics if a sleep is requested.
#[derive(Clone, Copy, Debug)]
pub struct PanickingTimer;

impl Clock for PanickingTimer {
    fn now(&self) -> Instant {
        Instant::ZERO
    }
}

impl Sleep for PanickingTimer {
    type Sleeping = Ready<()>;

    fn sleep(&self, length: Duration) -> Ready<()> {
        panic!("unexpected sleep of {length:?}")
    }
}

impl BlockingSleep for PanickingTimer {
    fn sleep(&self, length: Duration) {
        panic!("unexpected sleep of {length:?}")
    }
}
