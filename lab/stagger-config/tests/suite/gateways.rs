//! The fields of the Gateway API, Envoy Gateway, Envoy, gRPC and Dapr, row by row.

use stagger_config::{RemarkKind, read};

use crate::described::{described, holds, remarks};

#[test]
fn each_field_of_the_gateway_api_has_the_range_that_its_server_accepts() {
    let route = |rule: &str| {
        format!("apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nspec: {{rules: [{{{rule}}}]}}\n")
    };
    let constraint = |constraint: &str| {
        format!(
            "apiVersion: gateway.networking.x-k8s.io/v1alpha1\nkind: XBackendTrafficPolicy\nspec: {{retryConstraint: {{{constraint}}}}}\n"
        )
    };
    for (text, settings, invalid) in [
        (route("retry: {attempts: 1}"), "attempts=2", ""),
        (route("retry: {attempts: 0}"), "attempts=unknown", "1 or more"),
        (route("retry: {backoff: 0s}"), "base=0ns", ""),
        (route("retry: {attempts: 2, backoff: 1h30m10s500ms}"), "attempts=3 base=5410.5s", ""),
        (route("retry: {attempts: 2, backoff: 1.5s}"), "attempts=3", "`1.5s` is not a length"),
        (route("retry: {attempts: 2, backoff: 500us}"), "attempts=3", "`500us` is not a length"),
        (route("retry: {attempts: 2, backoff: 100000ms}"), "attempts=3", "is not a length"),
        (route("retry: {attempts: 2, backoff: 1h1m1s1ms1ms}"), "attempts=3", "is not a length"),
        (route("retry: {attempts: 2, backoff: 1}"), "attempts=3", "`1` is not a length"),
        (route("timeouts: {request: 0s}"), "all=none", ""),
        (route("timeouts: {request: 2s, backendRequest: 1s}"), "each=1s all=2s", ""),
        (route("timeouts: {request: 2s, backendRequest: 3s}"), "each=3s all=2s", "longer than request"),
        (constraint("{}".trim_matches(['{', '}'])), "budget=(20% of the requests of 10s, at least 10/s)", ""),
        (constraint("budget: {percent: 5}"), "budget=(5% of the requests of 10s, at least 10/s)", ""),
        (constraint("budget: {percent: 101}"), "Limit", "from 0 to 100"),
        (constraint("budget: {interval: 500ms}"), "Limit", "from 1s to 1h"),
        (constraint("minRetryRate: {count: 3, interval: 2s}"), "at least 1.5/s", ""),
        (constraint("minRetryRate: {count: 0, interval: 2s}"), "Limit", "1 or more"),
        (constraint("minRetryRate: {count: 3, interval: 2h}"), "Limit", "up to 1h"),
    ] {
        holds(&text, settings, invalid, "");
    }
    // Half a rate has no default.
    assert!(!described(&constraint("minRetryRate: {count: 3}"))[0].contains("budget"));
}

#[test]
fn each_field_of_a_policy_of_envoy_gateway_is_read_as_it_is_translated() {
    let policy = |retry: &str, beside: &str| {
        format!(
            "apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: BackendTrafficPolicy\nspec: {{retry: {{{retry}}}{beside}}}\n"
        )
    };
    let breaker = |fields: &str| policy("numRetries: 2", &format!(", circuitBreaker: {{{fields}}}"));
    let full = "attempts=3* base=25ms* cap=250ms* multiplier=2* jitter=full* all=15s* budget=(at most 1024 retries at once)* unsafe";
    for (text, settings, invalid, ignored) in [
        (policy("perRetry: {}", ""), full, "", ""),
        (policy("numRetries: 0", ""), "attempts=1 ", "", ""),
        (policy("numRetries: few", ""), "attempts=unknown", "whole number", ""),
        (policy("perRetry: {timeout: 1s}", ""), "each=1s", "", ""),
        (policy("perRetry: {timeout: 0s}", ""), "jitter=full* all=15s*", "", ""),
        (policy("perRetry: {backOff: {baseInterval: 1s}}", ""), "base=1s cap=10s*", "", ""),
        (policy("perRetry: {backOff: {baseInterval: 0s}}", ""), "attempts=3* multiplier", "above zero", ""),
        (policy("perRetry: {backOff: {baseInterval: 2s, maxInterval: 1s}}", ""), "cap=1s", "below baseInterval", ""),
        (policy("numRetries: 2", ", timeout: {http: {requestTimeout: 3s}}"), "all=3s", "", ""),
        (policy("numRetries: 2", ", timeout: {http: {requestTimeout: 0s}}"), "all=none", "", ""),
        (breaker("maxParallelRetries: 9"), "budget=(at most 9 retries at once)", "", ""),
        (breaker("maxParallelRetries: 0"), "attempts=1 ", "", "lets no retry pass"),
        (
            breaker("maxParallelRetries: 9, retryBudget: {percent: {numerator: 25}}"),
            "budget=(25% of the active requests, at least 3 at once)",
            "",
            "",
        ),
        (
            breaker("retryBudget: {percent: {numerator: 1, denominator: 8}, minRetryConcurrency: 5}"),
            "budget=(12% of the active requests, at least 5 at once)",
            "",
            "",
        ),
        (
            policy("retryOn: {triggers: [connect-failure], httpStatusCodes: [500]}", ""),
            "attempts=3*",
            "",
            "without `retriable-status-codes`",
        ),
    ] {
        holds(&text, settings, invalid, ignored);
    }
    let repeats = |on: &str| read(&policy(&format!("retryOn: {{{on}}}"), ""), None).unwrap()[0].may_repeat_unsafe;
    assert_eq!(repeats("triggers: [connect-failure], httpStatusCodes: [500]"), Some(false));
    assert_eq!(repeats("triggers: [retriable-status-codes], httpStatusCodes: [500]"), Some(true));
    assert_eq!(repeats("triggers: [retriable-status-codes], httpStatusCodes: [429]"), Some(false));
    assert_eq!(repeats("triggers: ['${T}']"), None);
}

#[test]
fn each_field_of_envoy_is_read_as_envoy_reads_it() {
    let route = |policy: &str, beside: &str| format!("route: {{cluster: a, retry_policy: {{{policy}}}{beside}}}\n");
    let of_cluster = |thresholds: &str| {
        format!(
            "static_resources: {{clusters: [{{name: a, circuit_breakers: {{thresholds: [{thresholds}]}}}}], listeners: \
             [{{route: {{cluster: a, retry_policy: {{retry_on: reset}}}}}}]}}\n"
        )
    };
    let plain =
        "attempts=2* base=25ms* cap=250ms* multiplier=2* jitter=full* all=15s* budget=(at most 3 retries at once)*";
    for (text, settings, invalid, ignored) in [
        (route("retry_on: reset", ""), plain, "", ""),
        (route("retry_on: reset, num_retries: 0", ""), "attempts=1 ", "", ""),
        (route("retry_on: reset, num_retries: -1", ""), "attempts=unknown", "whole number", ""),
        (route("retry_on: 'reset,sometimes', num_retries: 1", ""), "attempts=2 ", "", "no condition `sometimes`"),
        (route("retry_on: reset, per_try_timeout: 1s", ""), "each=1s", "", ""),
        (route("retry_on: reset, per_try_timeout: 0s", ""), "jitter=full* all=15s*", "", ""),
        (route("retry_on: reset", ", timeout: 2s"), "all=2s", "", ""),
        (route("retry_on: reset", ", timeout: 0s"), "all=none", "", ""),
        (route("retry_on: reset, retry_back_off: {base_interval: 1s}", ""), "base=1s cap=10s*", "", ""),
        (route("retry_on: reset, retry_back_off: {base_interval: 0.0001s}", ""), "base=1ms cap=10ms*", "", ""),
        (route("retry_on: reset, retry_back_off: {base_interval: 0s}", ""), "attempts=2* multiplier", "above zero", ""),
        (route("retry_on: reset, retry_back_off: {max_interval: 1s}", ""), "cap=1s", "base_interval is required", ""),
        (
            route("retry_on: reset, retry_back_off: {base_interval: 2s, max_interval: 1s}", ""),
            "base=2s cap=1s",
            "below base_interval",
            "",
        ),
        (
            route("retry_on: reset, retriable_headers: [{name: x}]", ""),
            "attempts=2*",
            "",
            "without `retriable-headers`",
        ),
        (
            route("retry_on: reset, retriable_status_codes: [503]", ""),
            "attempts=2*",
            "",
            "without `retriable-status-codes`",
        ),
        (of_cluster("{max_retries: 9}"), "budget=(at most 9 retries at once)", "", ""),
        (of_cluster("{priority: HIGH, max_retries: 9}"), "budget=(at most 3 retries at once)*", "", ""),
        (of_cluster("{max_retries: 0}"), "attempts=1 ", "", "lets no retry pass"),
        (of_cluster("{retry_budget: {}, max_retries: 9}"), "budget=(20% of the active requests, at least 3", "", ""),
        (
            of_cluster("{retry_budget: {budget_percent: {value: 50}, min_retry_concurrency: 1}}"),
            "budget=(50% of the active requests, at least 1 at once)",
            "",
            "",
        ),
    ] {
        holds(&text, settings, invalid, ignored);
    }
    let silent = remarks(&route("num_retries: 2, per_try_timeout: 1s", ""), RemarkKind::Note);
    assert!(silent.iter().any(|note| note.contains("nothing is retried unless")), "{silent:?}");
}

#[test]
fn each_field_of_a_service_config_is_read_as_a_channel_reads_it() {
    let config = |policy: &str, beside: &str| {
        let fields = "'maxAttempts': 3, 'initialBackoff': '1s', 'maxBackoff': '4s', 'backoffMultiplier': 2, \
                      'retryableStatusCodes': ['UNAVAILABLE']";
        let mut fields: Vec<&str> = fields.split(", '").collect();
        let name = policy.split(':').next().unwrap().trim_matches('\'');
        fields.retain(|field| !field.trim_start_matches('\'').starts_with(name));
        let rest: String = fields.iter().map(|field| format!(", '{}", field.trim_start_matches('\''))).collect();
        format!(
            "{{'methodConfig': [{{'name': [{{}}], 'retryPolicy': {{{}}}}}]{beside}}}",
            [policy, &rest].concat().trim_start_matches(", ")
        )
        .replace('\'', "\"")
    };
    let throttled = |throttling: &str| config("'maxAttempts': 3", &format!(", 'retryThrottling': {{{throttling}}}"));
    for (text, settings, invalid) in [
        (
            config("'maxAttempts': 3", ""),
            "attempts=3 base=1s cap=4s multiplier=2 jitter=±20%* all=none* budget=(none)*",
            "",
        ),
        (config("'maxAttempts': 1", ""), "attempts=", "maxAttempts"),
        (config("'maxAttempts': 9", ""), "attempts=5", "5 attempts and not 9"),
        (config("'initialBackoff': '0s'", ""), "attempts=3", "initialBackoff"),
        (config("'maxBackoff': '0s'", ""), "attempts=3", "maxBackoff"),
        (config("'backoffMultiplier': 0", ""), "attempts=3", "backoffMultiplier"),
        (config("'retryableStatusCodes': []", ""), "attempts=3", "retryableStatusCodes"),
        (throttled("'maxTokens': 10, 'tokenRatio': 0.1"), "budget=(10 tokens", ""),
        (throttled("'maxTokens': 0, 'tokenRatio': 0.1"), "attempts=3", "maxTokens"),
        (throttled("'maxTokens': 1001, 'tokenRatio': 0.1"), "attempts=3", "maxTokens"),
        (throttled("'maxTokens': 10, 'tokenRatio': 0"), "attempts=3", "tokenRatio"),
    ] {
        holds(&text, settings, invalid, "");
    }
    for name in ["initialBackoff", "maxBackoff", "backoffMultiplier"] {
        let text = config(&format!("'{name}': null"), "");
        let found = remarks(&text, RemarkKind::Invalid);
        assert!(found.len() == 1 && found[0].contains(name), "{text}: {found:?}");
    }
    let unnamed = config("'maxAttempts': 3", "").replace("\"name\": [{}], ", "");
    holds(&unnamed, "attempts=3", "", "without a name");
}

#[test]
fn each_field_of_dapr_is_read_as_its_runtime_reads_it() {
    let policy = |name: &str, fields: &str| {
        format!(
            "apiVersion: dapr.io/v1alpha1\nkind: Resiliency\nspec:\n  policies:\n    timeouts: {{t: 2s, ms: '500'}}\n    \
             retries: {{{name}: {{{fields}}}}}\n  targets: {{apps: {{a: {{retry: used, timeout: t}}, b: {{retry: quick, timeout: ms}}}}}}\n"
        )
    };
    for (text, settings, invalid, ignored) in [
        (policy("used", "policy: constant"), "attempts=none* base=5s* multiplier=1 jitter=none* each=2s", "", ""),
        (policy("used", "policy: Constant, duration: 3s, maxRetries: 2"), "attempts=3 base=3s", "", ""),
        // A bare number counts milliseconds.
        (policy("used", "duration: '3000', maxRetries: 2"), "attempts=3 base=3s", "", ""),
        (policy("quick", "maxRetries: 2"), "each=500ms", "", ""),
        (policy("used", "duration: 0s, maxRetries: 2"), "base=0ns", "", ""),
        (policy("used", "duration: soon, maxRetries: 2"), "attempts=3 ", "`soon`", ""),
        (policy("used", "maxRetries: 0"), "attempts=1 ", "", ""),
        (policy("used", "maxRetries: -1"), "attempts=none ", "", ""),
        (policy("used", "maxRetries: many"), "attempts=unknown", "or -1 for no limit", ""),
        (policy("used", "policy: linear"), "attempts=none*", "constant or exponential", ""),
        (
            policy("used", "policy: exponential"),
            "base=500ms* cap=60s* multiplier=1.5* jitter=±50%* each=2s all=900s*",
            "",
            "",
        ),
        (policy("used", "policy: EXPONENTIAL, maxInterval: 9s"), "base=500ms* cap=9s", "", ""),
        (policy("used", "policy: exponential, duration: 9s"), "base=500ms*", "", "begins at 500ms"),
        (policy("used", "policy: constant, maxInterval: 9s"), "base=5s*", "", "does not grow"),
        (policy("unused", "maxRetries: 2"), "attempts=3", "", "no target names this policy"),
        (policy("DefaultThing", "maxRetries: 2"), "attempts=3", "", "no target names this policy"),
        (policy("DefaultRetryPolicy", "maxRetries: 2"), "attempts=3", "", ""),
        (policy("DefaultAppRetryPolicy", "maxRetries: 2"), "attempts=3", "", ""),
        (policy("DefaultPubsubComponentInboundRetryPolicy", "maxRetries: 2"), "attempts=3", "", ""),
        (policy("DefaultComponentOutboundRetryPolicy", "maxRetries: 2"), "attempts=3", "", ""),
        (policy("DaprBuiltInServiceRetries", "duration: 1s"), "attempts=4*", "", ""),
        (policy("DaprBuiltInServiceRetries", "maxRetries: 9"), "attempts=10 ", "", ""),
        (policy("DaprBuiltInServiceRetries", "maxRetries: 1"), "attempts=4 ", "at least 3 retries", ""),
        (policy("DaprBuiltInActorRetries", "maxRetries: -1"), "attempts=4 ", "at least 3 retries", ""),
        (
            policy("DaprBuiltInActorNotFoundRetries", "maxRetries: 9"),
            "Unread",
            "",
            "Dapr ignores a policy of this name",
        ),
    ] {
        holds(&text, settings, invalid, ignored);
    }
    let breakers =
        "apiVersion: dapr.io/v1alpha1\nkind: Resiliency\nspec: {policies: {circuitBreakers: {a: {trip: x}}}}\n";
    assert_eq!(remarks(breakers, RemarkKind::NotRead).len(), 1);
    // Which default timeout goes with a default policy is not in it.
    let default = "apiVersion: dapr.io/v1alpha1\nkind: Resiliency\nspec: {policies: {timeouts: {DefaultTimeoutPolicy: 5s}, \
                   retries: {DefaultRetryPolicy: {maxRetries: 2}}}}\n";
    assert!(!described(default)[0].contains("each="), "{:?}", described(default));
}
