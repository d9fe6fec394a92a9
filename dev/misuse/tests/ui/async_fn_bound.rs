use stagger::{Policy, retry};

async fn retried<F: AsyncFn() -> Result<u32, String>>(operation: F) -> Result<u32, String> {
    retry(&Policy::DEFAULT, operation).await
}

fn main() {
    let _ = retried(async || Ok(3));
}
