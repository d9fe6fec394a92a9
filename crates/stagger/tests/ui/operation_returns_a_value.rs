use stagger::Policy;

async fn count() -> u32 {
    3
}

fn main() {
    let _ = stagger::retry(&Policy::DEFAULT, count);
}
