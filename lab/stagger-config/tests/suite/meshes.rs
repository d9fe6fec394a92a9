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
fn each_field_of_a_virtual_service_does_what_its_row_says() {
    let route = |fields: &str| {
        format!(
            "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{name: a}}\nspec: {{http: [{{{fields}}}]}}\n"
        )
    };
    let retries = |fields: &str| route(&format!("retries: {{{fields}}}"));
    let grows = "base=25ms* cap=250ms* multiplier=2* jitter=full*";
    let both = "each=none* all=none*";
    for (text, wanted, refused) in [
        (route("name: a"), format!("attempts=3* {grows} {both}"), 0),
        (route("redirect: {uri: /}"), String::new(), 0),
        (route("directResponse: {status: 200}"), String::new(), 0),
        (route("delegate: {name: b}"), String::new(), 0),
        (retries("retryOn: 5xx"), "attempts=1 all=none* unsafe".into(), 1),
        (retries("attempts: 0"), "attempts=1 all=none*".into(), 0),
        (retries("attempts: 0, retryRemoteLocalities: true"), "attempts=1 all=none*".into(), 1),
        (retries("attempts: 2, retryOn: ''"), format!("attempts=3 {grows} {both}"), 0),
        (retries("attempts: 2, retryOn: '503,reset'"), format!("attempts=3 {grows} {both} unsafe"), 0),
        (retries("attempts: 2, retryOn: '503, reset'"), format!("attempts=3 {grows} {both} unsafe"), 1),
        (retries("attempts: 2, retryOn: '599'"), format!("attempts=3 {grows} {both} unsafe"), 1),
        (retries("attempts: 2, retryOn: 'reset,'"), format!("attempts=3 {grows} {both} unsafe"), 1),
        (retries("attempts: 2, perTryTimeout: 2s"), format!("attempts=3 {grows} each=2s all=none*"), 0),
        (retries("attempts: 2, perTryTimeout: 0s"), format!("attempts=3 {grows} each=unknown all=none*"), 1),
        (retries("attempts: 2, perTryTimeout: 1.5ms"), format!("attempts=3 {grows} each=unknown all=none*"), 1),
        (
            retries("attempts: 2, backoff: 1s"),
            format!("attempts=3 base=1s cap=10s* multiplier=2* jitter=full* {both}"),
            0,
        ),
        (retries("attempts: 2, backoff: 10us"), format!("attempts=3 {both}"), 1),
        (route("timeout: 5s"), format!("attempts=3* {grows} each=5s* all=5s"), 0),
        (route("timeout: 0s"), format!("attempts=3* {grows} each=unknown* all=unknown"), 1),
    ] {
        let lines = described(&text);
        let settings = lines.first().map_or("", |line| line.split_once(": ").unwrap().1);
        assert_eq!(settings, wanted, "{text}");
        let found = remarks(&text, RemarkKind::Invalid);
        assert_eq!(found.len(), refused, "{text}: {found:?}");
    }
}

#[test]
fn the_settings_of_a_port_inherit_nothing_of_the_pool_of_all_ports() {
    let rule = |policy: &str, subset: &str| {
        let subsets =
            if subset.is_empty() { String::new() } else { format!(", subsets: [{{trafficPolicy: {{{subset}}}}}]") };
        format!(
            "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {{name: a}}\nspec: {{trafficPolicy: \
             {{{policy}}}{subsets}}}\n"
        )
    };
    let pool = |retries: u32| format!("connectionPool: {{http: {{maxRetries: {retries}}}}}");
    let ports = |settings: &str| format!("portLevelSettings: [{{port: {{number: 80}}, {settings}}}]");
    let budget = "retryBudget: {minRetryConcurrency: 0}";
    for (text, wanted) in [
        (rule(&format!("{}, {}", pool(5), ports(&pool(7))), ""), &["at most 5", "at most 7"][..]),
        (rule(&format!("{}, {}", pool(5), ports("tls: {}")), ""), &["at most 5", "none"]),
        (rule(&format!("{budget}, {}", ports("tls: {}")), ""), &["20% of the active requests, at least 3", "none"]),
        (rule(&pool(5), &ports("tls: {}")), &["at most 5", "at most 5", "none"]),
        (rule(budget, &ports("tls: {}")), &["20% of", "20% of", "20% of"]),
        (rule("retryBudget: {percent: 5}", &pool(7)), &["5% of", "5% of"]),
    ] {
        let lines = described(&text);
        let found: Vec<_> = lines.iter().map(|line| line.split_once("budget=(").unwrap().1).collect();
        assert_eq!(found.len(), wanted.len(), "{text}: {found:?}");
        assert!(found.iter().zip(wanted).all(|(found, wanted)| found.starts_with(wanted)), "{text}: {found:?}");
    }
    let misplaced = rule(&ports(budget), "");
    let found = remarks(&misplaced, RemarkKind::NoEffect);
    assert!(found.len() == 1 && found[0].contains("of a port"), "{found:?}");
    assert!(described(&misplaced).iter().all(|line| line.ends_with("budget=(none)*")), "{:?}", described(&misplaced));
    let negative = remarks(&rule("connectionPool: {http: {maxRetries: -1}}", ""), RemarkKind::Invalid);
    assert_eq!(negative.len(), 1, "{negative:?}");
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
            "Call ServiceProfile/cart.shop.svc.cluster.local.routes[1] at 11:5: attempts=none* base=0ns* jitter=none* all=none* budget=(10% of the requests of 20s, at least 5/s)",
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
            "Call Service/cart annotations at 6:5: attempts=4 base=50ms* cap=250ms* multiplier=2* jitter=equal* each=300ms all=2s budget=(none)* unsafe",
        ],
    );
    assert_eq!(remarks(service, RemarkKind::Unmapped).len(), 1);
}

#[test]
fn each_annotation_of_linkerd_does_what_its_row_says() {
    let of = |kind: &str, annotations: &str| {
        let group = if kind.ends_with("Route") { "gateway.networking.k8s.io/v1" } else { "v1" };
        let annotations =
            annotations.replace("retry.", "retry.linkerd.io/").replace("all: ", "timeout.linkerd.io/request: ");
        format!("apiVersion: {group}\nkind: {kind}\nmetadata: {{name: a, annotations: {{{annotations}}}}}\n")
    };
    let ends = "each=none* all=none* budget=(none)*";
    let grows = format!("base=50ms* cap=250ms* multiplier=2* jitter=equal* {ends}");
    let cut = format!("base=50ms* cap=250ms* multiplier=2* {ends}");
    let timed = "base=50ms* cap=250ms* multiplier=2* jitter=equal* each=300ms all=none* budget=(none)* unsafe";
    for (kind, annotations, wanted, refused) in [
        ("Service", "retry.http: '429'", format!("attempts=2* {grows}"), ""),
        ("Service", "retry.http: 'gateway-error,500-504'", format!("attempts=2* {grows} unsafe"), ""),
        ("Service", "retry.http: '429, 503'", format!("attempts=unknown {cut} unsafe"), "` 503`"),
        ("Service", "retry.http: '600'", format!("attempts=unknown {cut}"), "`600`"),
        ("Service", "retry.grpc: unavailable", format!("attempts=2* {grows}"), ""),
        ("Service", "retry.grpc: aborted", format!("attempts=unknown {cut}"), "`aborted`"),
        // 0 is the default, and each of the three turns retries on.
        ("Service", "retry.http: '429', retry.limit: '0'", format!("attempts=2* {grows}"), ""),
        ("Service", "retry.limit: '3'", format!("attempts=4 {grows}"), ""),
        ("Service", "retry.limit: '4'", format!("attempts=5 {cut}"), ""),
        ("Service", "retry.limit: many", format!("attempts=unknown {cut}"), "`many`"),
        ("Service", "retry.timeout: 300ms", format!("attempts=2* {timed}"), ""),
        (
            "Service",
            "retry.limit: '1', retry.timeout: '0'",
            format!("attempts=2 {}", grows.replace("each=none*", "each=none")),
            "",
        ),
        (
            "Service",
            "retry.limit: '1', retry.timeout: 1.5s",
            format!("attempts=2 {}", grows.replace("each=none*", "each=unknown")),
            "1.5s",
        ),
        (
            "Service",
            "retry.limit: '1', retry.timeout: '5'",
            format!("attempts=2 {}", grows.replace("each=none*", "each=unknown")),
            "`5`",
        ),
        (
            "Service",
            "retry.limit: '1', all: 1d",
            format!("attempts=2 {}", grows.replace("all=none*", "all=86400s")),
            "",
        ),
        ("HTTPRoute", "retry.http: '429'", format!("attempts=2* {grows}"), ""),
        ("GRPCRoute", "retry.grpc: unavailable", format!("attempts=2* {grows}"), ""),
        ("GRPCRoute", "retry.http: '429', retry.limit: '2'", format!("attempts=3 {grows}"), "no such annotation"),
    ] {
        let text = of(kind, annotations);
        let lines = described(&text);
        assert_eq!(lines[0].split_once(": ").unwrap().1, wanted, "{annotations}");
        let found = [remarks(&text, RemarkKind::Invalid), remarks(&text, RemarkKind::NoEffect)].concat();
        assert_eq!(found.len(), usize::from(!refused.is_empty()), "{annotations}: {found:?}");
        assert!(found.iter().all(|remark| remark.contains(refused)), "{annotations}: {found:?}");
    }
    for (text, kind) in [
        (of("GRPCRoute", "retry.http: '429'"), "Unread"),
        (of("Service", "all: 2s"), "Timeout"),
        (of("Service", "retry.limit: '2'").replace("v1", "serving.knative.dev/v1"), "Unread"),
    ] {
        let lines = described(&text);
        assert!(lines.len() == 1 && lines[0].starts_with(kind), "{text}: {lines:?}");
    }
}

#[test]
fn a_budget_of_linkerd_is_whole_and_over_a_minute_at_most() {
    let profile = |fields: &str, route: &str| {
        format!(
            "apiVersion: linkerd.io/v1alpha2\nkind: ServiceProfile\nmetadata: {{name: a}}\nspec:\n  {fields}\n  routes: \
             [{{condition: {{method: GET}}, isRetryable: true, {route}}}]\n"
        )
    };
    let budget = |ttl: &str| format!("retryBudget: {{retryRatio: 0.1, minRetriesPerSecond: 5, ttl: {ttl}}}");
    let default = "budget=(20% of the requests of 10s, at least 10/s)*";
    let at_once = "base=0ns* jitter=none*";
    for (text, wanted, refused) in [
        (profile("", ""), format!("attempts=none* {at_once} all=none* {default}"), ""),
        (profile("", "timeout: 0s"), format!("attempts=none* {at_once} all=none {default}"), ""),
        (profile("", "timeout: soon"), format!("attempts=none* {at_once} all=unknown {default}"), "`soon`"),
        (
            profile("retryBudget: {retryRatio: 0.1}", ""),
            format!("attempts=none* {at_once} all=none*"),
            "minRetriesPerSecond",
        ),
        (
            profile(&budget("60s"), ""),
            format!("attempts=none* {at_once} all=none* budget=(10% of the requests of 60s, at least 5/s)"),
            "",
        ),
        (
            profile(&budget("2m"), ""),
            "attempts=1* all=none* budget=(10% of the requests of 120s, at least 5/s)".to_owned(),
            "from 1s to 60s",
        ),
    ] {
        let lines = described(&text);
        let settings = lines[0].split_once(": ").unwrap().1.replace("of 1m,", "of 60s,").replace("of 2m,", "of 120s,");
        assert_eq!(settings, wanted, "{text}");
        let found = remarks(&text, RemarkKind::Invalid);
        assert_eq!(found.len(), usize::from(!refused.is_empty()), "{text}: {found:?}");
        assert!(found.iter().all(|remark| remark.contains(refused)), "{text}: {found:?}");
    }
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
