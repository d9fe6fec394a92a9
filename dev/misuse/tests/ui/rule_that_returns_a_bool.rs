use stagger::{Policy, blocking};

fn main() {
    let _ = blocking::retry(&Policy::DEFAULT, || Err::<(), _>("busy")).classify(|error| *error == "busy");
}
