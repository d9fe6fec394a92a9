//! Istio, Gateway API, Envoy Gateway and Linkerd.

use stagger_config::RemarkKind;

use crate::described::{described, expect, remarks};

const VIRTUAL_SERVICE: &str = r"apiVersion: networking.istio.io/v1beta1
kind: VirtualService
metadata:
  name: shop
spec:
  hosts: [shop]
  http:
  - match: [{uri: {prefix: /cart}}]
    retries:
      attempts: 4
      perTryTimeout: 2s
      retryOn: gateway-error,connect-failure,503
      retryRemoteLocalities: true
      retryBackoff: 1s
    timeout: 5s
    route: [{destination: {host: cart}}]
  - name: off
    retries: {attempts: 0}
    route: [{destination: {host: slow}}]
  - redirect: {uri: /elsewhere}
  - name: rest
    route: [{destination: {host: shop}}]
";

#[test]
fn a_virtual_service_retries_also_where_nobody_wrote_it() {
    expect(
        &described(VIRTUAL_SERVICE),
        &[
            "Call VirtualService/shop.http[0] at 9:5: attempts=5 base=25ms* cap=250ms* multiplier=2* jitter=full* each=2s all=5s unsafe",
            "Timeout VirtualService/shop.http[1] at 18:5: attempts=1 all=none*",
            "Call VirtualService/shop.http[3] at 21:5: attempts=3* base=25ms* cap=250ms* multiplier=2* jitter=full* each=none* all=none*",
        ],
    );
    expect(
        &remarks(VIRTUAL_SERVICE, RemarkKind::Unmapped),
        &[
            "13:7 VirtualService/shop.http[0].retries.retryRemoteLocalities: whether other regions are tried as well",
            "14:7 VirtualService/shop.http[0].retries.retryBackoff: not a field that is read here",
        ],
    );
    let notes = remarks(VIRTUAL_SERVICE, RemarkKind::Note);
    assert!(notes.len() == 1 && notes[0].starts_with("21:5 ") && notes[0].contains("retries twice"), "{notes:?}");
}

#[test]
fn a_destination_rule_that_is_silent_limits_nothing() {
    let rule = |pool: &str| {
        format!(
            "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: cart}}\nspec:\n  host: cart\n  trafficPolicy:\n{pool}"
        )
    };
    for (pool, budget) in [
        ("    outlierDetection: {consecutive5xxErrors: 5}\n", "(none)*"),
        ("    connectionPool: {http: {maxRetries: 5}}\n", "(at most 5 retries at once)"),
        ("    connectionPool: {http: {maxRetries: 4294967295}}\n", "(none)"),
        ("    retryBudget: {percent: 25}\n", "(25% of the active requests, at least 3 at once)"),
    ] {
        let found = described(&rule(pool));
        assert!(found.len() == 1 && found[0].ends_with(&format!("budget={budget}")), "{found:?}");
    }
}

#[test]
fn what_an_implementation_of_the_gateway_api_chooses_is_not_invented() {
    let route = r"apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: cart}
spec:
  rules:
  - retry: {codes: [500, 503], attempts: 2, backoff: 100ms}
    timeouts: {request: 1s, backendRequest: 0s}
  - timeouts: {request: 10s}
  - backendRefs: [{name: cart}]
---
apiVersion: gateway.networking.x-k8s.io/v1alpha1
kind: XBackendTrafficPolicy
metadata: {name: cart}
spec:
  retryConstraint: {budget: {percent: 30}, minRetryRate: {count: 5, interval: 2s}}
";
    expect(
        &described(route),
        &[
            "Call HTTPRoute/cart.rules[0] at 6:5: attempts=3 base=100ms each=none all=1s unsafe",
            "Timeout HTTPRoute/cart.rules[1] at 8:5: all=10s",
            "Limit XBackendTrafficPolicy/cart.retryConstraint at 15:3: budget=(30% of the requests of 10s, at least 2.5/s)",
        ],
    );
}

#[test]
fn envoy_gateway_has_defaults_of_its_own() {
    let policy = r"apiVersion: gateway.envoyproxy.io/v1alpha1
kind: BackendTrafficPolicy
metadata: {name: cart}
spec:
  retry:
    numRetries: 5
    perRetry: {timeout: 250ms, backOff: {baseInterval: 100ms, maxInterval: 10s}}
    retryOn: {httpStatusCodes: [503], triggers: [connect-failure]}
---
apiVersion: gateway.envoyproxy.io/v1alpha1
kind: BackendTrafficPolicy
metadata: {name: rest}
spec: {retry: {retryOn: {triggers: [connect-failure]}}, circuitBreaker: {maxParallelRetries: 7}}
";
    expect(
        &described(policy),
        &[
            "Call BackendTrafficPolicy/cart.spec.retry at 5:3: attempts=6 base=100ms cap=10s multiplier=2* jitter=full* each=250ms all=15s* budget=(at most 1024 retries at once)*",
            "Call BackendTrafficPolicy/rest.spec.retry at 13:8: attempts=3* base=25ms* cap=250ms* multiplier=2* jitter=full* all=15s* budget=(at most 7 retries at once)",
        ],
    );
}

#[test]
fn a_service_profile_retries_at_once_and_without_a_number() {
    let profile = r"apiVersion: linkerd.io/v1alpha2
kind: ServiceProfile
metadata: {name: cart.shop.svc.cluster.local}
spec:
  retryBudget: {retryRatio: 0.1, minRetriesPerSecond: 5, ttl: 20s}
  routes:
  - condition: {method: POST, pathRegex: /order}
    isRetryable: true
    timeout: 300ms
  - condition: {method: GET, pathRegex: /}
    isRetryable: true
  - condition: {method: GET, pathRegex: /slow}
";
    expect(
        &described(profile),
        &[
            "Call ServiceProfile/cart.shop.svc.cluster.local.routes[0] at 8:5: attempts=none* base=0ns* jitter=none* all=300ms budget=(10% of the requests of 20s, at least 5/s) unsafe",
            "Call ServiceProfile/cart.shop.svc.cluster.local.routes[1] at 11:5: attempts=none* base=0ns* jitter=none* all=10s* budget=(10% of the requests of 20s, at least 5/s)",
        ],
    );
    let unused = profile.replace("isRetryable: true", "isRetryable: false");
    let found = remarks(&unused, RemarkKind::NoEffect);
    assert!(found.len() == 1 && found[0].starts_with("5:3 "), "{found:?}");
}

#[test]
fn annotations_of_linkerd_are_read_on_any_object() {
    let service = r#"apiVersion: v1
kind: Service
metadata:
  name: cart
  annotations:
    retry.linkerd.io/http: 5xx
    retry.linkerd.io/limit: "3"
    retry.linkerd.io/timeout: 300ms
    timeout.linkerd.io/request: 2s
    timeout.linkerd.io/idle: 5s
"#;
    expect(
        &described(service),
        &[
            "Call Service/cart annotations at 6:5: attempts=4 base=50ms* cap=500ms* multiplier=2* jitter=equal* each=300ms all=2s budget=(none)* unsafe",
        ],
    );
    assert_eq!(remarks(service, RemarkKind::Unmapped).len(), 1);
}

/// Returns whether the only entry of a file may repeat requests that are not safe to repeat.
#[track_caller]
fn repeats_unsafe(text: &str) -> bool {
    let [line] = &described(text)[..] else { panic!("one entry: {text}") };
    line.ends_with(" unsafe")
}

#[test]
fn a_route_for_idempotent_methods_only_repeats_nothing_unsafe() {
    let istio = |conditions: &str| {
        format!(
            "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{name: shop}}\nspec:\n  http:\n  - match: {conditions}\n    retries: {{attempts: 2, retryOn: 5xx}}\n"
        )
    };
    let gateway = |conditions: &str| {
        format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nmetadata: {{name: shop}}\nspec:\n  rules:\n  - matches: {conditions}\n    retry: {{attempts: 2, codes: [500]}}\n"
        )
    };
    let linkerd = |conditions: &str| {
        format!(
            "apiVersion: policy.linkerd.io/v1beta3\nkind: HTTPRoute\nmetadata: {{name: shop, annotations: {{retry.linkerd.io/http: 5xx}}}}\nspec:\n  rules:\n  - matches: {conditions}\n"
        )
    };
    let envoy = |condition: &str| {
        format!("virtual_hosts:\n- routes:\n  - match: {condition}\n    route: {{retry_policy: {{retry_on: 5xx}}}}\n")
    };
    for (text, is_unsafe) in [
        (istio("[{method: {exact: GET}}]"), false),
        (istio("[{method: {regex: '^(GET|HEAD)$'}}]"), false),
        (istio("[{method: {regex: 'GET|POST'}}]"), true),
        (istio("[{method: {prefix: P}}]"), true),
        // One of the conditions must hold: the second is for all methods.
        (istio("[{method: {exact: GET}}, {uri: {prefix: /cart}}]"), true),
        (istio("[]"), true),
        (gateway("[{method: GET}, {method: DELETE, path: {value: /}}]"), false),
        (gateway("[{method: GET}, {method: PATCH}]"), true),
        (gateway("[{path: {value: /}}]"), true),
        (linkerd("[{method: GET}]"), false),
        (linkerd("[{method: POST}]"), true),
        (linkerd("[]"), true),
        (envoy("{prefix: /, headers: [{name: ':method', string_match: {exact: GET}}]}"), false),
        (envoy("{prefix: /, headers: [{name: ':method', exact_match: GET}]}"), false),
        (envoy("{prefix: /, headers: [{name: ':method', string_match: {safe_regex: {regex: GET|PUT}}}]}"), false),
        (envoy("{prefix: /, headers: [{name: ':method', exact_match: GET, invert_match: true}]}"), true),
        (envoy("{prefix: /, headers: [{name: x-method, exact_match: GET}]}"), true),
        (envoy("{prefix: /}"), true),
    ] {
        assert_eq!(repeats_unsafe(&text), is_unsafe, "{text}");
    }
}
