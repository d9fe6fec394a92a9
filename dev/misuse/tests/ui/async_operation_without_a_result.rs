use stagger::{Policy, retry};

async fn count() -> u32 {
    3
}

fn main() {
    let _ = retry(&Policy::DEFAULT, count);
}
