use stagger::{Policy, Retrier};

async fn count() -> u32 {
    3
}

fn main() {
    let _ = Retrier::new(Policy::DEFAULT).run(count);
}
