//! Tests that recommended policies have no findings.

use stagger_core::profile;

use super::support::{codes, context, policy};

#[test]
fn our_profiles_have_no_findings_for_their_purpose() {
    for (profile, words) in [
        (profile::DEFAULT, ""),
        (profile::DEFAULT, "for=near"),
        (profile::DEFAULT, "for=far"),
        (profile::WEB_SOCKET, "for=reconnecting"),
        (profile::WEB_SOCKET, "for=reconnecting clients=5k capacity=500/s"),
        (profile::BACKGROUND_JOB, "for=background"),
        (profile::SERVERLESS, "for=serverless"),
        (profile::INTERACTIVE, "for=interactive"),
        (profile::INTERACTIVE, "for=interactive idempotent=yes deadline=1s layers=1 clients=1000 rps=100/s"),
    ] {
        let found = codes(&profile.policy(), &context(words));
        // Its base is chosen by more than the peak of the first wave.
        let is_own_trade_off = |code: &&str| profile.name() == "web-socket" && *code == "S024";
        assert!(found.iter().all(is_own_trade_off), "{}, {words}: {found:?}", profile.name());
    }
}

/// Checks the policies of the guide, "Choosing a strategy".
#[test]
fn the_policies_of_the_guide_have_no_findings() {
    for (text, words) in [
        ("exponential base=20ms cap=500ms max-attempts=2", "for=interactive"),
        ("exponential base=200ms cap=10s max-attempts=5 max-elapsed=30s", "for=far"),
        (
            "exponential base=15s cap=30s jitter=equal spread=10s max-attempts=inf max-hint=inf stable-after=10s",
            "for=reconnecting",
        ),
        ("exponential base=30s cap=2m jitter=50% max-attempts=10", "for=background"),
        ("constant base=1s", ""),
        ("linear base=500ms step=500ms cap=30s", ""),
    ] {
        assert_eq!(codes(&policy(text), &context(words)), [""; 0], "{text}, {words}");
    }
}
