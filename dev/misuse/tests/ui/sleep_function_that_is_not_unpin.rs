use std::time::Duration;

use stagger::Policy;
use stagger::time::SleepFn;

async fn sleep(_: Duration) {}

fn main() {
    let _ = stagger::retry(&Policy::DEFAULT, async || Err::<(), _>("no")).timer(SleepFn::new(sleep));
}
