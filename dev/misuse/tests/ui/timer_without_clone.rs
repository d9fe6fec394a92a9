use std::time::Duration;

use stagger::time::{Clock, Sleep, SystemClock};
use stagger::{Instant, Policy};

struct MyTimer;

impl Clock for MyTimer {
    fn now(&self) -> Instant {
        SystemClock.now()
    }
}

impl Sleep for MyTimer {
    type Sleeping = std::future::Ready<()>;

    fn sleep(&self, _: Duration) -> Self::Sleeping {
        std::future::ready(())
    }
}

fn main() {
    let _ = stagger::retry(&Policy::DEFAULT, async || Err::<(), _>("no")).timer(MyTimer);
}
