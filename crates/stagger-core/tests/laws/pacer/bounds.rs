use proptest::prelude::*;
use stagger_core::guard::{Answer, Ask, End, Permit};
use stagger_core::pacer::{Pacer, PacerState};
use stagger_core::{Guard, Instant, Outcome};

use crate::laws::support::{Step, cases, ms, secs, take};

fn step() -> impl Strategy<Value = Step> {
    let outcome = prop_oneof![
        4 => Just(Outcome::Success),
        4 => Just(Outcome::throttled(None)),
        1 => Just(Outcome::TRANSIENT),
        1 => Just(Outcome::Cancelled),
    ];
    prop_oneof![
        3 => (0..120_u64).prop_map(Step::Pass),
        1 => (0..40_000_u64).prop_map(Step::Pass),
        4 => Just(Step::Ask),
        3 => any::<usize>().prop_map(Step::AskAgain),
        1 => any::<usize>().prop_map(Step::Cancel),
        5 => (any::<usize>(), outcome).prop_map(|(n, outcome)| Step::Answer(n, outcome)),
    ]
}

proptest! {
    #![proptest_config(cases(400))]

    /// Whatever happens: the rate is within its bounds, the number of waiting calls is that of the places, a call that
    /// waits is told a time of at most half a second, and more calls than the rate allows do not start while it is
    /// unchanged.
    #[test]
    fn no_history_breaks_the_bounds(steps in prop::collection::vec(step(), 1..300)) {
        let pacer = Pacer::new().max_waiting(6);
        let mut now = Instant::from_nanos(9_000_000_000_000);
        let (mut waiting, mut flying) = (Vec::new(), Vec::new());
        let (mut started, mut since, mut interval) = (0_u128, now, ms(0));
        for step in steps {
            let asked = match step {
                Step::Pass(length) => {
                    now = now.saturating_add(ms(length));
                    None
                }
                Step::Ask => Some(Permit::NONE),
                Step::AskAgain(n) => take(&mut waiting, n),
                Step::Cancel(n) => {
                    if let Some(place) = take(&mut waiting, n) {
                        pacer.settle(place, End::NeverMade, &now);
                    }
                    None
                }
                Step::Answer(n, outcome) => {
                    if let Some(permit) = take(&mut flying, n) {
                        pacer.settle(permit, End::Made(&outcome), &now);
                    }
                    None
                }
            };
            let has_asked = asked.is_some();
            let turn = asked.map(|permit| pacer.ask(Ask::FIRST, permit, &now));
            let after = pacer.snapshot();
            let is_paced = matches!(after.state, PacerState::Paced | PacerState::Exhausted);
            prop_assert!(!is_paced || (ms(0) < after.interval && after.interval <= secs(1)), "{:?}", after);
            if after.interval != interval {
                (started, since, interval) = (0, now, after.interval);
            }
            match turn {
                Some(Answer::Go(permit)) => {
                    started += 1;
                    flying.push(permit);
                    if is_paced {
                        // Late timers catch up with 50 ms, and the first turn may be due.
                        let allowed = (now.saturating_since(since) + ms(50)).as_nanos() / interval.as_nanos() + 2;
                        prop_assert!(started <= allowed, "{} started, {} allowed", started, allowed);
                    }
                }
                Some(Answer::Wait { after: wait, permit }) => {
                    prop_assert!(is_paced && !wait.is_zero() && wait <= ms(500));
                    waiting.push(permit);
                }
                Some(Answer::No { .. }) => prop_assert!(waiting.len() == 6),
                None => prop_assert!(!has_asked),
            }
            prop_assert_eq!(pacer.snapshot().waiting as usize, waiting.len());
        }
    }

    /// However the server refuses, a call that waits starts within a second of its turn: the pacer never starves.
    #[test]
    fn a_call_that_waits_starts(refusals in prop::collection::vec(any::<bool>(), 50..200)) {
        let pacer = Pacer::new();
        let mut now = Instant::from_nanos(9_000_000_000_000);
        for refused in refusals {
            let began = now;
            let mut permit = Permit::NONE;
            let admitted = loop {
                match pacer.ask(Ask::FIRST, permit, &now) {
                    Answer::Go(permit) => break permit,
                    Answer::Wait { after, permit: place } => {
                        permit = place;
                        now = now.saturating_add(after);
                    }
                    Answer::No { .. } => unreachable!("one call is not too many"),
                }
            };
            prop_assert!(now.saturating_since(began) <= secs(1) + ms(1));
            let outcome = if refused { Outcome::throttled(None) } else { Outcome::Success };
            now = now.saturating_add(ms(7));
            pacer.settle(admitted, End::Made(&outcome), &now);
        }
    }
}
