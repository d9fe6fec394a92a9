use std::time::Duration;

use stagger::Policy;

struct MyError;

async fn load() {
    let _ = stagger::retry(&Policy::DEFAULT, async || Err::<(), _>(MyError)).timeout(Duration::from_secs(1)).await;
}

fn main() {
    let _ = load();
}
