//! Tests that S018 reports all settings without effect, and no others.

use core::time::Duration;

use stagger_core::{Jitter, Policy, PolicyBuilder, Seed};

use super::support::found;

/// A setting as it is reported, and a change of its value.
type Setting = (&'static str, fn(PolicyBuilder) -> PolicyBuilder);

/// Without the default multiplier of 2, which is never reported.
const SETTINGS: [Setting; 4] = [
    ("cap", PolicyBuilder::uncapped),
    ("floor", |builder| builder.floor(Duration::ZERO)),
    ("multiplier", |builder| builder.multiplier(7.0)),
    ("jitter", |builder| builder.jitter(Jitter::None)),
];

/// Returns whether calls without a limit draw the same delays from both.
fn draw_alike(one: PolicyBuilder, other: PolicyBuilder) -> bool {
    let endless = |builder: PolicyBuilder| builder.unlimited_attempts().unlimited_elapsed().build().ok();
    let (Some(one), Some(other)) = (endless(one), endless(other)) else { return false };
    (0..12).all(|seed| one.schedule(Seed::new(seed)).take(64).eq(other.schedule(Seed::new(seed)).take(64)))
}

/// Returns all valid combinations of a few values.
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
fn a_setting_is_reported_exactly_if_calls_draw_the_same_delays_without_it() {
    let mut unused = 0;
    let combinations = combinations();
    for text in &combinations {
        let policy: Policy = text.parse().unwrap();
        let facts = found(text, "", "S018").map_or(String::new(), |finding| finding.facts().join("\n"));
        for (key, change) in SETTINGS {
            // Explicit `none` and 1 are not reported.
            let set = |text: &str| text.contains(&format!("{key}="));
            if !set(text)
                || ["cap=none", "jitter=none", "multiplier=1"].iter().any(|none| set(none) && text.contains(none))
            {
                continue;
            }
            let idle = draw_alike(policy.to_builder(), change(policy.to_builder()));
            assert_eq!(facts.contains(&format!("{key}=")), idle, "{key} of {text}: {facts}");
            unused += usize::from(idle);
        }
    }
    assert!(combinations.len() > 300 && unused > 30, "{} combinations, {unused}", combinations.len());
}
