use stagger::{Policy, blocking};

fn main() {
    let load = || Err::<(), _>(std::fmt::Error);
    let _ = blocking::retry(&Policy::DEFAULT, load).when(|error: &std::io::Error| error.kind() == std::io::ErrorKind::TimedOut);
}
