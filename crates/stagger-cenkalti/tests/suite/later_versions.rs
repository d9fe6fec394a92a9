//! Conformance rows of version 7 of the package. The module follows version 4, so the tests use the crate's own API.

use core::time::Duration;

use stagger::testing::VirtualClock;
use stagger::{Marked, Policy, StopReason, blocking, policy};

#[test]
fn ck_47_the_mark_is_removed_at_any_attempt_limit() {
    // In version 7, 0 means unlimited.
    let policies: [Policy; 3] =
        [policy!(zero().unlimited_attempts()), policy!(zero().max_attempts(1)), policy!(zero().max_attempts(2))];
    for policy in &policies {
        let fails = || Err::<(), _>(Marked::permanent("no such account"));
        assert_eq!(blocking::retry(policy, fails).with_marks().run(), Err("no such account"));
    }
}

#[test]
fn ck_49_a_hint_beyond_the_elapsed_limit_stops_the_call() {
    const HOUR: Duration = Duration::from_secs(3600);
    const POLICY: Policy =
        policy!(exponential(ms(500), secs(60)).unlimited_attempts().max_elapsed(mins(15)).unlimited_hint());
    let clock = VirtualClock::new();
    let fails = || Err::<(), _>(Marked::retry_after("busy", HOUR));
    let error = blocking::retry(&POLICY, fails).timer(clock.clone()).with_marks().detailed().run().unwrap_err();
    assert_eq!((error.stop_reason(), error.error(), clock.sleeps()), (StopReason::Elapsed, Some(&"busy"), vec![]));
}
