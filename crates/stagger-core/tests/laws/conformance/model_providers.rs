//! The SDKs of the providers of language models, by their source.

use stagger_core::profile::{ANTHROPIC, OPENAI};
use stagger_core::{Outcome, ServerHint, StopReason};

use crate::laws::support::{Call, ms, secs};

#[test]
fn delays_are_three_quarters_to_all_of_a_ceiling_from_500_ms_to_8_s() {
    for policy in [OPENAI, ANTHROPIC].map(|profile| profile.policy()) {
        let bounds = |retry| policy.bounds(retry).unwrap();
        assert_eq!(
            [1, 2, 4, 5, 6].map(bounds),
            [(ms(375), ms(500)), (ms(750), secs(1)), (secs(3), secs(4)), (secs(6), secs(8)), (secs(6), secs(8)),]
        );
        assert_eq!(Call::new(&policy).failing().waits.len(), 2, "two retries");
    }
}

#[test]
fn a_hint_replaces_the_delay_and_only_openai_limits_it_to_two_minutes() {
    for (profile, hint, want) in
        [(OPENAI, secs(120), true), (OPENAI, ms(120_001), false), (ANTHROPIC, secs(3600), true)]
    {
        let trace = Call::new(&profile.policy()).run([Outcome::throttled(Some(ServerHint::AtLeast(hint)))]);
        let (waits, stop) = if want { (vec![hint], None) } else { (vec![], Some(StopReason::Hint)) };
        assert_eq!((trace.waits, trace.stop), (waits, stop), "{hint:?}");
    }
}
