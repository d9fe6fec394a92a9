//! Settings without effect are found: all of them, and nothing else.

use core::time::Duration;

use stagger_core::{Jitter, Policy, PolicyBuilder, Seed};

use super::support::found;

/// A setting as it is told, and the policy with another value of it.
type Setting = (&'static str, fn(PolicyBuilder) -> PolicyBuilder);

/// A multiplier of 2 that was never touched is silent, so it is not among them.
const SETTINGS: [Setting; 4] = [
    ("cap", PolicyBuilder::uncapped),
    ("floor", |builder| builder.floor(Duration::ZERO)),
    ("multiplier", |builder| builder.multiplier(7.0)),
    ("jitter", |builder| builder.jitter(Jitter::None)),
];

/// Whether calls that never end draw the same delays from both.
fn draw_alike(one: PolicyBuilder, other: PolicyBuilder) -> bool {
    let endless = |builder: PolicyBuilder| builder.unlimited_attempts().unlimited_elapsed().build().ok();
    let (Some(one), Some(other)) = (endless(one), endless(other)) else { return false };
    (0..12).all(|seed| one.schedule(Seed::new(seed)).take(64).eq(other.schedule(Seed::new(seed)).take(64)))
}

/// Every combination of a few values, as far as it can be built.
fn combinations() -> Vec<String> {
    let mut all = vec![String::new()];
    for values in [
        &["exponential base=1s", "linear base=1s step=0s", "linear base=1s step=1s"][..],
        &["", "cap=1s", "cap=10s", "cap=none"],
        &["", "floor=300ms", "floor=1s", "floor=10s"],
        &["", "multiplier=1", "multiplier=3"],
        &["", "jitter=none", "jitter=equal", "jitter=decorrelated", "jitter=±0%", "jitter=±20%"],
    ] {
        all = all.iter().flat_map(|text| values.iter().map(move |value| format!("{text} {value}"))).collect();
    }
    all.retain(|text| text.parse::<Policy>().is_ok());
    all
}

#[test]
fn a_setting_is_called_effectless_exactly_where_calls_draw_the_same_without_it() {
    let mut effectless = 0;
    let combinations = combinations();
    for text in &combinations {
        let policy: Policy = text.parse().unwrap();
        let facts = found(text, "", "S018").map_or(String::new(), |finding| finding.facts().join("\n"));
        for (key, change) in SETTINGS {
            // What is none, or 1, says so itself.
            let told = |text: &str| text.contains(&format!("{key}="));
            if !told(text)
                || ["cap=none", "jitter=none", "multiplier=1"].iter().any(|none| told(none) && text.contains(none))
            {
                continue;
            }
            let idle = draw_alike(policy.to_builder(), change(policy.to_builder()));
            assert_eq!(facts.contains(&format!("{key}=")), idle, "{key} of {text}: {facts}");
            effectless += usize::from(idle);
        }
    }
    assert!(combinations.len() > 300 && effectless > 30, "{} combinations, {effectless}", combinations.len());
}
