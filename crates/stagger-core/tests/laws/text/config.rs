//! Policies in configuration files.

use std::collections::BTreeMap;

use proptest::prelude::*;
use stagger_core::schedule::Backoff;
use stagger_core::{Jitter, Policy, Ratio};

use crate::laws::support::{any_policy, cases};

fn toml(text: &str) -> Result<Policy, String> {
    toml::from_str::<BTreeMap<String, Policy>>(text)
        .map(|config| config["retry"])
        .map_err(|error| error.message().to_owned())
}

fn json(text: &str) -> Result<Policy, String> {
    serde_json::from_str(text).map_err(|error| error.to_string())
}

fn line(text: &str) -> Policy {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Rounds the multiplier to a few digits: without its feature `float_roundtrip`, serde_json reads a number of 17 digits
/// only to within one unit in the last place.
fn with_a_short_multiplier(policy: Policy) -> Policy {
    match policy.backoff() {
        Backoff::Exponential { multiplier, .. } if *multiplier > 1.0 => {
            let short = (multiplier.min(1e6) * 64.0).ceil() / 64.0;
            policy.to_builder().multiplier(short).build().unwrap_or(policy)
        }
        _ => policy,
    }
}

proptest! {
    #![proptest_config(cases(256))]

    #[test]
    fn policies_round_trip_through_toml_and_json(policy in any_policy()) {
        let text = toml::to_string(&BTreeMap::from([("retry", policy)])).unwrap();
        prop_assert_eq!(toml(&text), Ok(policy), "{}", text);
        prop_assert_eq!(json(&format!("\"{policy}\"")), Ok(policy));
        let policy = with_a_short_multiplier(policy);
        let text = serde_json::to_string(&policy).unwrap();
        prop_assert_eq!(json(&text), Ok(policy), "{}", text);
    }

    #[test]
    fn jitters_and_ratios_serialize_as_their_text(millionths in 0..=1_000_000_u32) {
        let share = Ratio::millionths(millionths);
        let text = serde_json::to_string(&share).unwrap();
        prop_assert_eq!(&text, &format!("\"{share}\""));
        prop_assert_eq!(serde_json::from_str::<Ratio>(&text).unwrap(), share);
        let jitter = Jitter::Factor(share);
        let text = serde_json::to_string(&jitter).unwrap();
        prop_assert_eq!(serde_json::from_str::<Jitter>(&text).unwrap(), jitter);
    }
}

#[test]
fn a_policy_serializes_as_a_table_in_kebab_case() {
    let policy = line("exponential base=500ms cap=30s jitter=±20% spread=30s max-attempts=8 max-elapsed=5m hint=exact");
    assert_eq!(
        serde_json::to_string(&policy).unwrap(),
        r#"{"backoff":"exponential","base":"500ms","cap":"30s","multiplier":2.0,"jitter":"±20%","spread":"30s","max-attempts":8,"max-elapsed":"5m","hint":"exact"}"#
    );
    assert_eq!(
        toml::to_string(&BTreeMap::from([("retry", line("list delays=1s,2s max-attempts=inf"))])).unwrap(),
        "[retry]\nbackoff = \"list\"\ndelays = \"1s,2s\"\njitter = \"equal\"\nmax-attempts = \"inf\"\n"
    );
}

#[test]
fn tables_accept_text_numbers_and_lists() {
    for (text, want) in [
        ("retry = \"exponential base=500ms cap=30s\"", "exponential base=500ms cap=30s"),
        ("retry = \"\"", ""),
        ("[retry]", ""),
        ("[retry]\nbackoff = \"exponential\"\nbase = \"500ms\"\ncap = \"30s\"", "exponential base=500ms cap=30s"),
        // A bare number is in seconds, as in the policy language.
        ("[retry]\nbase = 2\ncap = 30.5", "exponential base=2s cap=30.5s"),
        ("[retry]\nmultiplier = 3\njitter = 0.2", "exponential multiplier=3 jitter=±20%"),
        ("[retry]\nmultiplier = 1.5\nhint-spread = 0.25", "exponential multiplier=1.5 hint-spread=25%"),
        ("[retry]\nmax-attempts = 7", "exponential max-attempts=7"),
        ("[retry]\nbackoff = \"list\"\ndelays = [\"1s\", 2, 0.5]", "list delays=1s,2s,500ms"),
        ("[retry]\nbackoff = \"list\"\ndelays = \"1s,2s\"", "list delays=1s,2s"),
        // Aliases, and the backoff last.
        ("[retry]\ndelay = \"1s\"\nattempts = 3\nbackoff = \"constant\"", "constant base=1s max-attempts=3"),
    ] {
        assert_eq!(toml(text), Ok(line(want)), "{text}");
    }
    assert_eq!(json(r#"{"backoff":"zero","max-attempts":3}"#), Ok(line("zero max-attempts=3")));
    assert_eq!(json(r#"{"base":2,"cap":30.5}"#), Ok(line("exponential base=2s cap=30.5s")));
    assert_eq!(serde_json::from_str::<Ratio>("0.25").unwrap(), Ratio::percent(25));
    assert_eq!(serde_json::from_str::<Ratio>("1").unwrap(), Ratio::ONE);
    assert_eq!(serde_json::from_str::<Jitter>("\"full\"").unwrap(), Jitter::Full);
}

#[test]
fn a_uniform_policy_is_a_table_with_a_range() {
    let policy: Policy = "1s..1m30s max-attempts=2".parse().unwrap();
    assert_eq!(json(r#"{"backoff":"uniform","range":"1s..1m30s","max-attempts":2}"#).unwrap(), policy);
    assert_eq!(json(r#"{"backoff":"1s..90s","max-attempts":2}"#).unwrap(), policy);
    assert_eq!(
        serde_json::to_string(&policy).unwrap(),
        r#"{"backoff":"uniform","range":"1s..1m30s","max-attempts":2}"#
    );
}

#[test]
fn errors_of_tables_use_the_words_of_the_policy_language() {
    for (text, want) in [
        (r#"{"bse":"1s"}"#, "`bse` is not a setting; did you mean `base`?"),
        (r#"{"max_attempts":3}"#, "`max_attempts` is not a setting; did you mean `max-attempts`?"),
        (r#"{"backoff":"exponental"}"#, "`exponental` is not a backoff or a profile; did you mean `exponential`?"),
        (r#"{"base":-1}"#, "`-1` is negative"),
        (r#"{"base":true}"#, "invalid type: boolean `true`, expected a string, a number or a list of lengths of time"),
        (r#"{"base":null}"#, "expected a string, a number or a list of lengths of time"),
        (r#"{"base":"1s","delay":"1s"}"#, "`base` is set twice"),
        (r#"{"backoff":"zero","backoff":"stop"}"#, "`backoff` is set twice"),
        (r#"{"base":"100ms","cap":"50ms"}"#, "cap 50ms is below base 100ms: raise cap or lower base"),
        (
            r#"{"max-attempts":0,"base":"100ms","cap":"50ms"}"#,
            "use 1 for no retry, or more; cap 50ms is below base 100ms",
        ),
        (r#"{"max-attempts":1.5}"#, "`1.5` is not a whole number"),
        (r#"{"backoff":"list","delays":[]}"#, "`delays` has no value"),
        (r#"{"backoff":"list","delays":["","1s"]}"#, "`,1s` has a stray comma or an empty delay"),
        (r#"{"backoff":"list","delays":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}"#, "more than 16 delays"),
        (r#"{"backoff":"zero","base":1}"#, "`base` has no meaning for zero backoff"),
        ("7", "expected a policy, as a table or in one line like \"exponential base=500ms cap=30s\""),
        ("\"exponential base\"", "`base` has no value"),
    ] {
        let error = json(text).expect_err(text);
        assert!(error.contains(want), "{text}: {error}");
    }
    let long = format!(r#"{{"base":"{}"}}"#, "1".repeat(600));
    assert!(json(&long).unwrap_err().contains("longer than 512 bytes, which no setting needs; shorten it"));
    assert!(serde_json::from_str::<Ratio>("1.5").unwrap_err().to_string().contains("`1.5` is not a share"));
    assert!(serde_json::from_str::<Jitter>("\"wild\"").unwrap_err().to_string().contains("is not a jitter"));
}
