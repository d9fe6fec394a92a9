use core::time::Duration;

use stagger::hedge::Hedge;
use stagger::profile::GRPC_A6;
use stagger_http::grpc::Codes;
use stagger_http::service_config::fields::{ConfigFields, Step};
use stagger_http::service_config::{AttemptPolicy, MethodConfig, MethodName, MethodRetries, ServiceConfig};

use super::{ms, read};

/// Returns a config of one method with this policy.
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
fn retries(json: &str) -> MethodRetries {
    match read(json).methods()[0].attempt_policy() {
        AttemptPolicy::Retry(retries) => retries,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn problems(json: &str) -> Vec<String> {
    json.parse::<ServiceConfig>().expect_err(json).problems().map(str::to_owned).collect()
}

#[test]
fn gr_01_the_example_of_the_proposal_is_the_profile() {
    let retries = retries(&retry_policy(&[]));
    assert_eq!(*retries.policy(), GRPC_A6.policy());
    assert_eq!(retries.retryable_codes(), Codes::UNAVAILABLE);
}

#[test]
fn gr_13_a_hedging_policy_maps_to_a_hedge() {
    let json = with_policy(
        r#""hedgingPolicy": {"maxAttempts": 4, "hedgingDelay": "0.5s", "nonFatalStatusCodes": ["UNAVAILABLE", 10]}"#,
    );
    let AttemptPolicy::Hedge(hedging) = read(&json).methods()[0].attempt_policy() else { panic!("{json}") };
    assert_eq!(hedging.to_hedge(), Hedge::after(ms(500)).with_max_copies(3));
    assert_eq!(hedging.non_fatal_codes(), Codes::new(&[10, 14]));

    let json = with_policy(r#""hedgingPolicy": {"maxAttempts": 2}"#);
    let AttemptPolicy::Hedge(hedging) = read(&json).methods()[0].attempt_policy() else { panic!("{json}") };
    assert_eq!(
        (hedging.delay(), hedging.non_fatal_codes()),
        (Duration::ZERO, Codes::NONE),
        "all attempts start at once, and every code is fatal"
    );
}

#[test]
fn gr_15_more_than_five_attempts_are_reduced_to_five() {
    for (attempts, want) in [("2", 2), ("5", 5), ("9", 5), ("5000000000", 5)] {
        assert_eq!(retries(&retry_policy(&[("maxAttempts", attempts)])).max_attempts().get(), want);
        let json = with_policy(&format!("\"hedgingPolicy\": {{\"maxAttempts\": {attempts}}}"));
        let AttemptPolicy::Hedge(hedging) = read(&json).methods()[0].attempt_policy() else { panic!("{json}") };
        assert_eq!((hedging.max_attempts().get(), hedging.to_hedge().max_copies()), (want, want - 1));
    }
}

#[test]
fn gr_17_a_multiplier_below_one_is_rejected() {
    for (multiplier, want) in [
        ("0", "must be a number of 1 or more, such as 2"),
        ("-1", "must be a number of 1 or more, such as 2"),
        ("\"2\"", "must be a number of 1 or more, such as 2"),
        ("0.5", "is below 1, so the delays would shrink, which is not supported; use 1 or more"),
    ] {
        let path = "methodConfig[0].retryPolicy.backoffMultiplier";
        assert_eq!(problems(&retry_policy(&[("backoffMultiplier", multiplier)])), [format!("{path} {want}")]);
    }
    assert_eq!(retries(&retry_policy(&[("backoffMultiplier", "1.6")])).backoff_multiplier().to_string(), "1.6");
}

#[test]
fn gr_19_throttling_out_of_range_is_rejected() {
    for (tokens, ratio, want) in [
        ("-2", "0.1", "retryThrottling.maxTokens must be an integer from 1 to 1000"),
        ("0", "0.1", "retryThrottling.maxTokens must be an integer from 1 to 1000"),
        ("1001", "0.1", "retryThrottling.maxTokens must be an integer from 1 to 1000"),
        ("10", "-1", "retryThrottling.tokenRatio must be a number from 0.001 to 1000; only three decimals count"),
        ("10", "0", "retryThrottling.tokenRatio must be a number from 0.001 to 1000; only three decimals count"),
        ("10", "0.0009", "retryThrottling.tokenRatio must be a number from 0.001 to 1000; only three decimals count"),
    ] {
        let json = format!(r#"{{"retryThrottling": {{"maxTokens": {tokens}, "tokenRatio": {ratio}}}}}"#);
        assert_eq!(problems(&json), [want], "{json}");
    }
}

#[test]
fn gr_21_tokens_are_counted_in_thousandths() {
    for (tokens, ratio, want) in [
        ("2", "1.0", (2_000, 1_000)),
        ("10", "0.1", (10_000, 100)),
        ("1000", "0.0019", (1_000_000, 1)),
        ("1", "0.29", (1_000, 290)),
    ] {
        let json = format!(r#"{{"retryThrottling": {{"maxTokens": {tokens}, "tokenRatio": {ratio}}}}}"#);
        let snapshot = read(&json).throttling().unwrap().to_budget().snapshot();
        assert_eq!((snapshot.max_milli_tokens, snapshot.milli_ratio), want);
        assert_eq!(snapshot.milli_tokens, snapshot.max_milli_tokens, "full");
    }
}

#[test]
fn every_problem_is_listed_with_its_path_and_fix() {
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
        problems(json),
        [
            "methodConfig[0].name[0] names a method without its service; add the service".to_owned(),
            format!("{one}.maxAttempts must be an integer of 2 or more, since it counts the first attempt"),
            format!("{one}.initialBackoff must be greater than zero"),
            format!("{one}.maxBackoff must be a duration in seconds, such as \"0.1s\""),
            format!(
                "{one}.retryableStatusCodes[0] is not a gRPC status code; use a name such as UNAVAILABLE, or a number \
                 from 0 to 16"
            ),
            "methodConfig[1] has both a retryPolicy and a hedgingPolicy; remove one of them".to_owned(),
            format!("{three}.maxAttempts is missing and has no default"),
            format!("{three}.initialBackoff is missing and has no default"),
            format!("{three}.maxBackoff is missing and has no default"),
            format!("{three}.backoffMultiplier is missing and has no default"),
            format!("{three}.retryableStatusCodes is empty; add at least one code, such as UNAVAILABLE"),
            "retryThrottling must be an object".to_owned(),
        ]
    );
    assert!(problems("{")[0].starts_with("not valid JSON: "));
    assert_eq!(problems("[]"), ["a service config must be a JSON object: start it with {"]);
    let twice = r#"{"methodConfig": [{"name": [{"service": "a"}]}, {"name": [{"service": "a"}, {}]}]}"#;
    assert_eq!(problems(twice), ["methodConfig[1].name[0] names the service a again; remove one of the entries"]);
}

#[test]
fn what_a_channel_refuses_is_read_with_the_path_of_each_field() {
    let json = serde_json::json!({"methodConfig": ["faulty", {
        "timeout": "1s",
        "retryPolicy": {"MaxAttempts": 1, "backoffMultiplier": 0.5, "retryableStatusCodes": ["BUSY", "14"], "a.b": 1},
    }]});
    let config = ConfigFields::read(&json);
    let method = &config.methods[0];
    assert_eq!(method.path.to_string(), "methodConfig[1]");
    let retries = method.retries.as_ref().unwrap();
    let attempts = retries.max_attempts.as_ref().unwrap();
    let steps = [
        Step::Member("methodConfig".to_owned()),
        Step::Item(1),
        Step::Member("retryPolicy".to_owned()),
        Step::Member("MaxAttempts".to_owned()),
    ];
    assert_eq!((attempts.value, attempts.path.steps()), (1, &steps[..]));
    assert_eq!(retries.backoff_multiplier.as_ref().map(|field| field.value), Some(0.5));
    assert_eq!((retries.initial_backoff.as_ref(), retries.codes), (None, Codes::UNAVAILABLE));
    assert_eq!(retries.others, ["a.b"]);
    let found: Vec<_> = config.problems.iter().map(ToString::to_string).collect();
    assert_eq!((found.len(), &*found[0]), (7, "methodConfig[0] must be an object"));
    assert_eq!(config.to_config().unwrap_err().problems().collect::<Vec<_>>(), found);
}

// What is left over is a word of its own and not a spelling.
#[test]
fn the_exact_name_counts_beside_other_spellings() {
    let json = serde_json::json!({"methodConfig": [{"timeout": "1s", "Timeout": "2s", "time_____________out": "3s"}]});
    let config = ConfigFields::read(&json);
    assert_eq!(config.methods[0].timeout.as_ref().map(|field| field.value), Some(ms(1_000)));
    let found: Vec<_> = config.problems.iter().map(ToString::to_string).collect();
    assert_eq!(found, ["methodConfig[0].Timeout must be written timeout"]);
}

#[test]
fn a_name_in_other_capitals_is_reported_and_not_ignored() {
    assert_eq!(problems(r#"{"MethodConfig": []}"#), ["MethodConfig must be written methodConfig"]);
    let policy = retry_policy(&[]).replace("maxAttempts", "MaxAttempts").replace("maxBackoff", "MAXBACKOFF");
    assert_eq!(
        problems(&policy),
        [
            "methodConfig[0].retryPolicy.MaxAttempts must be written maxAttempts",
            "methodConfig[0].retryPolicy.MAXBACKOFF must be written maxBackoff",
        ]
    );
    let whole = retry_policy(&[]).replace("retryPolicy", "RetryPolicy");
    assert_eq!(problems(&whole), ["methodConfig[0].RetryPolicy must be written retryPolicy"]);
}

#[test]
fn a_list_of_unknown_codes_is_not_called_empty() {
    let json = retry_policy(&[("retryableStatusCodes", "[\"BUSY\"]")]);
    let found = problems(&json);
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("methodConfig[0].retryPolicy.retryableStatusCodes[0] is not a gRPC status code"));
}

#[test]
fn whole_numbers_with_decimals_and_durations_without_a_leading_zero_are_read() {
    let json = retry_policy(&[("maxAttempts", "4.0"), ("initialBackoff", "\".01s\"")]);
    let retries = retries(&json);
    assert_eq!((retries.max_attempts().get(), retries.initial_backoff()), (4, ms(10)));
    assert_eq!(problems(&retry_policy(&[("maxAttempts", "4.5")])).len(), 1);
}

#[test]
fn comments_and_quoted_codes_are_read_and_a_syntax_error_has_its_place() {
    let json = retry_policy(&[("retryableStatusCodes", "[\"14\", 10.0,] // both")]).replace("// both", "// both\n");
    assert_eq!(retries(&json).retryable_codes(), Codes::new(&[10, 14]));
    let found = problems("{\n  \"methodConfig\": }");
    assert!(found.len() == 1 && found[0].ends_with(" at 2:19"), "{found:?}");
}

#[test]
fn the_text_of_an_error_is_at_most_64_kib_long() {
    let faulty = vec![r#"{"retryPolicy": {}}"#; 20_000].join(",");
    let found = problems(&format!(r#"{{"methodConfig": [{faulty}]}}"#));
    assert_eq!((found.len(), &*found[100]), (101, "99900 more problems"));
    let long = format!(r#"{{"name": [{{"service": "{}"}}]}}"#, "ß".repeat(100_000));
    let json = format!(r#"{{"methodConfig": [{}]}}"#, vec![long; 150].join(","));
    let text = json.parse::<ServiceConfig>().unwrap_err().to_string();
    assert!((40_000..65_536).contains(&text.len()), "{}", text.len());
}

#[test]
fn fields_that_do_not_concern_retries_are_ignored() {
    let config = read(
        r#"{"loadBalancingConfig": [{"round_robin": {}}], "healthCheckConfig": 7,
            "methodConfig": [{"name": [{}], "waitForReady": true, "timeout": "2.5s", "retryPolicy": null}]}"#,
    );
    let want = MethodConfig::new([MethodName::All], AttemptPolicy::Single).with_timeout(ms(2_500));
    assert_eq!(config.methods(), [want]);
}

#[test]
fn the_most_specific_name_takes_precedence() {
    let named = |name: MethodName, limit: u64| MethodConfig::new([name], AttemptPolicy::Single).with_timeout(ms(limit));
    let config = ServiceConfig::new(vec![
        named(MethodName::All, 1),
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
        assert_eq!(config.method_config(path).and_then(MethodConfig::timeout), want.map(ms), "{path}");
    }
    assert_eq!(ServiceConfig::default().method_config("/shop.Stock/Count"), None);
}
