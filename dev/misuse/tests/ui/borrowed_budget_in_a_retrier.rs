use stagger::budget::Tokens;
use stagger::{Policy, Retrier};

fn main() {
    let budget = Tokens::new();
    let _ = Retrier::new(Policy::DEFAULT).budget(&budget);
}
