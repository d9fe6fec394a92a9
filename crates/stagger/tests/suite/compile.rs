//! What must not compile, and what the compiler then says. Settled meaning 13, among others.

use core::time::Duration;

use stagger::{Policy, PolicyProblem};

#[test]
fn what_makes_no_sense_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}

/// `tests/ui/senseless_policy.rs`, built at run time.
#[test]
fn meaning_13_the_compiler_says_of_a_senseless_policy_what_its_error_says() {
    let senseless = Policy::exponential(Duration::from_millis(100), Duration::from_millis(50));
    let error = senseless.multiplier(0.5).max_attempts(0).build().unwrap_err();
    let faults = [PolicyProblem::NoAttempt, PolicyProblem::CapBelowBase, PolicyProblem::Multiplier];
    assert_eq!(error.problems().collect::<Vec<_>>(), faults, "every fault at once");
    let compiler = include_str!("../ui/senseless_policy.stderr");
    assert!(compiler.contains(&error.to_string()), "{error}\n\n{compiler}");
}
