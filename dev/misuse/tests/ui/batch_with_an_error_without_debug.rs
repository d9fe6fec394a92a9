use stagger::Policy;
use stagger::batch::Batch;
use stagger::time::Tokio;

struct MyError;

async fn send() {
    let mut batch: Batch<u32, MyError, Tokio> = Batch::new(Policy::DEFAULT, [("a", 1)]);
    while batch.next_attempt().await {}
}

fn main() {
    let _ = send();
}
