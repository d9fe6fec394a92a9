//! The statements of the page about fleets.

use stagger::budget::Tokens;
use stagger::guard::{End, Guard as _, Permit};
use stagger::{FailureKind, Instant, Outcome};

/// Makes 1,000 calls of which every second one is throttled, and returns how many of these are retried, in vain.
fn second(tokens: &Tokens) -> u32 {
    let now = Instant::ZERO;
    let mut retried = 0;
    for call in 0..1_000 {
        if call % 2 == 0 {
            tokens.settle(Permit::NONE, End::Made(&Outcome::Success), &now);
        } else if let Some(permit) = tokens.reserve(FailureKind::Throttled, &now) {
            tokens.settle(permit, End::Made(&Outcome::throttled(None)), &now);
            retried += 1;
        }
    }
    retried
}

#[test]
fn a_budget_that_successes_refill_is_gone_in_a_second_of_throttling() {
    let tokens = Tokens::builder().capacity(500).reward(1).build().unwrap();
    for want in [199, 100, 100] {
        assert_eq!(second(&tokens), want);
    }
    assert_eq!(tokens.available(), Some(0));
}
