//! Tests that what the rules suggest for a fleet makes nothing worse, in the simulator.

use core::time::Duration;

use stagger_core::Policy;

use super::promises::{SECOND, arrivals, reconnect};
use super::support::{codes, context, finding, found, policy};

/// A connection uses as many delays as a call: without a spread, its loss is the first failure.
#[test]
fn a_listed_delay_that_a_connection_uses_is_not_reported() {
    let text = "list delays=4s,12s,38s,2m jitter=full";
    for words in ["", "for=reconnecting"] {
        assert_eq!(found(&format!("{text} max-attempts=5"), words, "S018"), None);
        assert!(found(&format!("{text} max-attempts=4"), words, "S018").is_some());
    }
    let attempts = |most: u32| {
        let policy = policy(&format!("{text} max-attempts={most}"));
        reconnect(&policy, 1_000, 1_000.0, Duration::from_secs(3_000)).attempts
    };
    assert_eq!((attempts(5), attempts(4)), (4_000, 3_000));
}

#[test]
fn a_multiplier_that_only_a_larger_one_could_replace_has_an_effect() {
    let text = |multiplier: u32| format!("exponential base=800ms cap=3400ms multiplier={multiplier} max-attempts=inf");
    assert_ne!(policy(&text(2)).bounds(2), policy(&text(10)).bounds(2));
    assert_eq!(found(&text(10), "", "S018"), None);
}

/// A base that is itself the first wave of a fleet is not too long.
#[test]
fn a_base_that_spreads_a_fleet_is_not_shortened() {
    let text = "exponential base=24s cap=48s max-attempts=inf";
    let fleet = "clients=1200 capacity=50/s for=reconnecting";
    assert_eq!(codes(&policy(text), &context(fleet)), [""; 0]);
    let peak = |base: &str| {
        let policy = policy(&format!("exponential base={base} cap=48s max-attempts=inf"));
        reconnect(&policy, 1_200, 50.0, 60 * SECOND).peak_second()
    };
    // What S008 and S006 suggested before.
    assert!(peak("5s") > 2 * peak("24s") && peak("4.8s") > 2 * peak("24s"));
}

/// Retries without a limit need delays that the server can take.
#[test]
fn the_help_for_connections_that_give_up_does_not_let_them_knock() {
    let fleet = "clients=1200 capacity=50/s for=reconnecting";
    for text in [
        "exponential base=50ms cap=200ms spread=1s max-attempts=4",
        "list delays=50ms,100ms jitter=full max-attempts=3",
        "constant base=90ms jitter=equal max-attempts=4",
        "exponential base=500ms cap=10s max-attempts=1",
    ] {
        let helped = *finding(text, fleet, "S023").suggestion().policy().unwrap();
        let down = 60 * SECOND;
        let knocks = arrivals(&reconnect(&helped, 1_200, 50.0, down), 30 * SECOND, down) / 50.0;
        assert!(knocks < 2.5, "{text} -> {helped}: {knocks} times the capacity");
    }
}

/// Each of these was suggested, for a delay that is unusual, and made a fleet worse.
#[test]
fn a_note_does_not_suggest_what_makes_a_fleet_worse() {
    for (text, fleet, code) in [
        ("exponential base=1s cap=10m spread=20s max-attempts=inf", "clients=10k capacity=500/s", "S007"),
        ("exponential base=5s cap=20s spread=20s jitter=equal max-attempts=inf", "clients=10k capacity=500/s", "S006"),
    ] {
        let finding = finding(text, &format!("{fleet} for=reconnecting"), code);
        let advice = finding.suggestion().advice().unwrap();
        assert!(finding.suggestion().policy().is_none() && advice.contains("recovery worse"), "{finding:?}");
    }
}

/// Behind a spread of clients / capacity, the waves are as wide as the server needs.
#[test]
fn jitter_is_not_asked_for_behind_a_spread_that_suffices() {
    let text = |spread: u32| format!("exponential base=20s cap=60s jitter=none spread={spread}s max-attempts=inf");
    let fleet = "clients=2k capacity=100/s for=reconnecting";
    let attempts = |spread: u32| reconnect(&policy(&text(spread)), 2_000, 100.0, Duration::ZERO).attempts_per_client();
    for (spread, is_found) in [(20, false), (2, true)] {
        assert_eq!(found(&text(spread), fleet, "S001").is_some(), is_found, "{spread} s");
        assert_eq!(attempts(spread) > 1.5, is_found, "{spread} s: {}", attempts(spread));
    }
    assert!(found(&text(20), "for=reconnecting", "S001").is_some());
}

/// Full jitter halves the mean delay; twice the base and the cap keep it.
#[test]
fn the_help_against_missing_jitter_does_not_double_the_attempts_of_a_fleet() {
    let fleet = "clients=2k capacity=200/s for=reconnecting";
    for text in
        ["exponential base=1s cap=20s jitter=none max-attempts=inf", "constant base=10s jitter=none max-attempts=inf"]
    {
        let helped = *finding(text, fleet, "S001").suggestion().policy().unwrap();
        let attempts =
            |policy: &Policy| arrivals(&reconnect(policy, 2_000, 200.0, 300 * SECOND), 100 * SECOND, 290 * SECOND);
        assert!(attempts(&helped) < 1.2 * attempts(&policy(text)), "{text} -> {helped}");
        assert!(attempts(&policy(&text.replace("none", "full"))) > 1.5 * attempts(&policy(text)), "{text}");
    }
}

#[test]
fn a_suggestion_for_a_fleet_says_what_it_costs() {
    let fleet = "clients=10k capacity=500/s for=reconnecting";
    let text = "exponential base=500ms cap=5s jitter=none max-attempts=inf";
    let finding = finding(text, fleet, "S022");
    let advice = finding.suggestion().advice().unwrap();
    let helped = finding.suggestion().policy().unwrap();
    let peak = |policy: &Policy| reconnect(policy, 10_000, 500.0, 600 * SECOND).peak_second() as f64;
    let times = peak(helped) / peak(&policy(text));
    let (said, _) = advice.split_once(" times as high in an outage of 10m").unwrap_or_else(|| panic!("{advice}"));
    let said: f64 = said.rsplit(' ').next().unwrap().parse().unwrap();
    assert!((said / times - 1.0).abs() < 0.15, "{advice}: {times}");
}
