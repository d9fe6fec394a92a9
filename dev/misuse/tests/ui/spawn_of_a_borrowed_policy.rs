use std::time::Duration;

use stagger::Policy;

async fn fetch() -> Result<u32, std::io::Error> {
    Ok(7)
}

fn main() {
    let policy = Policy::constant(Duration::from_secs(1)).build().unwrap();
    tokio::spawn(stagger::retry(&policy, fetch));
}
