use stagger::{RetryResultExt as _, Policy, Retrier};

#[derive(Debug)]
struct MyError;

fn main() {
    let api = Retrier::new(Policy::DEFAULT);
    let _ = api.blocking(|| Err::<(), _>(MyError)).into_inner();
}
