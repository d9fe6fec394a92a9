use stagger::{Attempt, Policy};

fn main() {
    let _ = stagger::retry(&Policy::DEFAULT, async |attempt: Attempt| Err::<(), _>(attempt.number));
}
