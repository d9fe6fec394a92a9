use std::time::Duration;

use stagger::Policy;
use stagger::time::SleepFn;

async fn sleep(_: Duration) {}

fn main() {
    let _ = stagger::retry_with_timer(&Policy::DEFAULT, SleepFn::new(sleep), async || Err::<(), _>("no"));
}
