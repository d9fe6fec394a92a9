use stagger::{Policy, Retrier};

fn main() {
    let _ = Retrier::new(Policy::DEFAULT).when(|error: &String| error == "busy");
}
