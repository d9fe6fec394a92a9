use proptest::prelude::*;
use stagger_core::guard::{Limiter, LimiterPermit, Turn};
use stagger_core::quiet::{QuietPeriod, QuietState};
use stagger_core::{Instant, Outcome, ServerHint};

use crate::laws::support::held_calls::{Step, take};
use crate::laws::support::{cases, ms};

fn step() -> impl Strategy<Value = Step> {
    let outcome = prop_oneof![
        6 => Just(Outcome::Success),
        2 => Just(Outcome::throttled(None)),
        1 => (0..3_000_u64).prop_map(|hint| Outcome::throttled(Some(ServerHint::AtLeast(ms(hint))))),
        1 => Just(Outcome::TRANSIENT),
        1 => Just(Outcome::Cancelled),
    ];
    prop_oneof![
        3 => (0..400_u64).prop_map(Step::Pass),
        3 => Just(Step::Ask),
        3 => any::<usize>().prop_map(Step::AskAgain),
        1 => any::<usize>().prop_map(Step::Cancel),
        4 => (any::<usize>(), outcome).prop_map(|(n, outcome)| Step::Answer(n, outcome)),
    ]
}

proptest! {
    #![proptest_config(cases(400))]

    /// Whatever happens: no call starts before the end of a pause, at most one probe is in flight within its time, the
    /// number of waiting calls is that of the places, and a call that waits is told a time after which it may ask.
    #[test]
    fn no_history_starts_a_call_in_a_pause(steps in prop::collection::vec(step(), 1..200)) {
        let quiet = QuietPeriod::builder().max_waiting(6).max(ms(2_500)).build().unwrap();
        let mut now = Instant::from_nanos(9_000_000_000);
        let (mut waiting, mut flying) = (Vec::new(), Vec::new());
        for step in steps {
            let before = quiet.snapshot(&now);
            let asked = match step {
                Step::Pass(length) => {
                    now = now.saturating_add(ms(length));
                    None
                }
                Step::Ask => Some(LimiterPermit::NONE),
                Step::AskAgain(n) => take(&mut waiting, n),
                Step::Cancel(n) => {
                    if let Some(place) = take(&mut waiting, n) {
                        quiet.release(place);
                    }
                    None
                }
                Step::Answer(n, outcome) => {
                    if let Some(permit) = take(&mut flying, n) {
                        quiet.record(permit, &outcome, &now);
                        let after = quiet.snapshot(&now);
                        prop_assert!(before.state != QuietState::Quiet || after.state == QuietState::Quiet);
                        prop_assert!(after.remaining >= before.remaining);
                        prop_assert!(after.remaining <= ms(32_001));
                    }
                    None
                }
            };
            match asked.map(|permit| quiet.admit(permit, None, &now)) {
                Some(Turn::Now(permit)) => {
                    prop_assert!(before.remaining.is_zero(), "started {:?} before the end", before.remaining);
                    let after = quiet.snapshot(&now).state;
                    prop_assert!(before.state != QuietState::Quiet || after == QuietState::Probing);
                    flying.push(permit);
                }
                Some(Turn::Wait { after, permit }) => {
                    prop_assert!(before.state != QuietState::Open && !after.is_zero());
                    prop_assert!(after >= before.remaining);
                    waiting.push(permit);
                }
                Some(Turn::Rejected { .. }) => prop_assert!(waiting.len() == 6),
                None => {}
            }
            prop_assert_eq!(quiet.snapshot(&now).waiting as usize, waiting.len());
        }
    }
}
