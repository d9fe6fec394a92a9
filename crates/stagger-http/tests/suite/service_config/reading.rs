use core::time::Duration;

use stagger::hedge::Hedge;
use stagger::profile::GRPC_A6;
use stagger_http::grpc::Codes;
use stagger_http::service_config::{Attempts, MethodConfig, MethodName, Retries, ServiceConfig};

use super::{ms, read};

/// A config of one method with this policy in it.
fn with_policy(policy: &str) -> String {
    format!(r#"{{"methodConfig": [{{"name": [{{"service": "shop.Stock"}}], {policy}}}]}}"#)
}

fn retry_policy(changes: &[(&str, &str)]) -> String {
    let mut fields = vec![
        ("maxAttempts", "4"),
        ("initialBackoff", "\"0.1s\""),
        ("maxBackoff", "\"1s\""),
        ("backoffMultiplier", "2"),
        ("retryableStatusCodes", "[\"UNAVAILABLE\"]"),
    ];
    for (name, value) in changes {
        fields.retain(|(known, _)| known != name);
        if !value.is_empty() {
            fields.push((name, value));
        }
    }
    let fields: Vec<_> = fields.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
    with_policy(&format!("\"retryPolicy\": {{{}}}", fields.join(", ")))
}

#[track_caller]
fn retries(json: &str) -> Retries {
    match read(json).methods()[0].attempts() {
        Attempts::Retried(retries) => retries,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn faults(json: &str) -> Vec<String> {
    json.parse::<ServiceConfig>().expect_err(json).faults().map(str::to_owned).collect()
}

#[test]
fn gr_01_the_proposals_example_is_the_profile() {
    let retries = retries(&retry_policy(&[]));
    assert_eq!(*retries.policy(), GRPC_A6.policy());
    assert_eq!(retries.codes(), Codes::UNAVAILABLE);
}

#[test]
fn gr_13_a_hedging_policy_is_a_hedge() {
    let json = with_policy(
        r#""hedgingPolicy": {"maxAttempts": 4, "hedgingDelay": "0.5s", "nonFatalStatusCodes": ["UNAVAILABLE", 10]}"#,
    );
    let Attempts::Hedged(hedging) = read(&json).methods()[0].attempts() else { panic!("{json}") };
    assert_eq!(hedging.hedge(), Hedge::after(ms(500)).with_max_copies(3));
    assert_eq!(hedging.non_fatal(), Codes::of(&[10, 14]));

    let json = with_policy(r#""hedgingPolicy": {"maxAttempts": 2}"#);
    let Attempts::Hedged(hedging) = read(&json).methods()[0].attempts() else { panic!("{json}") };
    assert_eq!(
        (hedging.delay(), hedging.non_fatal()),
        (Duration::ZERO, Codes::NONE),
        "all at once, and every code is final"
    );
}

#[test]
fn gr_15_more_than_five_attempts_are_five() {
    for (attempts, want) in [("2", 2), ("5", 5), ("9", 5), ("5000000000", 5)] {
        assert_eq!(retries(&retry_policy(&[("maxAttempts", attempts)])).max_attempts().get(), want);
        let json = with_policy(&format!("\"hedgingPolicy\": {{\"maxAttempts\": {attempts}}}"));
        let Attempts::Hedged(hedging) = read(&json).methods()[0].attempts() else { panic!("{json}") };
        assert_eq!((hedging.max_attempts().get(), hedging.hedge().max_copies()), (want, want - 1));
    }
}

#[test]
fn gr_17_a_multiplier_that_is_nothing_or_less_is_refused() {
    for (multiplier, want) in [
        ("0", "must be a number above 0, and 1 or more here: use 2"),
        ("-1", "must be a number above 0, and 1 or more here: use 2"),
        ("\"2\"", "must be a number above 0, and 1 or more here: use 2"),
        ("0.5", "is below 1, so the delays would shrink, which no policy here can do: use 1 or more"),
    ] {
        let path = "methodConfig[0].retryPolicy.backoffMultiplier";
        assert_eq!(faults(&retry_policy(&[("backoffMultiplier", multiplier)])), [format!("{path} {want}")]);
    }
    assert_eq!(retries(&retry_policy(&[("backoffMultiplier", "1.6")])).backoff_multiplier().to_string(), "1.6");
}

#[test]
fn gr_19_throttling_out_of_range_is_refused() {
    for (tokens, ratio, want) in [
        ("-2", "0.1", "retryThrottling.maxTokens must be a whole number from 1 to 1000"),
        ("0", "0.1", "retryThrottling.maxTokens must be a whole number from 1 to 1000"),
        ("1001", "0.1", "retryThrottling.maxTokens must be a whole number from 1 to 1000"),
        ("10", "-1", "retryThrottling.tokenRatio must be a number from 0.001 to 1000, of which three decimals count"),
        ("10", "0", "retryThrottling.tokenRatio must be a number from 0.001 to 1000, of which three decimals count"),
        (
            "10",
            "0.0009",
            "retryThrottling.tokenRatio must be a number from 0.001 to 1000, of which three decimals count",
        ),
    ] {
        let json = format!(r#"{{"retryThrottling": {{"maxTokens": {tokens}, "tokenRatio": {ratio}}}}}"#);
        assert_eq!(faults(&json), [want], "{json}");
    }
}

#[test]
fn gr_21_an_allowance_is_kept_in_thousandths() {
    for (tokens, ratio, want) in [
        ("2", "1.0", (2_000, 1_000)),
        ("10", "0.1", (10_000, 100)),
        ("1000", "0.0019", (1_000_000, 1)),
        ("1", "0.29", (1_000, 290)),
    ] {
        let json = format!(r#"{{"retryThrottling": {{"maxTokens": {tokens}, "tokenRatio": {ratio}}}}}"#);
        let held = read(&json).throttling().unwrap().budget().snapshot();
        assert_eq!((held.max_milli_tokens, held.milli_ratio), want);
        assert_eq!(held.milli_tokens, held.max_milli_tokens, "full");
    }
}

#[test]
fn every_fault_is_listed_with_where_it_is_and_the_way_out() {
    let json = r#"{
        "methodConfig": [
            {"name": [{"method": "Count"}], "retryPolicy": {"maxAttempts": 1, "initialBackoff": "0s", "maxBackoff": "1m",
             "backoffMultiplier": 2, "retryableStatusCodes": ["BUSY", "UNAVAILABLE"]}},
            {"retryPolicy": {}, "hedgingPolicy": {}},
            {"retryPolicy": {"retryableStatusCodes": []}}
        ],
        "retryThrottling": []
    }"#;
    let one = "methodConfig[0].retryPolicy";
    let three = "methodConfig[2].retryPolicy";
    assert_eq!(
        faults(json),
        [
            "methodConfig[0].name[0] names a method without its service: add the service".to_owned(),
            format!("{one}.maxAttempts must be a whole number of 2 or more: it counts the first attempt"),
            format!("{one}.initialBackoff must be longer than nothing"),
            format!("{one}.maxBackoff must be a length of time in seconds, such as \"0.1s\""),
            format!(
                "{one}.retryableStatusCodes[0] is no status code: use a name such as UNAVAILABLE, or a number up to 16"
            ),
            "methodConfig[1] has both a retryPolicy and a hedgingPolicy: leave one of them out".to_owned(),
            format!("{three}.maxAttempts is missing: it has no default"),
            format!("{three}.initialBackoff is missing: it has no default"),
            format!("{three}.maxBackoff is missing: it has no default"),
            format!("{three}.backoffMultiplier is missing: it has no default"),
            format!("{three}.retryableStatusCodes is empty: name at least one, such as UNAVAILABLE"),
            "retryThrottling must be an object".to_owned(),
        ]
    );
    assert!(faults("{")[0].starts_with("this is no JSON: "));
    assert_eq!(faults("[]"), ["a service config is an object: begin with {"]);
    let twice = r#"{"methodConfig": [{"name": [{"service": "a"}]}, {"name": [{"service": "a"}, {}]}]}"#;
    assert_eq!(faults(twice), ["the service a is named twice: name it once"]);
}

#[test]
fn what_is_not_about_retries_is_not_looked_at() {
    let config = read(
        r#"{"loadBalancingConfig": [{"round_robin": {}}], "healthCheckConfig": 7,
            "methodConfig": [{"name": [{}], "waitForReady": true, "timeout": "2.5s", "retryPolicy": null}]}"#,
    );
    let want = MethodConfig::new([MethodName::Every], Attempts::One).timeout(ms(2_500));
    assert_eq!(config.methods(), [want]);
}

#[test]
fn the_nearest_name_says_what_holds_for_a_method() {
    let named = |name: MethodName, limit: u64| MethodConfig::new([name], Attempts::One).timeout(ms(limit));
    let config = ServiceConfig::new(vec![
        named(MethodName::Every, 1),
        named(MethodName::Service("shop.Stock".to_owned()), 2),
        named(MethodName::Method("shop.Stock".to_owned(), "Count".to_owned()), 3),
    ])
    .unwrap();
    for (path, want) in [
        ("/shop.Stock/Count", Some(3)),
        ("/shop.Stock/Order", Some(2)),
        ("/shop.Till/Count", Some(1)),
        ("shop.Stock/Count", None),
        ("/", None),
        ("", None),
    ] {
        assert_eq!(config.of_method(path).and_then(MethodConfig::time_limit), want.map(ms), "{path}");
    }
    assert_eq!(ServiceConfig::default().of_method("/shop.Stock/Count"), None);
}
