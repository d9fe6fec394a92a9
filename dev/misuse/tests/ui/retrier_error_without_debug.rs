use stagger::{Policy, Retrier};

struct MyError;

fn main() {
    let _ = Retrier::new(Policy::DEFAULT).blocking(|| Err::<(), _>(MyError));
}
