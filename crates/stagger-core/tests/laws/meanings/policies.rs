//! Meaning 13: contradictory settings are rejected when the policy is built.

use core::time::Duration;

use proptest::prelude::*;
use stagger_core::profile::Profile;
use stagger_core::schedule::Backoff;
use stagger_core::{Jitter, Outcome, Policy, PolicyProblem, Seed, policy};

use crate::laws::support::{Call, any_settings, cases, ms, secs};

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn meaning_13_a_policy_that_builds_is_consistent(builder in any_settings()) {
        let Ok(policy) = builder.build() else { return Ok(()) };
        let (base, cap) = (policy.base(), policy.cap().unwrap_or(Duration::MAX));
        prop_assert!(policy.max_attempts().is_none_or(|most| most.get() >= 1));
        prop_assert!(base <= cap && policy.floor() <= cap);
        let limit = policy.max_elapsed().unwrap_or(Duration::MAX);
        prop_assert!(policy.spread() <= limit && (policy.floor() <= limit || !policy.allows_retries()));
        if let Backoff::Exponential { multiplier, .. } = policy.backoff() {
            prop_assert!(multiplier.is_finite() && *multiplier >= 1.0);
        }
        if let Jitter::Factor(share) = policy.jitter() {
            prop_assert!(!share.is_above_one());
        }
        prop_assert!(!policy.hint_spread().is_above_one());
        prop_assert!(base <= policy.throttled_base() && base <= policy.local_base());
        if let Backoff::Uniform { min, max } = *policy.backoff() {
            prop_assert!(min <= max && max == base);
            // Ceilings are floating-point numbers, so the longest lengths lose a few nanoseconds.
            let (lo, hi) = policy.bounds(9).unwrap_or_default();
            prop_assert!(lo == min && hi <= max && max - hi <= max / (1 << 30));
        }
        let can_jitter = !matches!(policy.backoff(), Backoff::Zero | Backoff::Stop);
        prop_assert!(can_jitter || policy.jitter() == Jitter::None);
        // The schedule respects the floor and does not panic.
        for delay in policy.delays(Seed::new(7)).take(20) {
            prop_assert!(delay >= policy.floor().min(Duration::from_nanos(i64::MAX as u64)));
        }
        let is_empty = policy.delays(Seed::new(7)).next().is_none();
        prop_assert_eq!(is_empty, !policy.allows_retries() || *policy.backoff() == Backoff::Stop);
        prop_assert_eq!(policy.to_builder().build(), Ok(policy));
    }

    #[test]
    fn meaning_13_every_problem_is_reported_with_its_fix(builder in any_settings()) {
        let Err(error) = builder.build() else { return Ok(()) };
        let text = error.to_string();
        let problems: Vec<_> = error.problems().collect();
        prop_assert!(!problems.is_empty());
        // Each sentence says what is wrong and, after its colon, how to fix it.
        let sentences: Vec<_> = text.split("; ").collect();
        prop_assert_eq!(sentences.len(), problems.len(), "{}", text);
        prop_assert!(sentences.iter().all(|sentence| sentence.contains(": ")), "{}", text);
    }
}

#[test]
fn a_uniform_policy_draws_from_its_range_alone() {
    const POLICY: Policy = policy!(uniform(ms(200), secs(1)).throttled_base(secs(3)).unlimited_attempts());
    for n in [1, 2, 99] {
        assert_eq!(POLICY.bounds(n), Some((ms(200), secs(1))));
        assert_eq!(POLICY.mean(n), Some(ms(600)));
    }
    assert_eq!(POLICY.elapsed_bounds(3), Some((ms(600), secs(3))));
    assert_eq!((POLICY.base(), POLICY.cap(), POLICY.floor()), (secs(1), None, Duration::ZERO));
    let waits = |outcome: Outcome| (0..300).map(move |seed| Call::new(&POLICY).seed(seed).run([outcome]).waits[0]);
    let throttled: Vec<_> = waits(Outcome::throttled(None)).collect();
    assert!(
        throttled.iter().all(|wait| (ms(200)..=secs(3)).contains(wait)) && throttled.iter().any(|&wait| wait > secs(2))
    );
    assert!(waits(Outcome::TRANSIENT).all(|wait| (ms(200)..=secs(1)).contains(&wait)));
    let varied = POLICY.to_builder().range(ms(5), ms(5)).build().unwrap();
    assert!(varied.schedule(Seed::new(3)).take(5).all(|delay| delay == ms(5)));
    assert_eq!(POLICY.to_string(), "uniform range=200ms..1s max-attempts=inf throttled-base=3s");
}

#[test]
fn meaning_13_policy_macro_builds_a_constant() {
    const POLICY: Policy = policy!(
        exponential(ms(100), secs(10))
            .jitter(Jitter::Equal)
            .max_attempts(7)
            .max_elapsed(mins(2))
            .hint_mode(HintMode::Exact)
    );
    assert_eq!(
        POLICY.to_string(),
        "exponential base=100ms cap=10s multiplier=2 jitter=equal max-attempts=7 max-elapsed=2m hint=exact"
    );
    const LIST: Policy = policy!(list(&[ms(1), secs(2)]));
    assert_eq!(LIST.to_string(), "list delays=1ms,2s jitter=equal max-attempts=4");
}

#[test]
fn meaning_13_all_problems_are_reported_in_a_fixed_order() {
    let error = Policy::exponential(secs(1), ms(50))
        .multiplier(f64::NAN)
        .max_attempts(0)
        .spread(secs(60))
        .max_elapsed(secs(10))
        .build()
        .unwrap_err();
    assert!(error.problems().eq([
        PolicyProblem::NoAttempt,
        PolicyProblem::CapBelowBase,
        PolicyProblem::Multiplier,
        PolicyProblem::SpreadAboveElapsed
    ]));
    assert_eq!(
        error.to_string(),
        "max-attempts is 0, but the first call counts: use 1 for no retry, or more; \
         cap 50ms is below base 1s: raise cap or lower base; \
         multiplier NaN is not a finite number of at least 1: use 2, or 1 for no growth; \
         spread 1m is longer than max-elapsed 10s: shorten spread or raise max-elapsed"
    );
}

#[test]
fn a_floor_between_two_steps_of_a_profile_is_a_minimum() {
    let floor = Duration::from_micros(4_500_500);
    for profile in Profile::all().filter(|profile| profile.policy().allows_retries()) {
        let Ok(policy) = profile.policy().to_builder().floor(floor).build() else { continue };
        let least = (0..2_000).flat_map(|seed| policy.delays(Seed::new(seed)).take(3)).min();
        assert!(least.is_none_or(|least| least >= floor), "{}: {least:?}", profile.name());
    }
}
