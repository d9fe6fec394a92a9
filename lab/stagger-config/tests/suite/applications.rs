//! Spring, Polly, Azure Functions and the AWS SDKs.

use stagger_config::{Format, RemarkKind, read};

use crate::described::{described, expect, remarks};

#[test]
fn a_filter_of_the_gateway_retries_at_once_unless_it_has_a_backoff() {
    let text = r"spring.cloud.gateway:
  default-filters:
  - Retry=2
  routes:
  - id: cart
    filters:
    - StripPrefix=1
    - name: Retry
      args:
        retries: 4
        methods: GET,POST
        backoff: {firstBackoff: 10ms, maxBackoff: 500ms, basedOnPreviousValue: false}
        jitter.randomFactor: 0.25
        timeout: 2s
  - id: plain
    filters: [Retry, 'Retry=0,BAD_GATEWAY,GET,50ms,,3']
";
    expect(
        &described(text),
        &[
            "Call spring.cloud.gateway.default-filters[0] at 3:5: attempts=3 base=0ns* jitter=none* all=none* budget=(none)*",
            "Call spring.cloud.gateway.routes[0].filters[1] at 8:7: attempts=5 base=10ms cap=500ms multiplier=2* jitter=±25% all=2s budget=(none)* unsafe",
            "Call spring.cloud.gateway.routes[1].filters[0] at 16:15: attempts=4* base=0ns* jitter=none* all=none* budget=(none)*",
            "Call spring.cloud.gateway.routes[1].filters[1] at 16:22: attempts=unknown base=50ms cap=none* multiplier=3 jitter=none* all=none* budget=(none)*",
        ],
    );
    let invalid = remarks(text, RemarkKind::Invalid);
    assert!(invalid.len() == 1 && invalid[0].contains("`0`"), "{invalid:?}");
    let properties = "spring.cloud.gateway.server.webflux.routes[0].filters[1].name=Retry\n\
                      spring.cloud.gateway.server.webflux.routes[0].filters[1].args.retries=1\n\
                      spring.cloud.gateway.server.webflux.routes[0].filters[0]=Retry=2\n";
    expect(
        &described(properties),
        &[
            "Call spring.cloud.gateway.server.webflux.routes[0].filters[1] at 2:1: attempts=2 base=0ns* jitter=none* all=none* budget=(none)*",
            "Call spring.cloud.gateway.server.webflux.routes[0].filters[0] at 3:1: attempts=3 base=0ns* jitter=none* all=none* budget=(none)*",
        ],
    );
}

#[test]
fn retries_of_spring_need_to_be_enabled_where_spring_says_so() {
    let text = r"spring:
  rabbitmq:
    listener.simple.retry: {enabled: true, max-attempts: 5, multiplier: 2, max-interval: 20s}
    template.retry: {max-attempts: 9}
  kafka.retry.topic: {enabled: true, attempts: 4, delay: 2s, random-back-off: true}
  cloud:
    config.retry.initial-interval: 500
    stream.bindings:
      orders-in-0: {consumer: {maxAttempts: 1}}
      carts-in-0: {consumer: {backOffMultiplier: 3}, destination: carts}
      quiet-in-0: {consumer: {concurrency: 3}}
    loadbalancer.retry: {max-retries-on-same-service-instance: 1, retryOnAllOperations: true}
resilience4j.retry.instances.a: {maxAttempts: 2}
";
    expect(
        &described(text),
        &[
            "Step spring.rabbitmq.listener.simple.retry at 3:28: attempts=5 base=1s* cap=20s multiplier=2 jitter=none*",
            "Call spring.rabbitmq.template.retry at 4:21: attempts=1*",
            "Step spring.kafka.retry.topic at 5:22: attempts=4 base=2s multiplier=1* jitter=none",
            "Fetch spring.cloud.config.retry at 7:36: attempts=6* base=500ms cap=2s* multiplier=1.1* jitter=none*",
            "Step spring.cloud.stream.bindings.orders-in-0.consumer at 9:31: attempts=1",
            "Step spring.cloud.stream.bindings.carts-in-0.consumer at 10:30: attempts=3* base=1s* cap=10s* multiplier=3 jitter=none*",
            "Call spring.cloud.loadbalancer.retry at 12:25: attempts=4 base=0ns* unsafe",
            "Call resilience4j.retry.instances.a at 13:1: attempts=2 base=500ms* multiplier=1* jitter=none* budget=(none)*",
        ],
    );
    let found = remarks(text, RemarkKind::NoEffect);
    assert!(found.len() == 1 && found[0].starts_with("4:22 ") && found[0].contains("enabled: true"), "{found:?}");
    let only = read(text, Some(Format::Resilience4j)).unwrap();
    assert_eq!(only.len(), 1, "{only:?}");
}

#[test]
fn polly_alone_waits_a_constant_time_without_jitter() {
    let text = r#"{
  "Catalog": {"Retry": {"MaxRetryAttempts": 5}, "AttemptTimeout": {"Timeout": "00:00:01"}},
  "Orders": {"RetryOptions": {"MaxRetryAttempts": 4, "Delay": "00:00:00.5", "Retries": 9}},
  "Carts": {"MaxRetryAttempts": 2, "UseJitter": true, "BackoffType": "exponential"},
  "Other": {"Delay": "00:00:01"}
}"#;
    expect(
        &described(text),
        &[
            "Call Catalog at 2:3: attempts=6 base=2s* cap=none* multiplier=2* jitter=decorrelated* each=1s all=30s* budget=(none)* unsafe",
            "Call Orders.RetryOptions at 3:14: attempts=5 base=500ms cap=none* multiplier=1* jitter=none* budget=(none)*",
            "Call Carts at 4:3: attempts=3 base=2s* cap=none* multiplier=2 jitter=decorrelated budget=(none)*",
        ],
    );
    let formats: Vec<_> = read(text, None).unwrap().iter().map(|entry| entry.format).collect();
    assert_eq!(formats, [Format::DotNet, Format::Polly, Format::Polly]);
    assert_eq!(
        read(text, None).unwrap()[1].policy().unwrap().to_string(),
        "constant base=500ms jitter=none max-attempts=5"
    );
    let found = remarks(text, RemarkKind::NoEffect);
    assert!(found.len() == 1 && found[0].contains("RetryOptions.Retries"), "{found:?}");
}

#[test]
fn functions_count_retries_and_queues_deliveries() {
    let text = r#"{
  "version": "2.0",
  "retry": {"strategy": "exponentialBackoff", "maxRetryCount": 5, "minimumInterval": "00:00:02", "maximumInterval": "00:15:00"},
  "extensions": {"queues": {"maxDequeueCount": 3, "visibilityTimeout": "00:00:30"}}
}"#;
    expect(
        &described(text),
        &[
            "Step retry at 3:3: attempts=6 base=2s cap=900s multiplier=2* jitter=±20%* unsafe",
            "Step extensions.queues.maxDequeueCount at 4:29: attempts=3 base=30s multiplier=1* jitter=none* unsafe",
        ],
    );
    let function =
        r#"{"bindings": [], "retry": {"strategy": "fixedDelay", "maxRetryCount": -1, "delayInterval": "00:00:10"}}"#;
    expect(&described(function), &["Step retry at 1:18: attempts=none base=10s multiplier=1* jitter=none* unsafe"]);
    let neither = r#"{"version": "2.0", "retry": {"strategy": "sometimes"}}"#;
    assert_eq!(remarks(neither, RemarkKind::Invalid).len(), 2);
    assert!(described(r#"{"version": "2.0", "logging": {}}"#).is_empty());
}

#[test]
fn the_same_lines_mean_other_numbers_to_each_sdk_of_aws() {
    let standard = "attempts=5 base=1s* cap=20s* multiplier=2* jitter=full* budget=(500 tokens)*";
    expect(
        &described("# in the unit\nexport AWS_RETRY_MODE=standard\nAWS_MAX_ATTEMPTS=\"5\"\nPATH=/bin\n"),
        &[
            &format!("Call environment in SDKs for Python, Go, Rust, .NET, C++ at 2:1: {standard}"),
            &format!("Call environment in SDKs for Java, JavaScript at 2:1: {}", standard.replace("1s", "100ms")),
        ],
    );
    let profiles = "[default]\nregion = eu-west-1\nretry_mode = legacy\n[profile batch]\nmax_attempts = 8\n\
                    [sso-session x]\nmax_attempts = 1\n[profile odd]\nretry_mode = quick\nmax_attempts = 0\n";
    let found = described(profiles);
    let starts: Vec<_> = found.iter().map(|line| line.split(" cap=").next().unwrap()).collect();
    expect(
        &starts,
        &[
            "Call [default] in SDKs for Python at 3:1: attempts=5* base=1s*",
            "Call [default] in SDKs for Go, Rust, .NET at 3:1: attempts=3* base=1s*",
            "Call [default] in SDKs for C++ at 3:1: attempts=11* base=25ms*",
            "Call [default] in SDKs for Java at 3:1: attempts=4* base=100ms*",
            "Call [default] in SDKs for JavaScript at 3:1: attempts=3* base=100ms*",
            "Call [profile batch] in SDKs for Python at 5:1: attempts=8 base=1s*",
            "Call [profile batch] in SDKs for Go, Rust, .NET at 5:1: attempts=8 base=1s*",
            "Call [profile batch] in SDKs for C++ at 5:1: attempts=8 base=25ms*",
            "Call [profile batch] in SDKs for Java, JavaScript at 5:1: attempts=8 base=100ms*",
            "Call [profile odd] in all SDKs at 9:1: attempts=unknown",
        ],
    );
    let invalid = remarks(profiles, RemarkKind::Invalid);
    assert!(invalid.len() == 2 && invalid[0].contains("`quick`") && invalid[1].contains("`0`"), "{invalid:?}");
    let new = described("AWS_NEW_RETRIES_2026=true\n");
    expect(
        &new,
        &[
            "Call environment in all SDKs at 1:1: attempts=3* base=50ms* cap=20s* multiplier=2* jitter=full* budget=(500 tokens)*",
            "Call environment in all SDKs for DynamoDB at 1:1: attempts=4* base=25ms* cap=20s* multiplier=2* jitter=full* budget=(500 tokens)*",
        ],
    );
    assert_eq!(read("AWS_MAX_ATTEMPTS=2\n", None).unwrap()[0].format, Format::Aws);
    assert!(read("PATH=/bin\n", None).is_err());
}
