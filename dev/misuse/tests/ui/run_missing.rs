#![deny(unused_must_use)]

use stagger::{Policy, blocking};

fn main() {
    blocking::retry(&Policy::DEFAULT, || Err::<(), _>("no"));
}
