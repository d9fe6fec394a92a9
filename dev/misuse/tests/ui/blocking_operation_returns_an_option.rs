use stagger::{Policy, blocking};

fn main() {
    let _ = blocking::retry(&Policy::DEFAULT, || Some(3));
}
