use stagger::{Outcome, Policy, PollRetry, Retrier};

struct MyError;

fn main() {
    let mut call = PollRetry::new(&Retrier::new(Policy::DEFAULT), stagger::time::Tokio);
    let _ = call.failed(Outcome::TRANSIENT, Some(&MyError));
}
