use stagger::time::Tokio;
use stagger::{Policy, blocking};

fn main() {
    let _ = blocking::retry(&Policy::DEFAULT, || Err::<(), _>("no")).timer(Tokio);
}
