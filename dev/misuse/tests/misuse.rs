//! Code that must not compile, and the messages of the compiler. Settled meaning 13, among others.

use core::time::Duration;

use stagger::{Policy, PolicyProblem};

#[test]
fn misuse_does_not_compile() {
    trybuild::TestCases::new().compile_fail("tests/ui/*.rs");
}

/// The policy of `tests/ui/senseless_policy.rs`, built at run time.
#[test]
fn meaning_13_the_compiler_reports_the_problems_of_a_policy() {
    let invalid = Policy::exponential(Duration::from_millis(100), Duration::from_millis(50));
    let error = invalid.multiplier(0.5).max_attempts(0).build().unwrap_err();
    let problems = [PolicyProblem::NoAttempt, PolicyProblem::CapBelowBase, PolicyProblem::Multiplier];
    assert_eq!(error.problems().collect::<Vec<_>>(), problems, "all problems at once");
    let compiler = include_str!("ui/senseless_policy.stderr");
    assert!(compiler.contains(&error.to_string()), "{error}\n\n{compiler}");
}
