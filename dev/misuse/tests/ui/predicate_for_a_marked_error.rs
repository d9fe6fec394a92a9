use stagger::{Marked, Policy, blocking};

fn main() {
    let load = || Err::<(), _>(Marked::permanent("no such account"));
    let _ = blocking::retry(&Policy::DEFAULT, load).when(|error: &Marked<&str>| error.mark().is_none());
}
