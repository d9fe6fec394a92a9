//! What begins a pause.

use stagger_core::guard::{End, Permit};
use stagger_core::quiet::{QuietPeriod, QuietState, QuietTrigger};
use stagger_core::{Guard, Instant, Outcome, ServerHint};

use crate::laws::support::{Start, secs};

const START: Instant = Instant::from_nanos(7_000_000_000_000);
const REFUSED: Outcome = Outcome::throttled(None);

#[test]
fn with_hints_alone_as_trigger_refusals_lengthen_a_pause_but_begin_none() {
    let quiet = QuietPeriod::builder().trigger(QuietTrigger::Hints).build().unwrap();
    for _ in 0..1_000 {
        quiet.settle(quiet.start(&START), End::Made(&REFUSED), &START);
    }
    assert_eq!(quiet.snapshot(&START).state, QuietState::Open);
    assert!(quiet.is_at_rest(&START));
    quiet.settle(Permit::NONE, End::Made(&Outcome::throttled(Some(ServerHint::AtLeast(secs(2))))), &START);
    let end = START.saturating_add(secs(2));
    let probe = quiet.start(&end);
    quiet.settle(probe, End::Made(&REFUSED), &end);
    let seen = quiet.snapshot(&end);
    assert_eq!((seen.state, seen.remaining), (QuietState::Quiet, secs(4)));
}
