use std::time::Duration;

use stagger::{Policy, blocking};

struct MyError;

fn main() {
    let _ = blocking::retry(&Policy::DEFAULT, || Err::<(), _>(MyError)).timeout(Duration::from_secs(1)).run();
}
