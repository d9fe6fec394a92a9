//! Spring, Polly, Azure Functions and the AWS SDKs.

use stagger_config::{EntryKind, Format, Limit, RemarkKind, read};

use crate::described::{described, expect, holds, remarks};

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
            "Call spring.cloud.gateway.default-filters[0] at 3:5: attempts=3 base=0ns* jitter=none* each=none* all=none* budget=(none)*",
            "Call spring.cloud.gateway.routes[0].filters[1] at 8:7: attempts=5 base=10ms cap=500ms multiplier=2* each=none* all=2s budget=(none)* unsafe",
            "Call spring.cloud.gateway.routes[1].filters[0] at 16:15: attempts=4* base=0ns* jitter=none* each=none* all=none* budget=(none)*",
            "Call spring.cloud.gateway.routes[1].filters[1] at 16:22: attempts=unknown base=50ms cap=none* multiplier=3 jitter=none* each=none* all=none* budget=(none)*",
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
            "Call spring.cloud.gateway.server.webflux.routes[0].filters[1] at 2:1: attempts=2 base=0ns* jitter=none* each=none* all=none* budget=(none)*",
            "Call spring.cloud.gateway.server.webflux.routes[0].filters[0] at 3:1: attempts=3 base=0ns* jitter=none* each=none* all=none* budget=(none)*",
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
    config: {fail-fast: true, retry.initial-interval: 500}
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
            "Step spring.kafka.retry.topic at 5:22: attempts=4 base=2s multiplier=1* jitter=none*",
            "Fetch spring.cloud.config.retry at 7:55: attempts=6* base=500ms cap=2s* multiplier=1.1* jitter=none*",
            "Step spring.cloud.stream.bindings.orders-in-0.consumer at 9:31: attempts=1",
            "Step spring.cloud.stream.bindings.carts-in-0.consumer at 10:30: attempts=3* base=1s* cap=10s* multiplier=3 jitter=none*",
            "Call spring.cloud.loadbalancer.retry at 12:25: attempts=4 base=0ns* unsafe",
            "Call resilience4j.retry.instances.a at 13:1: attempts=2 base=500ms* multiplier=1* jitter=none* budget=(none)*",
        ],
    );
    let found = remarks(text, RemarkKind::NoEffect);
    assert!(found.len() == 2 && found[0].starts_with("4:22 ") && found[0].contains("enabled: true"), "{found:?}");
    assert!(found[1].contains("random-back-off") && found[1].contains("do not grow"), "{found:?}");
    let only = read(text, Some(Format::Resilience4j)).unwrap();
    assert_eq!(only.len(), 1, "{only:?}");
}

/// Returns the settings of the only entry of properties, as `described` writes them, and the last part of each name
/// that has no effect or is refused.
#[track_caller]
fn properties(lines: &[String]) -> (String, Vec<String>) {
    let text = lines.join("\n") + "\n";
    let described = described(&text);
    assert_eq!(described.len(), 1, "{text}: {described:?}");
    let settings = described[0].split_once(": ").map_or("", |(_, settings)| settings);
    let kind = if described[0].starts_with("Unread") { "unread" } else { settings };
    let last = |remark: &String| {
        let path = remark.split(' ').nth(1).unwrap_or_default().trim_end_matches(':');
        path.rsplit('.').next().unwrap_or_default().to_owned()
    };
    let wrong = [remarks(&text, RemarkKind::NoEffect), remarks(&text, RemarkKind::Invalid)].concat();
    (kind.to_owned(), wrong.iter().map(last).collect())
}

#[test]
fn each_property_of_spring_does_what_its_row_says() {
    let of = |place: &str, fields: &str| -> Vec<String> {
        fields.split_whitespace().map(|field| format!("{place}.{field}")).collect()
    };
    let simple = |fields: &str| of("spring.rabbitmq.listener.simple.retry", fields);
    let topic = |fields: &str| of("spring.kafka.retry.topic", &format!("enabled=true {fields}"));
    let client = |fields: &str| of("spring.cloud.config", &format!("fail-fast=true {fields}"));
    let consumer = |fields: &str| of("spring.cloud.stream.bindings.a.consumer", fields);
    let balancer = |fields: &str| of("spring.cloud.loadbalancer.retry", fields);
    let typed = |of_type: &str, mut lines: Vec<String>| {
        lines.push(format!("spring.rabbitmq.listener.type={of_type}"));
        lines
    };
    let plain = "base=1s* multiplier=1* jitter=none*";
    let growing = "base=1s* cap=2s* multiplier=1.1* jitter=none*";
    let doubling = "base=1s* cap=10s* multiplier=2* jitter=none*";
    let rows: [(Vec<String>, String, &[&str]); 44] = [
        (simple("max-attempts=5"), "attempts=1*".into(), &["max-attempts"]),
        (simple("enabled=true max-attempts=5"), format!("attempts=5 {plain}"), &[]),
        (simple("enabled=true max-attempts=0"), format!("attempts=unknown {plain}"), &["max-attempts"]),
        // Three attempts, or three retries from Spring Boot 4 on.
        (simple("enabled=true"), format!("attempts=unknown* {plain}"), &[]),
        (simple("enabled=true max-retries=5"), format!("attempts=6 {plain}"), &[]),
        (simple("enabled=true max-retries=0"), "attempts=1".into(), &[]),
        (
            simple("enabled=true max-attempts=2 initial-interval=0"),
            "attempts=2 base=1ms multiplier=1* jitter=none*".into(),
            &[],
        ),
        (
            simple("enabled=true max-attempts=2 multiplier=0"),
            "attempts=2 base=1s* multiplier=1 jitter=none*".into(),
            &[],
        ),
        (
            simple("enabled=true max-attempts=2 multiplier=3"),
            "attempts=2 base=1s* cap=10s* multiplier=3 jitter=none*".into(),
            &[],
        ),
        // The longest interval cuts the first one as well.
        (
            simple("enabled=true max-attempts=2 initial-interval=20s"),
            "attempts=2 base=10s* multiplier=1* jitter=none*".into(),
            &[],
        ),
        (
            simple("enabled=true max-attempts=2 max-interval=0"),
            "attempts=2 base=1ms multiplier=1* jitter=none*".into(),
            &[],
        ),
        (typed("direct", simple("enabled=true")), "unread".into(), &["enabled"]),
        (typed("simple", simple("enabled=true max-attempts=2")), format!("attempts=2 {plain}"), &[]),
        (of("spring.rabbitmq.listener.direct.retry", "enabled=true"), "unread".into(), &["enabled"]),
        (
            typed("direct", of("spring.rabbitmq.listener.direct.retry", "enabled=true max-attempts=2")),
            format!("attempts=2 {plain}"),
            &[],
        ),
        (of("spring.rabbitmq.template.retry", "enabled=true max-attempts=2"), format!("attempts=2 {plain}"), &[]),
        (of("spring.rabbitmq.listener.retry", "enabled=true"), "unread".into(), &["enabled"]),
        (topic(""), format!("attempts=3* {plain}"), &[]),
        (topic("attempts=0"), format!("attempts=unknown {plain}"), &["attempts"]),
        (topic("backoff.delay=2s"), "attempts=3* base=2s multiplier=1* jitter=none*".into(), &[]),
        (topic("delay=0"), "attempts=3* base=0ns multiplier=1* jitter=none*".into(), &[]),
        (topic("backoff.multiplier=2"), "attempts=3* base=1s* cap=30s* multiplier=2 jitter=none*".into(), &[]),
        (
            topic("backoff.multiplier=2 backoff.max-delay=0"),
            "attempts=3* base=1s* cap=30s* multiplier=2 jitter=none*".into(),
            &[],
        ),
        (
            topic("backoff.multiplier=2 backoff.max-delay=9s"),
            "attempts=3* base=1s* cap=9s multiplier=2 jitter=none*".into(),
            &[],
        ),
        (topic("max-delay=9s"), "attempts=3* multiplier=1* jitter=none*".into(), &[]),
        (topic("backoff.multiplier=2 backoff.random=true"), "attempts=3* base=1s* cap=30s* multiplier=2".into(), &[]),
        (topic("random-back-off=true"), format!("attempts=3* {plain}"), &["random-back-off"]),
        (topic("backoff.jitter=1s"), "attempts=3* base=1s* multiplier=1*".into(), &[]),
        (of("spring.cloud.config", "retry.max-attempts=9"), "attempts=1*".into(), &["max-attempts"]),
        (client("retry.max-attempts=9"), format!("attempts=9 {growing}"), &[]),
        (client("retry.max-attempts=0"), format!("attempts=unknown {growing}"), &["max-attempts"]),
        (client("retry.multiplier=1"), "attempts=6* base=1s* cap=2s* jitter=none*".into(), &["retry"]),
        (
            client("retry.initial-interval=1s"),
            "attempts=6* cap=2s* multiplier=1.1* jitter=none*".into(),
            &["initial-interval"],
        ),
        (client("retry.initial-interval=0"), "attempts=6* cap=2s* multiplier=1.1* jitter=none*".into(), &["retry"]),
        (
            client("retry.initial-interval=2000"),
            "attempts=6* base=2s cap=unknown* multiplier=1.1* jitter=none*".into(),
            &["retry"],
        ),
        (client("retry.use-random-policy=true"), "attempts=6* base=1s* cap=2s* multiplier=1.1*".into(), &[]),
        (consumer("max-attempts=0"), "attempts=1".into(), &[]),
        (consumer("max-attempts=9"), format!("attempts=9 {doubling}"), &[]),
        (consumer("back-off-multiplier=0.5"), "attempts=3* base=1s* multiplier=1 jitter=none*".into(), &[]),
        (
            consumer("back-off-max-interval=5s"),
            "attempts=3* base=1s* cap=unknown multiplier=2* jitter=none*".into(),
            &["back-off-max-interval"],
        ),
        (
            of("spring.cloud.stream", "bindings.a.consumer.concurrency=2 default.consumer.max-attempts=7"),
            format!("attempts=7 {doubling}"),
            &[],
        ),
        (balancer("max-retries-on-next-service-instance=0"), "attempts=1".into(), &[]),
        (balancer("max-retries-on-same-service-instance=2"), "attempts=6 base=0ns*".into(), &[]),
        (balancer("max-retries-on-next-service-instance=2 backoff.enabled=true"), "attempts=3".into(), &[]),
    ];
    for (lines, wanted, wrong) in rows {
        let (settings, found) = properties(&lines);
        assert_eq!(settings, wanted, "{lines:?}");
        assert_eq!(found, wrong, "{lines:?}");
    }
    assert_eq!(properties(&balancer("enabled=false")).0, "attempts=1");
    let client = of("spring.cloud.loadbalancer.clients.a.retry", "max-retries-on-next-service-instance=4");
    assert_eq!(properties(&client).0, "attempts=5 base=0ns*");
}

#[test]
fn each_argument_of_the_gateway_does_what_its_row_says() {
    let at = |place: &str, arguments: &str| -> Vec<String> {
        let filter = format!("spring.cloud.gateway.{place}routes[0].filters[0]");
        let arguments = arguments.split_whitespace().map(|argument| format!("{filter}.args.{argument}"));
        core::iter::once(format!("{filter}.name=Retry")).chain(arguments).collect()
    };
    let short = |filter: &str| vec![format!("spring.cloud.gateway.routes[0].filters[0]={filter}")];
    let with = |line: &str, mut lines: Vec<String>| {
        lines.push(format!("spring.cloud.gateway.{line}"));
        lines
    };
    let ends = "each=none* all=none* budget=(none)*";
    let once = format!("base=0ns* jitter=none* {ends}");
    let rows: [(Vec<String>, String, &[&str]); 28] = [
        (at("", ""), format!("attempts=4* {once}"), &[]),
        (at("", "retries=0"), format!("attempts=unknown {once}"), &["retries"]),
        (at("", "methods=GET"), format!("attempts=4* {once}"), &[]),
        (at("", "methods=POST"), format!("attempts=4* {once} unsafe"), &[]),
        (at("", "backoff.factor=3"), format!("attempts=4* base=5ms* cap=none* multiplier=3 jitter=none* {ends}"), &[]),
        (at("", "backoff.factor=0"), format!("attempts=4* base=5ms* cap=none* multiplier=1 jitter=none* {ends}"), &[]),
        (at("", "backoff.factor=1.5"), format!("attempts=4* base=5ms* cap=none* jitter=none* {ends}"), &["factor"]),
        (
            at("", "backoff.firstBackoff=1s"),
            format!("attempts=4* base=1s cap=none* multiplier=2* jitter=none* {ends}"),
            &[],
        ),
        (
            at("", "backoff.firstBackoff=0"),
            format!("attempts=4* cap=none* multiplier=2* jitter=none* {ends}"),
            &["firstBackoff"],
        ),
        (
            at("", "backoff.maxBackoff=1s"),
            format!("attempts=4* base=5ms* cap=1s multiplier=2* jitter=none* {ends}"),
            &[],
        ),
        (
            at("", "backoff.maxBackoff=1ms"),
            format!("attempts=4* base=5ms* cap=unknown multiplier=2* jitter=none* {ends}"),
            &["maxBackoff"],
        ),
        (
            at("", "backoff.firstBackoff=1s jitter.randomFactor=0.5"),
            format!("attempts=4* base=1s cap=none* multiplier=2* {ends}"),
            &[],
        ),
        (
            at("", "backoff.firstBackoff=1s jitter.randomFactor=0"),
            format!("attempts=4* base=1s cap=none* multiplier=2* jitter=none* {ends}"),
            &[],
        ),
        (
            at("", "backoff.firstBackoff=1s jitter.randomFactor=2"),
            format!("attempts=4* base=1s cap=none* multiplier=2* {ends}"),
            &["randomFactor"],
        ),
        (at("", "jitter.randomFactor=0.5"), format!("attempts=4* {once}"), &["jitter"]),
        (at("", "timeout=2s"), "attempts=4* base=0ns* jitter=none* each=none* all=2s budget=(none)*".into(), &[]),
        (at("", "timeout=0"), "attempts=1 each=none* all=0ns budget=(none)*".into(), &[]),
        (
            at("", "timeout=soon"),
            "attempts=4* base=0ns* jitter=none* each=none* all=unknown budget=(none)*".into(),
            &["timeout"],
        ),
        (
            with("httpclient.response-timeout=5s", at("", "")),
            "attempts=4* base=0ns* jitter=none* each=5s all=none* budget=(none)*".into(),
            &[],
        ),
        (
            with("routes[0].metadata.response-timeout=200", at("", "")),
            "attempts=4* base=0ns* jitter=none* each=200ms all=none* budget=(none)*".into(),
            &[],
        ),
        (
            with("httpclient.response-timeout=5s", with("routes[0].metadata.response-timeout=-1", at("", ""))),
            "attempts=4* base=0ns* jitter=none* each=none all=none* budget=(none)*".into(),
            &[],
        ),
        (at("server.webflux.", "retries=1"), format!("attempts=2 {once}"), &[]),
        // The filter for servlets counts otherwise, and has fewer arguments.
        (at("mvc.", "retries=5"), "attempts=5 base=0ns* jitter=none* budget=(none)*".into(), &[]),
        (at("mvc.", "backoff.factor=2"), "attempts=3* base=0ns* jitter=none* budget=(none)*".into(), &["backoff"]),
        (at("server.webmvc.", "retries=5"), "attempts=unknown budget=(none)*".into(), &[]),
        (short("Retry=${N}"), format!("attempts=unknown {once}"), &[]),
        (short("Retry=${N:7},,${M:POST}"), format!("attempts=8 {once} unsafe"), &[]),
        (short("Retry=2,,${M}"), format!("attempts=3 {once}"), &[]),
    ];
    for (lines, wanted, wrong) in rows {
        let (settings, found) = properties(&lines);
        assert_eq!(settings, wanted, "{lines:?}");
        assert_eq!(found, wrong, "{lines:?}");
    }
    let named = "spring.cloud.gateway.server.webmvc.routes-map.a.filters[0]=Retry=3,,POST\n";
    assert!(described(named)[0].ends_with("unsafe"), "{:?}", described(named));
    let backoff = at("server.webmvc.", "backoff.factor=2").join("\n");
    assert_eq!(remarks(&backoff, RemarkKind::NoEffect), [""; 0]);
    let unknown = read("spring.cloud.gateway.routes[0].filters[0]=Retry=2,,${M}\n", None).unwrap();
    assert_eq!(unknown[0].may_repeat_unsafe, None);
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
            "Unread [sso-session x] at 7:1:",
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

#[test]
fn a_section_is_a_profile_of_aws_by_its_name_and_the_kind_of_its_file() {
    let keys = "aws_access_key_id = A\naws_secret_access_key = B\n";
    for (text, paths) in [
        ("[default]\nregion = x\nmax_attempts = 2\n".to_owned(), vec!["[default] in all"]),
        ("[profile a]\nregion = x\nmax_attempts = 2\n".to_owned(), vec!["[profile a] in all"]),
        // A file of credentials.
        (format!("[a]\n{keys}max_attempts = 2\n"), vec!["[a] in all"]),
        (format!("[default]\n{keys}[a]\n{keys}max_attempts = 2\n"), vec!["[a] in all"]),
        // A config file, which has keys as well.
        (format!("[profile b]\n{keys}[a]\nregion = x\nmax_attempts = 2\n"), vec!["[a]"]),
        (
            "[default]\nregion = x\nmax_attempts = 3\n[a]\nretry_mode = standard\n".to_owned(),
            vec!["[default] in all", "[a]"],
        ),
        ("[a]\nregion = x\nretry_mode = standard\nmax_attempts = 2\n".to_owned(), vec!["[a]"]),
        ("[sso-session a]\nsso_start_url = x\nmax_attempts = 2\n".to_owned(), vec!["[sso-session a]"]),
        ("[services a]\nregion = x\nmax_attempts = 2\n".to_owned(), vec!["[services a]"]),
    ] {
        // All groups of SDKs share the number.
        let found = read(&text, None).unwrap_or_else(|error| panic!("{error}: {text}"));
        let mut names: Vec<String> = found
            .iter()
            .map(|entry| {
                entry.path.split(" in ").next().unwrap().to_owned()
                    + if entry.path.contains(" in ") { " in all" } else { "" }
            })
            .collect();
        names.dedup();
        assert_eq!(names, paths, "{text}");
        let ignored = remarks(&text, RemarkKind::NoEffect);
        let has_ignored = found.iter().any(|entry| entry.kind == EntryKind::Unread);
        assert_eq!(!ignored.is_empty(), has_ignored, "{text}: {ignored:?}");
    }
    assert!(read("[a]\nmax_attempts = 2\n", None).is_err());
    let found = remarks("[a]\nregion = x\nretry_mode = legacy\n", RemarkKind::NoEffect);
    assert!(found.len() == 1 && found[0].contains("[profile a]"), "{found:?}");
}

#[test]
fn each_field_of_aws_has_the_default_and_the_words_that_its_table_says() {
    let attempts = |text: &str| -> Vec<_> {
        let limits = read(text, None).unwrap().into_iter().map(|entry| entry.settings.attempts.unwrap());
        let mut limits: Vec<_> = limits.map(|attempts| attempts.value).collect();
        limits.dedup();
        limits
    };
    for (text, wanted, invalid) in [
        ("AWS_RETRY_MODE=adaptive\n", vec![Limit::At(3)], ""),
        ("AWS_RETRY_MODE=\nAWS_MAX_ATTEMPTS=4\n", vec![Limit::At(4)], ""),
        ("AWS_RETRY_MODE=fast\nAWS_MAX_ATTEMPTS=4\n", vec![Limit::At(4)], "`fast` is not legacy"),
        ("AWS_MAX_ATTEMPTS=0\n", vec![Limit::Unknown], "1 or more"),
        ("AWS_RETRY_MODE=standard\nAWS_MAX_ATTEMPTS=\n", vec![Limit::At(3)], ""),
        ("AWS_NEW_RETRIES_2026=true\n", vec![Limit::At(3), Limit::At(4)], ""),
        ("AWS_NEW_RETRIES_2026=\nAWS_RETRY_MODE=standard\n", vec![Limit::At(3)], ""),
        ("AWS_NEW_RETRIES_2026=true\nAWS_RETRY_MODE=legacy\nAWS_MAX_ATTEMPTS=7\n", vec![Limit::At(7)], ""),
    ] {
        assert_eq!(attempts(text), wanted, "{text}");
        let found = remarks(text, RemarkKind::Invalid);
        assert!(found.iter().all(|remark| remark.contains(invalid)), "{text}: {found:?}");
        assert_eq!(found.is_empty(), invalid.is_empty(), "{text}: {found:?}");
    }
    let adaptive = remarks("AWS_RETRY_MODE=adaptive\n", RemarkKind::Unmapped);
    assert!(adaptive.len() == 1 && adaptive[0].contains("rate"), "{adaptive:?}");
    let notes = remarks("AWS_RETRY_MODE=legacy\n", RemarkKind::Note);
    assert!(notes[0].contains("10 November 2026") && notes[0].contains("DynamoDB"), "{notes:?}");
}

#[test]
fn each_field_of_a_function_has_the_range_that_its_host_accepts() {
    let host = |retry: &str| format!("{{\"version\": \"2.0\", \"retry\": {{{}}}}}", retry.replace('\'', "\""));
    let fixed = "'strategy': 'fixedDelay', 'delayInterval': '00:00:02'";
    let grows = "'minimumInterval': '00:00:01', 'maximumInterval': '00:01:00'";
    let at = |count: &str| host(&format!("'maxRetryCount': {count}, {fixed}"));
    for (text, settings, invalid, ignored) in [
        (at("3"), "attempts=4 base=2s multiplier=1*", "", ""),
        (at("0"), "attempts=1", "", ""),
        (at("-1"), "attempts=none", "", ""),
        (at("-2"), "attempts=unknown", "or -1 for no limit", ""),
        (host(fixed), "attempts=unknown", "maxRetryCount is required", ""),
        (host(&format!("'maxRetryCount': 2, {grows}")), "attempts=3 base=1s cap=60s multiplier=2*", "", ""),
        (host(&format!("'maxRetryCount': 2, 'strategy': 'ExponentialBackoff', {grows}")), "base=1s cap=60s", "", ""),
        (host(&format!("'maxRetryCount': 2, 'strategy': 'linear', {grows}")), "attempts=3", "strategy must be", ""),
        (host("'maxRetryCount': 2, 'strategy': 'fixedDelay'"), "attempts=3", "delayInterval is required", ""),
        (host("'maxRetryCount': 2, 'maximumInterval': '1:00'"), "attempts=3", "minimumInterval is required", ""),
        (host("'maxRetryCount': 2, 'minimumInterval': '1:00'"), "attempts=3", "maximumInterval is required", ""),
        (
            host("'maxRetryCount': 2, 'minimumInterval': '1:00', 'maximumInterval': '0:30'"),
            "attempts=3",
            "above maximumInterval",
            "",
        ),
        (host(&format!("'maxRetryCount': 2, {fixed}, {grows}")), "base=2s", "", "no effect with this strategy"),
        (
            host(&format!("'maxRetryCount': 2, 'delayInterval': '0:01', {grows}")),
            "base=1s",
            "",
            "no effect with this strategy",
        ),
        (host("'maxRetryCount': 2, 'strategy': 'fixedDelay', 'delayInterval': '0'"), "base=0ns", "", ""),
    ] {
        holds(&text, settings, invalid, ignored);
    }
    let queues = |options: &str| format!("{{\"version\": \"2.0\", \"extensions\": {{\"queues\": {{{options}}}}}}}");
    holds(&queues("\"maxDequeueCount\": 7"), "attempts=7 base=0ns*", "", "");
    holds(&queues("\"maxDequeueCount\": 0"), "attempts=unknown", "1 or more", "");
    holds(&queues("\"maxDequeueCount\": 2, \"visibilityTimeout\": \"00:00:30\""), "attempts=2 base=30s", "", "");
    holds(&queues("\"maxDequeueCount\": 2, \"visibilityTimeout\": \"30s\""), "attempts=2", "`30s`", "");
    let function = |trigger: &str| {
        format!(
            "{{\"bindings\": [{{\"type\": \"{trigger}\"}}], \"retry\": {{\"maxRetryCount\": 2, {}}}}}",
            fixed.replace('\'', "\"")
        )
    };
    let of_trigger =
        |trigger: &str| remarks(&function(trigger), RemarkKind::Note).iter().any(|note| note.contains("starts this"));
    assert!(of_trigger("httpTrigger") && !of_trigger("timerTrigger"));
}

#[test]
fn each_option_of_a_client_of_service_bus_has_the_range_that_it_accepts() {
    let client = |options: &str| {
        format!("{{\"RetryOptions\": {{\"TryTimeout\": \"00:00:30\", {}}}}}", options.replace('\'', "\""))
    };
    for (options, settings, invalid) in [
        ("'Mode': 'Fixed'", "attempts=4* base=800ms* multiplier=1 jitter=add:64ms* each=30s", ""),
        ("'Mode': 0, 'Delay': '00:02:00'", "base=60s multiplier=1 jitter=none", ""),
        ("'Mode': 'fixed', 'Delay': '00:00:05', 'MaxDelay': '00:00:05'", "base=5s multiplier=1 jitter=none", ""),
        ("'Mode': 'fixed', 'Delay': '00:00:05', 'MaxDelay': '00:00:05.1'", "jitter=add:100ms", ""),
        ("'Mode': 'Exponential'", "attempts=4* base=1.6s* cap=60s* multiplier=2", ""),
        ("'Mode': 'linear'", "attempts=4*", "`linear`"),
        ("'MaxRetries': 0", "attempts=1 ", ""),
        ("'MaxRetries': 100", "attempts=101", ""),
        ("'MaxRetries': 101", "attempts=unknown", "from 0 to 100"),
        ("'MaxRetries': -1", "attempts=unknown", "from 0 to 100"),
        ("'Delay': '00:00:00'", "attempts=unknown", "from 1ms to 5m"),
        ("'Delay': '00:05:01'", "attempts=unknown", "from 1ms to 5m"),
        ("'MaxDelay': '00:00:00'", "attempts=1 ", ""),
        ("'MaxDelay': '00:00:01'", "base=1s", ""),
        ("'MaximumRetries': 2, 'MaximumDelay': '00:00:05'", "attempts=3 base=1.6s* cap=5s", ""),
    ] {
        holds(&client(options), settings, invalid, "");
    }
    let long = "{\"RetryOptions\": {\"MaxRetries\": 1, \"TryTimeout\": \"01:00:01\"}}";
    holds(long, "attempts=2 base=1.6s* cap=60s* multiplier=2* jitter=add:64ms* each=unknown", "from 0s to 1h", "");
}

#[test]
fn each_option_of_polly_has_the_range_that_its_validation_accepts() {
    let handler = |sections: &str| format!("{{\"Http\": {{{}}}}}", sections.replace('\'', "\""));
    let retry = |options: &str| handler(&format!("'Retry': {{'UseJitter': false, {options}}}, 'AttemptTimeout': {{}}"));
    let timeouts =
        |sections: &str| handler(&format!("'Retry': {{'MaxRetryAttempts': 2, 'Delay': '0:01'}}, {sections}"));
    for (text, settings, invalid) in [
        (
            retry("'MaxRetryAttempts': 1"),
            "attempts=2 base=2s* cap=none* multiplier=2* jitter=none each=10s* all=30s*",
            "",
        ),
        (retry("'MaxRetryAttempts': 0"), "attempts=unknown", "from 1 to"),
        (retry("'MaxRetryAttempts': 2147483647"), "attempts=none", ""),
        (retry("'MaxRetryAttempts': 2147483648"), "attempts=unknown", "from 1 to"),
        (retry("'Delay': '00:00:00'"), "base=0ns", ""),
        (retry("'Delay': '1.00:00:00'"), "base=86400s", ""),
        // A bare number counts days.
        (retry("'Delay': 5"), "attempts=4* cap", "from 0s to 1d"),
        (retry("'MaxDelay': '00:00:00'"), "base=0ns", ""),
        (retry("'MaxDelay': '2.00:00:00'"), "cap=unknown", "from 0s to 1d"),
        (retry("'BackoffType': 'constant'"), "multiplier=1 ", ""),
        (retry("'BackoffType': 0"), "multiplier=1 ", ""),
        (retry("'BackoffType': 'Doubling'"), "base=2s* cap=none* jitter", "Constant, Linear or Exponential"),
        (timeouts("'AttemptTimeout': {'Timeout': '00:00:00'}"), "each=unknown", "from 10ms to 1d"),
        (timeouts("'TotalRequestTimeout': {'Timeout': '2.00:00:00'}"), "all=unknown", "from 10ms to 1d"),
        (timeouts("'CircuitBreaker': {'SamplingDuration': '00:00:00.1'}"), "each=10s*", "from 500ms to 1d"),
    ] {
        holds(&text, settings, invalid, "");
    }
    // A library with options of its own.
    let own =
        "'TotalRequestTimeoutSeconds': 10, 'Retry': {'MaxRetryAttempts': 3, 'UseJitter': true, 'BaseDelaySeconds': 1}";
    holds(&handler(own), "Call Http at 1:2: attempts=4 jitter=decorrelated", "", "");
    holds(&handler(&format!("{own}, 'RateLimiter': {{}}, 'CircuitBreaker': {{}}")), "attempts=4 jitter", "", "");
    assert!(
        !described(&handler(own))[0].contains("unsafe") && read(&handler(own), None).unwrap()[0].policy().is_none()
    );
    let unread = remarks(&handler(own), RemarkKind::NotRead);
    assert!(unread.len() == 1 && unread[0].contains("no option `TotalRequestTimeoutSeconds`"), "{unread:?}");
    let polly = "{\"Strategy\": {\"MaxRetryAttempts\": 2, \"UseJitter\": \"sometimes\", \"AttemptTimeout\": {}}}";
    holds(polly, "attempts=3 base=2s* cap=none* multiplier=1*", "true or false", "no option of this name");
    let plain = "{\"Strategy\": {\"MaxRetryAttempts\": 2, \"Delay\": \"0:05\"}}";
    holds(plain, "attempts=3 base=300s cap=none* multiplier=1* jitter=none* budget", "", "");
}
