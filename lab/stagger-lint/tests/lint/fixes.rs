//! Tests of suggestions and fixes.

use core::time::Duration;

use proptest::prelude::*;
use stagger_core::{Jitter, Policy, Ratio, profile::Profile};
use stagger_lint::{DeploymentContext, check, fix};

use super::support::{any_context_from, codes, context, finding, policy};

/// Generates policies of every kind, most of them with findings.
fn any_policy() -> impl Strategy<Value = Policy> {
    let millis = |most: u64| (0..most).prop_map(Duration::from_millis);
    let shape = (0_u8..7, 0_usize..60, millis(5_000), millis(200_000), prop::sample::select(vec![1.0, 1.5, 2.0, 4.0]));
    let jitter = prop::option::of(prop::sample::select(vec![
        Jitter::None,
        Jitter::Full,
        Jitter::Equal,
        Jitter::Decorrelated,
        Jitter::Factor(Ratio::percent(20)),
        Jitter::Factor(Ratio::ZERO),
    ]));
    let limits = (prop::option::of(1_u32..12), prop::option::of(millis(60_000)), prop::option::of(millis(20_000)));
    let rest = (millis(40_000), millis(3_000), 0_u8..4);
    (shape, jitter, limits, rest).prop_filter_map("it cannot be built", |(shape, jitter, limits, rest)| {
        let (kind, profile, base, cap, multiplier) = shape;
        let second = Duration::from_secs(1);
        let mut builder = match kind {
            0 => Policy::exponential(base, cap).multiplier(multiplier),
            1 => Policy::exponential(base, cap).multiplier(multiplier).uncapped(),
            2 => Policy::linear(base, base / 2, cap),
            3 => Policy::constant(base),
            4 => Policy::list(&[base, Duration::ZERO, second, cap]),
            5 => Policy::zero(),
            _ => Profile::all().nth(profile % Profile::all().count())?.policy().to_builder(),
        };
        if let Some(jitter) = jitter {
            builder = builder.jitter(jitter);
        }
        let (attempts, elapsed, stable) = limits;
        let (spread, floor, odd) = rest;
        builder = match attempts {
            Some(attempts) => builder.max_attempts(attempts),
            None => builder.unlimited_attempts(),
        };
        if let Some(limit) = elapsed {
            builder = builder.max_elapsed(limit);
        }
        if let Some(lived) = stable {
            builder = builder.stable_after(lived);
        }
        match odd {
            0 => builder = builder.spread(spread),
            1 => builder = builder.floor(floor),
            2 => builder = builder.throttled_base(base.saturating_add(floor)).max_hint(floor),
            _ => {}
        }
        builder.build().ok()
    })
}

fn any_context() -> impl Strategy<Value = DeploymentContext> {
    prop::array::uniform11(prop::option::weighted(0.3, 1_u32..100_000)).prop_map(any_context_from)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_rule_does_not_apply_after_its_suggestion(policy in any_policy(), context in any_context()) {
        for finding in check(&policy, &context) {
            let Some(helped) = finding.suggestion().policy() else { continue };
            let rule = finding.rule().code();
            prop_assert!(!codes(helped, &context).contains(&rule), "{rule} on {policy} → {helped}");
        }
    }

    #[test]
    fn suggested_settings_can_be_pasted(policy in any_policy(), context in any_context()) {
        for finding in check(&policy, &context) {
            let suggestion = finding.suggestion();
            let (Some(settings), Some(helped)) = (suggestion.settings(), suggestion.policy()) else { continue };
            let pasted = if settings.split(' ').all(|word| word.contains('=')) {
                let set = |builder: stagger_core::PolicyBuilder, word: &str| {
                    let (key, value) = word.split_once('=').unwrap();
                    builder.set(key, value).unwrap()
                };
                settings.split(' ').fold(policy.to_builder(), set).build().unwrap()
            } else {
                settings.parse().unwrap()
            };
            prop_assert_eq!(&pasted, helped, "{} on {}", settings, policy);
        }
    }

    /// With a known capacity, what a fix may cost is measured from the policy that it begins with, so that a second
    /// fix may go on; but it leaves no more findings.
    #[test]
    fn a_fixed_policy_cannot_be_fixed_further(policy in any_policy(), context in any_context()) {
        let once = fix(&policy, &context, &[]);
        let twice = fix(&once, &context, &[]);
        let is_measured = context.given().any(|fact| fact == "capacity");
        prop_assert!(twice == once || is_measured, "{} is not {}", twice, once);
        prop_assert!(codes(&twice, &context).len() <= codes(&once, &context).len());
    }

    #[test]
    fn every_finding_has_facts_and_a_suggestion(policy in any_policy(), context in any_context()) {
        for finding in check(&policy, &context) {
            prop_assert!(!finding.facts().is_empty() && finding.facts().iter().all(|fact| !fact.is_empty()));
            prop_assert!(!finding.suggestion().to_string().is_empty(), "{:?} on {}", finding.rule(), policy);
        }
    }
}

#[test]
fn a_fleet_of_socket_io_clients_is_fixed() {
    let fleet = context("for=reconnecting clients=10k capacity=500/s");
    let fixed = fix(&policy("socket.io"), &fleet, &[]);
    assert_eq!(codes(&fixed, &fleet), [""; 0]);
    assert_eq!(fixed.spread(), Duration::from_secs(20));
    assert_eq!(fixed.jitter(), Jitter::Full);
}

#[test]
fn findings_of_allowed_rules_are_not_fixed() {
    let fleet = context("for=reconnecting");
    let rule = stagger_lint::Rule::find("S006").unwrap();
    assert_eq!(fix(&policy("socket.io"), &fleet, &[]).cap(), Some(Duration::from_secs(10)));
    assert_eq!(fix(&policy("socket.io"), &fleet, &[rule]).cap(), Some(Duration::from_secs(5)));
}

/// Tests the case that the suggestion would fix another finding, too.
#[test]
fn suggestions_of_allowed_rules_are_not_applied() {
    let (fleet, text) = (context("for=reconnecting"), "list delays=0s,10s,20s jitter=none max-attempts=inf");
    let rule = stagger_lint::Rule::find("no-jitter").unwrap();
    assert_eq!(fix(&policy(text), &fleet, &[]).jitter(), Jitter::Full);
    let kept = fix(&policy(text), &fleet, &[rule]);
    assert_eq!((kept.jitter(), kept.spread()), (Jitter::None, Duration::from_secs(10)));
}

#[test]
fn operations_that_are_not_idempotent_are_fixed_to_one_attempt() {
    let once = context("deadline=5s idempotent=no timeout=2s");
    for text in ["default", "curl", "default max-elapsed=1m", "constant base=1s max-elapsed=3s"] {
        let fixed = fix(&policy(text), &once, &[]);
        assert_eq!((fixed.allows_retries(), codes(&fixed, &once)), (false, vec![]), "{text}: {fixed}");
    }
}

/// Tests the settings in simple cases; findings that the policy cannot fix have advice only.
#[test]
fn suggestions_have_settings_if_the_policy_causes_the_finding() {
    for (text, words, code, want) in [
        ("exponential jitter=none", "", "S001", "jitter=full"),
        ("socket.io", "", "S002", "jitter=full"),
        ("signalr", "for=reconnecting", "S003", "spread=10s"),
        ("zero", "", "S003", "exponential base=100ms cap=30s multiplier=2 jitter=full max-attempts=4"),
        (
            "zero max-attempts=inf max-elapsed=9s hint=exact",
            "",
            "S003",
            "exponential base=100ms cap=30s multiplier=2 jitter=full max-attempts=inf max-elapsed=9s hint=exact",
        ),
        ("list delays=0s,1s,90s", "", "S003", "delays=1s,1m30s"),
        ("list delays=0s,1s,90s", "", "S007", "delays=0s,1s,1m"),
        ("list delays=0s,1us,1s", "", "S009", "delays=0s,10ms,1s"),
        ("list delays=1s,2s,5s max-attempts=3", "", "S018", "delays=1s,2s"),
        ("stop max-attempts=8", "", "S018", "stop"),
        ("exponential base=1s cap=30s", "clients=10k capacity=500/s", "S004", "spread=20s base=20s cap=40s"),
        ("exponential cap=none", "", "S005", "cap=30s"),
        ("exponential base=1s cap=5s max-attempts=9", "", "S006", "cap=10s"),
        ("exponential base=1s cap=10m max-attempts=9", "", "S007", "cap=1m"),
        ("exponential base=5ms cap=1s", "", "S008", "base=10ms"),
        ("exponential base=20ms cap=500ms", "tick=16ms", "S009", "base=160ms cap=1.6s"),
        ("constant base=1s jitter=±0.01%", "", "S009", "jitter=full"),
        ("exponential max-attempts=9", "for=interactive", "S010", "max-attempts=3"),
        ("background-job max-attempts=inf", "for=background", "S011", "max-attempts=10"),
        ("exponential base=1s cap=30s", "deadline=6s", "S012", "max-elapsed=6s"),
        ("exponential", "timeout=10s deadline=30s", "S013", "max-attempts=3"),
        ("exponential max-hint=5s", "hint=10s", "S014", "max-hint=20s"),
        ("centrifuge", "for=reconnecting", "S015", "stable-after=10s"),
        ("pusher", "for=reconnecting", "S018", "stable-after=none"),
        ("default", "idempotent=no", "S019", "max-attempts=1"),
        ("grpc-a6", "", "S020", "hint=at-least"),
    ] {
        assert_eq!(finding(text, words, code).suggestion().settings().as_deref(), Some(want), "{code}, {text}");
    }
}

#[test]
fn settings_that_suffice_have_no_advice() {
    let finding = finding("exponential jitter=none", "", "S001");
    let help = finding.suggestion();
    assert_eq!((help.to_string().as_str(), help.advice()), ("jitter=full", None));
}
