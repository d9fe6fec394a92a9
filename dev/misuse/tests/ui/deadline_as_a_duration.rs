use std::time::Duration;

use stagger::{Policy, blocking};

fn main() {
    let _ = blocking::retry(&Policy::DEFAULT, || Err::<(), _>("no")).deadline(Duration::from_secs(5));
}
