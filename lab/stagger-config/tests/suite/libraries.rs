//! gRPC, resilience4j and .NET.

use stagger_config::{RemarkKind, read};

use crate::described::{described, expect, remarks};

#[test]
fn service_configs_are_read_as_channels_and_generators_read_them() {
    let text = r#"{
  "retryThrottling": {"maxTokens": 10, "tokenRatio": 0.1},
  "methodConfig": [
    {"name": [{"service": "a.B"}], "timeout": "60s", "waitForReady": true},
    {"name": [{"service": "a.B", "method": "Get"}], "timeout": "10s",
     "retryPolicy": {"maxAttempts": 8, "initialBackoff": ".01s", "maxBackoff": "1s", "backoffMultiplier": 1.6, "retryableStatusCodes": ["UNAVAILABLE"]}},
    {"name": [{}],
     "retryPolicy": {"initialBackoff": "0.1s", "maxBackoff": "60s", "backoffMultiplier": 1.3, "retryableStatusCodes": ["DEADLINE_EXCEEDED"]}}
  ]
}"#;
    let budget = "budget=(10 tokens, of which a failure takes one and a success returns 0.1)";
    expect(
        &described(text),
        &[
            "Timeout methodConfig[0] at 4:36: attempts=1* all=60s",
            &format!(
                "Call methodConfig[1] at 6:6: attempts=5 base=10ms cap=1s multiplier=1.6 jitter=±20%* all=10s {budget}"
            ),
            &format!(
                "Call methodConfig[2] at 8:6: attempts=none* base=100ms cap=60s multiplier=1.3 jitter=±20%* all=none* {budget} unsafe"
            ),
        ],
    );
    let notes = remarks(text, RemarkKind::Note);
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(notes[0].starts_with("8:6 ") && notes[0].contains("until the timeout"), "{notes:?}");
    expect(
        &remarks(text, RemarkKind::Invalid),
        &[
            "6:22 methodConfig[1].retryPolicy: a channel makes 5 attempts and not 8",
            "8:6 methodConfig[2].retryPolicy.maxAttempts: is missing and has no default",
        ],
    );
}

#[test]
fn what_a_channel_refuses_is_told_where_it_stands_and_read_all_the_same() {
    let text = r#"{"methodConfig": [
  {"name": [{"method": "Get"}], "retryPolicy": {"MaxAttempts": 3, "initialBackoff": "1ms", "maxBackoff": "1s",
   "backoffMultiplier": 0.5, "retryableStatusCodes": [], "jitter": 1}},
  {"retryPolicy": {}, "hedgingPolicy": {}},
  {"hedgingPolicy": {"maxAttempts": 9}}
], "retryThrottling": {"maxTokens": 0, "tokenRatio": 1}}"#;
    expect(
        &described(text),
        &[
            "Call methodConfig[0] at 2:33: attempts=3 cap=1s multiplier=0.5 jitter=±20%* all=none*",
            "Timeout methodConfig[1] at 4:3: attempts=1* all=none*",
            "Call methodConfig[2] at 5:4: attempts=5 all=none*",
        ],
    );
    expect(
        &remarks(text, RemarkKind::Invalid),
        &[
            "2:13 methodConfig[0].name[0]: names a method without its service; add the service",
            "2:49 methodConfig[0].retryPolicy.MaxAttempts: must be written maxAttempts",
            "2:67 methodConfig[0].retryPolicy.initialBackoff: must be a duration in seconds, such as \"0.1s\"",
            "3:4 methodConfig[0].retryPolicy.backoffMultiplier: is below 1, so the delays would shrink, which is not supported; use 1 or more",
            "3:30 methodConfig[0].retryPolicy.retryableStatusCodes: is empty; add at least one code, such as UNAVAILABLE",
            "6:24 retryThrottling.maxTokens: must be an integer from 1 to 1000",
            "4:3 methodConfig[1]: has both a retryPolicy and a hedgingPolicy; remove one of them",
            "5:22 methodConfig[2].hedgingPolicy: a channel makes 5 attempts and not 9",
        ],
    );
    expect(
        &remarks(text, RemarkKind::Unmapped),
        &[
            "3:58 methodConfig[0].retryPolicy.jitter: not a field that is read here",
            "5:4 methodConfig[2].hedgingPolicy: hedges: attempts overlap, and the first good answer counts",
        ],
    );
}

#[test]
fn each_problem_of_a_service_config_has_the_place_of_its_path_also_in_yaml() {
    let text = r#"
methodConfig:
- name:
  - {service: a.B, service.name: c}
  - service: a.B
  timeout: 10
  retryPolicy:
    maxAttempts: 3
    initialBackoff: 0.1s
    maxBackoff: 2s
    backoffMultiplier: 1.5
    retryableStatusCodes: [unavailable, BUSY, 4]
    a.b: 1
"#;
    let budget = "budget=(none)*";
    expect(
        &described(text),
        &[&format!(
            "Call methodConfig[0] at 7:3: attempts=3 base=100ms cap=2s multiplier=1.5 jitter=±20%* all=unknown {budget} unsafe"
        )],
    );
    expect(
        &remarks(text, RemarkKind::Invalid),
        &[
            "5:5 methodConfig[0].name[1]: names the service a.B again; remove one of the entries",
            "6:3 methodConfig[0].timeout: must be a duration in seconds, such as \"0.1s\"",
            "12:41 methodConfig[0].retryPolicy.retryableStatusCodes[1]: is not a gRPC status code; use a name such as UNAVAILABLE, or a number from 0 to 16",
        ],
    );
    expect(
        &remarks(text, RemarkKind::Unmapped),
        &["13:5 methodConfig[0].retryPolicy.a.b: not a field that is read here"],
    );
}

#[test]
fn settings_of_resilience4j_have_an_effect_only_beside_the_wait() {
    let text = r"resilience4j.retry:
  configs:
    default: {maxAttempts: 4}
    shared:
      waitDuration: 200ms
      enableExponentialBackoff: true
      exponentialBackoffMultiplier: 3
      enableRandomizedWait: true
  instances:
    grows: {baseConfig: shared, maxAttempts: 6}
    none: {exponentialBackoffMultiplier: 2, wait-duration: PT1S}
    plain: {}
    other: {baseConfig: shared}
resilience4j.timelimiter.instances.grows.timeoutDuration: 2s
";
    expect(
        &described(text),
        &[
            "Call resilience4j.retry.instances.grows at 10:5: attempts=6 base=200ms cap=none* multiplier=3 jitter=±50% budget=(none)*",
            "Call resilience4j.retry.instances.none at 11:5: attempts=4 base=1s multiplier=1* jitter=none* budget=(none)*",
            "Call resilience4j.retry.instances.plain at 12:5: attempts=4 base=500ms* multiplier=1* jitter=none* budget=(none)*",
            // A configuration with a name has `default` for its base.
            "Call resilience4j.retry.instances.other at 13:5: attempts=4 base=200ms cap=none* multiplier=3 jitter=±50% budget=(none)*",
        ],
    );
    let found = remarks(text, RemarkKind::NoEffect);
    assert!(found.len() == 1 && found[0].contains("enableExponentialBackoff"), "{found:?}");
    // Whether a time limiter decorates the same call is in the source code.
    let found = remarks(text, RemarkKind::Note);
    assert!(found.len() == 1 && found[0].contains("limits an attempt to 2s, if"), "{found:?}");
    let properties =
        "resilience4j.retry.instances.a.maxRetryAttempts=2\nresilience4j.retry.instances.a.waitDuration=5000\n";
    expect(
        &described(properties),
        &["Call resilience4j.retry.instances.a at 1:1: attempts=2 base=5s multiplier=1* jitter=none* budget=(none)*"],
    );
}

/// Returns the delays of the only instance of a file, as `described` writes them, and what has no effect or is refused.
fn instance(base: &str, own: &str) -> (String, Vec<String>, Vec<String>) {
    let configs = if base.is_empty() { String::new() } else { format!("configs: {{b: {{{base}}}}}, ") };
    let text = format!("resilience4j: {{retry: {{{configs}instances: {{a: {{{own}}}}}}}}}\n");
    let line = described(&text).remove(0);
    let attempts = line.split_once(": attempts=").expect("attempts are read").1;
    let delays = attempts.split_once(' ').expect("delays follow").1;
    let named = |kind| {
        let names = |remark: &String| {
            let path = remark.split(' ').nth(1).unwrap_or_default();
            path.rsplit('.').next().unwrap_or_default().trim_end_matches(':').to_owned()
        };
        remarks(&text, kind).iter().map(names).collect()
    };
    let delays = delays.replace("budget=(none)*", "").trim_end().to_owned();
    (delays, named(RemarkKind::NoEffect), named(RemarkKind::Invalid))
}

#[test]
fn each_field_of_resilience4j_does_what_its_row_says() {
    const WAIT: &str = "waitDuration: 1s, ";
    let grows = |fields: &str| format!("{WAIT}enableExponentialBackoff: true, {fields}");
    let both = |fields: &str| grows(&format!("enableRandomizedWait: true, {fields}"));
    let plain = "multiplier=1* jitter=none*";
    let rows: [(&str, String, String, &[&str], &[&str]); 27] = [
        ("", String::new(), format!("base=500ms* {plain}"), &[], &[]),
        ("", WAIT.to_owned(), format!("base=1s {plain}"), &[], &[]),
        ("", "waitDuration: 0s".to_owned(), format!("base=0ns {plain}"), &[], &[]),
        ("", "waitDuration: soon".to_owned(), plain.to_owned(), &[], &["waitDuration"]),
        (
            "",
            "enableExponentialBackoff: true".to_owned(),
            format!("base=500ms* {plain}"),
            &["enableExponentialBackoff"],
            &[],
        ),
        (
            "",
            "exponentialMaxWaitDuration: 2s".to_owned(),
            format!("base=500ms* {plain}"),
            &["exponentialMaxWaitDuration"],
            &[],
        ),
        ("", "randomizedWaitFactor: 0.1".to_owned(), format!("base=500ms* {plain}"), &["randomizedWaitFactor"], &[]),
        ("", grows(""), "base=1s cap=none* multiplier=1.5* jitter=none*".to_owned(), &[], &[]),
        (
            "",
            grows("exponentialBackoffMultiplier: 0.5"),
            "base=1s cap=none* multiplier=0.5 jitter=none*".to_owned(),
            &[],
            &[],
        ),
        (
            "",
            grows("exponentialBackoffMultiplier: 0"),
            "base=1s cap=none* jitter=none*".to_owned(),
            &[],
            &["exponentialBackoffMultiplier"],
        ),
        (
            "",
            grows("exponentialMaxWaitDuration: 9s"),
            "base=1s cap=none multiplier=1.5* jitter=none*".to_owned(),
            &["exponentialMaxWaitDuration"],
            &[],
        ),
        (
            "",
            grows("exponentialBackoffMultiplier: 2, exponentialMaxWaitDuration: 9s"),
            "base=1s cap=9s multiplier=2 jitter=none*".to_owned(),
            &[],
            &[],
        ),
        (
            "",
            grows("exponentialBackoffMultiplier: 2, exponentialMaxWaitDuration: 0s"),
            "base=1s cap=unknown multiplier=2 jitter=none*".to_owned(),
            &[],
            &["exponentialMaxWaitDuration"],
        ),
        (
            "",
            format!("{WAIT}exponentialBackoffMultiplier: 2, exponentialMaxWaitDuration: 9s"),
            format!("base=1s {plain}"),
            &["exponentialBackoffMultiplier", "exponentialMaxWaitDuration"],
            &[],
        ),
        ("", format!("{WAIT}enableRandomizedWait: true"), "base=1s multiplier=1* jitter=±50%".to_owned(), &[], &[]),
        (
            "",
            format!("{WAIT}enableRandomizedWait: true, randomizedWaitFactor: 0.25"),
            "base=1s multiplier=1* jitter=±25%".to_owned(),
            &[],
            &[],
        ),
        (
            "",
            format!("{WAIT}enableRandomizedWait: true, randomizedWaitFactor: 0"),
            "base=1s multiplier=1* jitter=none".to_owned(),
            &[],
            &[],
        ),
        (
            "",
            format!("{WAIT}enableRandomizedWait: true, randomizedWaitFactor: 1"),
            "base=1s multiplier=1*".to_owned(),
            &[],
            &["randomizedWaitFactor"],
        ),
        ("", format!("{WAIT}randomizedWaitFactor: 0.25"), format!("base=1s {plain}"), &["randomizedWaitFactor"], &[]),
        (
            "",
            both("randomizedWaitFactor: 0.25"),
            "base=1s cap=none* multiplier=1.5* jitter=±50%".to_owned(),
            &["randomizedWaitFactor"],
            &[],
        ),
        (
            "",
            both("exponentialBackoffMultiplier: 2, exponentialMaxWaitDuration: 9s"),
            "base=1s cap=none multiplier=2 jitter=±50%".to_owned(),
            &["exponentialMaxWaitDuration"],
            &[],
        ),
        (
            "",
            both("exponentialBackoffMultiplier: 2, exponentialMaxWaitDuration: 9s, randomizedWaitFactor: 0.25"),
            "base=1s cap=9s multiplier=2 jitter=±25%".to_owned(),
            &[],
            &[],
        ),
        (
            "",
            "waitDuration: 0s, enableExponentialBackoff: true".to_owned(),
            "cap=none* multiplier=1.5* jitter=none*".to_owned(),
            &[],
            &["waitDuration"],
        ),
        // The base's delays apply whole, and the factor is not inherited.
        (
            "waitDuration: 2s",
            "baseConfig: b, enableExponentialBackoff: true".to_owned(),
            format!("base=2s {plain}"),
            &["enableExponentialBackoff"],
            &[],
        ),
        (
            "enableRandomizedWait: true, randomizedWaitFactor: 0.1",
            format!("{WAIT}baseConfig: b"),
            "base=1s multiplier=1* jitter=±50%".to_owned(),
            &["randomizedWaitFactor"],
            &[],
        ),
        ("", "baseConfig: x".to_owned(), format!("base=500ms* {plain}"), &[], &["baseConfig"]),
        ("", "intervalBiFunction: a.B".to_owned(), String::new(), &[], &[]),
    ];
    for (base, own, delays, idle, refused) in rows {
        let (found, no_effect, invalid) = instance(base, &own);
        assert_eq!(found, delays, "{base} / {own}");
        assert_eq!(no_effect, idle, "{base} / {own}");
        assert_eq!(invalid, refused, "{base} / {own}");
    }
}

#[test]
fn what_stands_directly_below_retry_is_read_by_nobody() {
    for property in ["resilience4j.retry.orders.max-attempts=5\n", "resilience4j.retry.max-attempts=5\n"] {
        expect_unread(property, "instances");
    }
    let known = "resilience4j.retry.retry-aspect-order=2\nresilience4j.retry.metrics.enabled=false\n";
    assert!(described(known).is_empty(), "{:?}", described(known));
}

#[track_caller]
fn expect_unread(text: &str, right: &str) {
    let lines = described(text);
    assert!(lines.len() == 1 && lines[0].starts_with("Unread"), "{lines:?}");
    let found = remarks(text, RemarkKind::NoEffect);
    assert!(found.len() == 1 && found[0].contains(right), "{found:?}");
}

#[test]
fn options_that_the_binder_of_dotnet_drops_are_told() {
    let text = r#"{
  // The section of the standard handler.
  "HttpClient": {"Catalog": {
    "Retry": {"Backoff": "Linear", "MaxRetryAttempts": 4, "UseJitter": false, "Delay": "00:00:00.500"},
    "AttemptTimeout": {"Timeout": "00:00:03"}
  }}
}"#;
    expect(
        &described(text),
        &[
            "Call HttpClient.Catalog at 3:18: attempts=5 base=500ms cap=none* multiplier=2* jitter=none each=3s all=30s* budget=(none)* unsafe",
        ],
    );
    let found = remarks(text, RemarkKind::NoEffect);
    assert!(found.len() == 1 && found[0].contains("Retry.Backoff"), "{found:?}");
}

/// The policies of a file in the policy language.
fn policies(text: &str) -> Vec<String> {
    let entries = read(text, None).expect("the file is read");
    entries.iter().map(|entry| entry.policy().map_or("none".to_owned(), |policy| policy.to_string())).collect()
}

#[test]
fn an_entry_has_the_policy_that_its_system_follows() {
    for (retry, wanted) in [
        ("\"MaxRetryAttempts\": 3", "exponential base=2s cap=none multiplier=2 jitter=polly-v8 max-attempts=4"),
        (
            "\"BackoffType\": \"Linear\", \"Delay\": \"00:00:01\", \"MaxDelay\": \"00:00:10\"",
            "linear base=1s step=1s cap=10s jitter=±25% max-attempts=4",
        ),
        ("\"BackoffType\": \"Constant\", \"UseJitter\": false", "constant base=2s jitter=none max-attempts=4"),
        ("\"MaxRetryAttempts\": 0", "none"),
        ("\"Delay\": \"00:00:10\", \"MaxDelay\": \"00:00:01\"", "none"),
    ] {
        expect(&policies(&format!("{{\"Http\": {{\"Retry\": {{{retry}}}}}}}")), &[wanted]);
    }
    let route =
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {name: a}\nspec: {http: [{route: []}]}\n";
    expect(&policies(route), &["exponential base=25ms cap=250ms multiplier=2 jitter=envoy max-attempts=3"]);
    let nginx = "upstream a { server b; server c; }\nserver { location / { proxy_pass http://a; } }\n";
    expect(&policies(nginx), &["zero max-attempts=2"]);
    let route = "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {name: a}\nspec: {rules: [{retry: {attempts: 2}}]}\n";
    expect(&policies(route), &["none"]);
}

#[test]
fn what_resilience4j_cuts_at_the_maximum_is_no_share_of_it() {
    let of = |factor: &str, attempts: u32| {
        format!(
            "resilience4j.retry.instances.a: {{maxAttempts: {attempts}, waitDuration: 1s, enableExponentialBackoff: true, \
             exponentialBackoffMultiplier: 2, exponentialMaxWaitDuration: 4s, enableRandomizedWait: true, \
             randomizedWaitFactor: {factor}}}\n"
        )
    };
    let last = |text: &str| {
        let policy = read(text, None).unwrap()[0].policy()?;
        policy.bounds(3).map(|(least, most)| (least.as_millis(), most.as_millis()))
    };
    assert_eq!(last(&of("0.5", 9)), Some((2000, 4000)));
    // The ceiling of the third retry is 4 s, of which a tenth more is cut.
    assert_eq!(last(&of("0.1", 9)), None);
    assert_eq!(last(&of("0.1", 3)), Some((3600, 4400)));
}
