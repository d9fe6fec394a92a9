use stagger::observe::EventError;
use stagger::{Error, Policy, Retrier};

fn load<E: EventError>(operation: impl FnMut() -> Result<(), E>) -> Result<(), Error<E>> {
    Retrier::new(Policy::DEFAULT).blocking(operation)
}

fn main() {
    let _ = load(|| Err("no"));
}
