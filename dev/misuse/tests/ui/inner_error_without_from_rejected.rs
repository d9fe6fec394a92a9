use std::time::Duration;

use stagger::Policy;

#[derive(Debug)]
struct MyError;

async fn load() -> Result<(), MyError> {
    stagger::retry(&Policy::DEFAULT, async || Err(MyError)).timeout(Duration::from_secs(1)).with_inner_error().await
}

fn main() {
    let _ = load();
}
