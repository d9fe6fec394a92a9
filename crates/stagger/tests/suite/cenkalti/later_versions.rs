//! Rows of the package's version 7. The module is version 4; what they ask for is in the crate's own calls.

use core::time::Duration;

use stagger::testing::VirtualClock;
use stagger::{Marked, Policy, StopReason, blocking, policy};

#[test]
fn ck_47_a_permanent_error_comes_back_without_its_mark_whatever_the_limit_of_attempts() {
    // There 0 is no limit at all.
    let policies: [Policy; 3] =
        [policy!(zero().unlimited_attempts()), policy!(zero().max_attempts(1)), policy!(zero().max_attempts(2))];
    for policy in &policies {
        let fails = || Err::<(), _>(Marked::permanent("no such account"));
        assert_eq!(blocking::retry(policy, fails).with_marks().run(), Err("no such account"));
    }
}

#[test]
fn ck_49_an_hour_that_the_server_asks_for_does_not_fit_into_a_quarter() {
    const HOUR: Duration = Duration::from_secs(3600);
    const POLICY: Policy =
        policy!(exponential(ms(500), secs(60)).unlimited_attempts().max_elapsed(mins(15)).unlimited_hint());
    let clock = VirtualClock::new();
    let fails = || Err::<(), _>(Marked::retry_after("busy", HOUR));
    let error = blocking::retry(&POLICY, fails).timer(clock.clone()).with_marks().detailed().run().unwrap_err();
    assert_eq!((error.stop_reason(), error.error(), clock.sleeps()), (StopReason::Elapsed, Some(&"busy"), vec![]));
}
