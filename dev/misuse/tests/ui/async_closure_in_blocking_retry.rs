use stagger::{Policy, blocking};

async fn fetch() -> Result<(), std::io::Error> {
    Ok(())
}

fn main() {
    let _ = blocking::retry(&Policy::DEFAULT, async || fetch().await);
}
