use std::time::Duration;

use stagger::{Policy, blocking};

#[derive(Debug)]
struct MyError;

fn load() -> Result<(), MyError> {
    blocking::retry(&Policy::DEFAULT, || Err::<(), _>(MyError)).within(Duration::from_secs(1)).run()?;
    Ok(())
}

fn main() {
    let _ = load();
}
