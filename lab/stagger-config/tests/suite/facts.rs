//! No false fact: what is not known, what a system ignores or refuses, and what belongs to another part of a file.

use stagger_config::{EntryKind, Limit, RemarkKind, read};

use crate::described::{described, expect, remarks};

/// Returns the attempts of the only entry of a file that has some, and whether its policy is known.
#[track_caller]
fn attempts(text: &str) -> (Limit<u32>, bool) {
    let entries = read(text, None).unwrap_or_else(|error| panic!("{error}: {text}"));
    let found: Vec<_> =
        entries.iter().filter_map(|entry| Some((entry.settings.attempts?.value, entry.policy().is_some()))).collect();
    let [found] = found[..] else { panic!("one entry with attempts: {entries:?}\n{text}") };
    found
}

/// Files of each format with one number of attempts in them, as people write it: the number, and the attempts that it
/// means.
const FILES: [(&str, &str, u32); 20] = [
    ("compose", "services: {a: {image: a, restart: 'on-failure:@'}}\n", 4),
    ("deploy", "services: {a: {image: a, deploy: {restart_policy: {max_attempts: '@'}}}}\n", 4),
    ("envoy", "route: {cluster: a, retry_policy: {retry_on: 5xx, num_retries: '@'}}\n", 4),
    (
        "istio",
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nspec: {http: [{retries: {attempts: '@'}}]}\n",
        4,
    ),
    (
        "envoy gateway",
        "apiVersion: gateway.envoyproxy.io/v1alpha1\nkind: BackendTrafficPolicy\nspec: {retry: {numRetries: '@'}}\n",
        4,
    ),
    (
        "linkerd",
        "apiVersion: v1\nkind: Service\nmetadata: {annotations: {retry.linkerd.io/http: 5xx, retry.linkerd.io/limit: '@'}}\n",
        4,
    ),
    (
        "nginx",
        "upstream a { server a; server b; server c; server d; }\nserver { location / { proxy_next_upstream_tries @; proxy_pass http://a; } }\n",
        3,
    ),
    ("haproxy", "backend a\n  retries @\n  server a 10.0.0.1:80\n", 4),
    ("haproxy quoted", "backend a\n  retries \"@\"\n  server a 10.0.0.1:80\n", 4),
    (
        "grpc",
        "{\"methodConfig\": [{\"name\": [{}], \"retryPolicy\": {\"maxAttempts\": \"@\", \"initialBackoff\": \"1s\", \"maxBackoff\": \"1s\", \"backoffMultiplier\": 2, \"retryableStatusCodes\": [14]}}]}",
        3,
    ),
    ("resilience4j", "resilience4j: {retry: {instances: {a: {maxAttempts: '@'}}}}\n", 3),
    (
        "spring",
        "spring.rabbitmq.listener.simple.retry.enabled=true\nspring.rabbitmq.listener.simple.retry.max-attempts=@\n",
        3,
    ),
    (
        "gateway",
        "spring.cloud.gateway.routes[0].filters[0].name=Retry\nspring.cloud.gateway.routes[0].filters[0].args.retries=@\n",
        4,
    ),
    ("dotnet", "{\"Retry\": {\"MaxRetryAttempts\": \"@\", \"Delay\": \"00:00:01\"}}", 4),
    (
        "kubernetes",
        "apiVersion: batch/v1\nkind: Job\nspec: {backoffLimit: '@', template: {spec: {restartPolicy: Never}}}\n",
        4,
    ),
    (
        "step functions",
        "{\"StartAt\": \"A\", \"States\": {\"A\": {\"Type\": \"Task\", \"Retry\": [{\"ErrorEquals\": [\"E\"], \"MaxAttempts\": \"@\"}]}}}",
        4,
    ),
    (
        "github",
        "on: push\njobs: {a: {steps: [{uses: nick-fields/retry@v4, with: {max_attempts: '@', timeout_minutes: 1}}]}}\n",
        3,
    ),
    (
        "dapr",
        "apiVersion: dapr.io/v1alpha1\nkind: Resiliency\nspec: {policies: {retries: {DefaultRetryPolicy: {maxRetries: '@'}}}}\n",
        4,
    ),
    (
        "azure",
        "{\"version\": \"2.0\", \"retry\": {\"strategy\": \"fixedDelay\", \"maxRetryCount\": \"@\", \"delayInterval\": \"00:00:01\"}}",
        4,
    ),
    ("service bus", "{\"RetryOptions\": {\"MaxRetries\": \"@\", \"TryTimeout\": \"00:00:30\"}}", 4),
];

/// What stands for 3 in a format, with a default in it.
fn with_default(name: &str) -> &'static str {
    if matches!(name, "resilience4j" | "spring" | "gateway") { "${N:3}" } else { "${N:-3}" }
}

#[test]
fn the_default_in_a_placeholder_is_the_value_and_a_note_says_so() {
    for (name, file, wanted) in FILES {
        let stated = file.replace("'@'", "3").replace("\"@\"", "3").replace('@', "3").replace("retry3v4", "retry@v4");
        assert_eq!(attempts(&stated).0, Limit::At(wanted), "{name}");
        let text = file.replace('@', with_default(name)).replace("retry${N:-3}v4", "retry@v4");
        assert_eq!(attempts(&text).0, Limit::At(wanted), "{name}: {text}");
        let notes = remarks(&text, RemarkKind::NotRead);
        assert!(notes.iter().any(|note| note.contains("which the environment may replace")), "{name}: {notes:?}");
        assert_eq!(remarks(&text, RemarkKind::Invalid), [""; 0], "{name}");
    }
}

#[test]
fn a_placeholder_without_a_default_is_not_known_and_nothing_is_refused() {
    for (name, file, _) in FILES {
        for placeholder in ["${N}", "{{ .Values.n }}", "__N__"] {
            // A line of nginx and HAProxy ends a word at a space, and a token is a whole value.
            let is_line = matches!(name, "nginx" | "haproxy" | "haproxy quoted");
            if is_line && placeholder.contains(' ') || name == "compose" && placeholder == "__N__" {
                continue;
            }
            let text = file.replace('@', placeholder).replace(&format!("retry{placeholder}v4"), "retry@v4");
            assert_eq!(attempts(&text), (Limit::Unknown, false), "{name}: {text}");
            let unread = remarks(&text, RemarkKind::NotRead);
            assert!(unread.iter().any(|remark| remark.contains("the value is not known")), "{name}: {unread:?}");
            assert_eq!(remarks(&text, RemarkKind::Invalid), [""; 0], "{name}: {text}");
        }
    }
}

#[test]
fn other_values_of_compose_are_filled_in_as_well() {
    for (restart, wanted) in [
        ("${R:-unless-stopped}", Limit::None),
        ("${R-always}", Limit::None),
        ("on-failure:${N:-${M:-2}}", Limit::At(3)),
        ("${R:?say it}", Limit::Unknown),
        ("$R", Limit::Unknown),
        ("on-failure:0", Limit::None),
    ] {
        let text = format!("services: {{a: {{image: a, restart: '{restart}'}}}}\n");
        assert_eq!(attempts(&text).0, wanted, "{restart}");
    }
    assert!(described("services: {a: {image: a, restart: '${R:-no}'}}\n").is_empty());
}

#[test]
fn a_property_of_spring_may_refer_to_another_one() {
    let text = "app.retries=7\nresilience4j.retry.instances.a.max-attempts=${app.retries:3}\n";
    assert_eq!(attempts(text).0, Limit::At(7));
}

#[test]
fn systemd_ignores_settings_in_other_sections_and_takes_the_older_names() {
    let unit = |unit: &str, service: &str| format!("[Unit]\n{unit}[Service]\nExecStart=/x\nRestart=always\n{service}");
    for (unit, wanted) in [
        (unit("", "StartLimitIntervalSec=0\n"), Limit::At(5)),
        (unit("", "StartLimitInterval=0\n"), Limit::None),
        (unit("StartLimitIntervalSec=0\n", ""), Limit::None),
        (unit("StartLimitInterval=0\n", ""), Limit::None),
        (unit("", "StartLimitBurst=7\n"), Limit::At(7)),
        (unit("RestartSec=1h\n", ""), Limit::At(5)),
        // What it cannot read, it ignores, and goes on with the assignment before.
        (unit("StartLimitBurst=3\nStartLimitBurst=many\nStartLimitBurst=\n", ""), Limit::At(3)),
        (unit("StartLimitBurst=0\n", ""), Limit::None),
        (unit("StartLimitIntervalSec=infinity\n", "RestartSec=1h\n"), Limit::At(5)),
        (unit("", "RestartSec=infinity\n"), Limit::At(1)),
        (unit("StartLimitBurst=@BURST@\n", ""), Limit::Unknown),
    ] {
        assert_eq!(attempts(&unit).0, wanted, "{unit}");
    }
    expect(
        &remarks(&unit("RestartSec=1h\n", "StartLimitIntervalSec=0\n"), RemarkKind::NoEffect),
        &[
            "2:1 [Unit] RestartSec: systemd ignores it in [Unit]: it belongs into [Service]",
            "6:1 [Service] StartLimitIntervalSec: systemd ignores it in [Service]: it belongs into [Unit]",
        ],
    );
    // Without an effective Restart= nothing is started again.
    assert_eq!(attempts("[Unit]\nRestart=always\n[Service]\nExecStart=/x\n").0, Limit::At(1));
}

#[test]
fn zero_is_the_default_or_no_limit_where_the_system_says_so() {
    let health = "services: {a: {image: a, healthcheck: {test: x, interval: 0s, timeout: 0s, retries: 0}}}\n";
    expect(
        &described(health),
        &["Probe services.a.healthcheck at 1:26: attempts=3* base=30s* multiplier=1* jitter=none* each=30s*"],
    );
    let deployed = |number: u32| {
        let policy = format!("{{max_attempts: {number}, delay: 1s}}");
        attempts(&format!("services: {{a: {{image: a, deploy: {{restart_policy: {policy}}}}}}}\n")).0
    };
    assert_eq!((deployed(0), deployed(1)), (Limit::None, Limit::At(2)));
    // HAProxy takes a limit of 0 for none, and still waits a second.
    let haproxy = "backend a\n  timeout connect 0\n  timeout server 0\n  server a 10.0.0.1:80\n";
    assert!(
        described(haproxy)[0].contains("base=1s* multiplier=1* jitter=none* each=none"),
        "{:?}",
        described(haproxy)
    );
    let istio = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nspec: {trafficPolicy: {connectionPool: \
                 {http: {maxRetries: 0}}}}\n";
    assert!(described(istio)[0].contains("budget=(none)"), "{:?}", described(istio));
}

#[test]
fn the_limit_of_each_index_replaces_the_default_of_the_whole_job() {
    let job = |spec: &str| {
        format!("apiVersion: batch/v1\nkind: Job\nspec: {{{spec}, template: {{spec: {{restartPolicy: Never}}}}}}\n")
    };
    let indexed = job("completionMode: Indexed, backoffLimitPerIndex: 1");
    assert_eq!(attempts(&indexed).0, Limit::At(2));
    assert_eq!(remarks(&indexed, RemarkKind::Invalid), [""; 0]);
    assert_eq!(attempts(&job("parallelism: 1")).0, Limit::At(7));
    let refused = remarks(&job("backoffLimitPerIndex: 1"), RemarkKind::Invalid);
    assert!(refused.len() == 1 && refused[0].contains("completionMode: Indexed"), "{refused:?}");
}

#[test]
fn annotated_retries_of_linkerd_back_off_and_those_of_profiles_do_not() {
    let service = "apiVersion: v1\nkind: Service\nmetadata: {annotations: {retry.linkerd.io/http: 5xx}}\n";
    let policy = read(service, None).unwrap()[0].policy().unwrap();
    let ms = |retry| policy.bounds(retry).map(|(least, most)| (least.as_millis(), most.as_millis()));
    assert_eq!((ms(1), ms(2), ms(3)), (Some((25, 50)), Some((50, 100)), Some((100, 200))), "{policy}");
    // The fourth is from 200 ms to 250 ms, and those behind it are exactly 250 ms, which no jitter expresses.
    let more = service.replace("5xx", "5xx, retry.linkerd.io/limit: '4'");
    assert_eq!(attempts(&more), (Limit::At(5), false));
    let pod = service.replace("Service", "Pod");
    assert!(described(&pod).iter().all(|line| line.starts_with("Unread")), "{:?}", described(&pod));
}

const ENVOY: &str = "
static_resources:
  listeners:
  - route_config:
      virtual_hosts:
      - routes:
        - {match: {prefix: /c}, route: {cluster: c, retry_policy: {retry_on: reset, num_retries: 2}}}
        - {match: {prefix: /d}, route: {cluster: d, retry_policy: {retry_on: reset, num_retries: 2}}}
        - {match: {prefix: /h}, route: {cluster: d, priority: HIGH, retry_policy: {retry_on: reset}}}
        - {match: {prefix: /w}, route: {weighted_clusters: {clusters: [{name: c}, {name: d}]}, retry_policy: {retry_on: reset}}}
        - {match: {prefix: /x}, route: {cluster_header: x, retry_policy: {retry_on: reset}}}
        - {match: {prefix: /z}, route: {cluster: z, retry_policy: {retry_on: reset}}}
  clusters:
  - {name: c}
  - {name: d, circuit_breakers: {thresholds: [{priority: HIGH, max_retries: 7}, {max_retries: 50}]}}
  - {name: z, circuit_breakers: {thresholds: [{max_retries: 0}]}}
";

#[test]
fn a_circuit_breaker_of_envoy_is_one_of_its_own_cluster_and_priority() {
    let entries = read(ENVOY, None).unwrap();
    let found: Vec<_> = entries
        .iter()
        .map(|entry| entry.settings.budget.map_or("not known".to_owned(), |budget| budget.value.to_string()))
        .collect();
    expect(
        &found,
        &[
            "at most 3 retries at once",
            "at most 50 retries at once",
            "at most 7 retries at once",
            "not known",
            "not known",
            "at most 0 retries at once",
        ],
    );
    assert_eq!(entries[5].settings.attempts.unwrap().value, Limit::At(1));
}

#[test]
fn status_codes_of_envoy_count_with_their_condition_only() {
    let policy = |fields: &str| format!("route: {{cluster: a, retry_policy: {{{fields}}}}}\n");
    for (fields, is_unsafe) in [
        ("retry_on: retriable-status-codes, retriable_status_codes: [500]", Some(true)),
        ("retry_on: retriable-status-codes, retriable_status_codes: [429]", Some(false)),
        ("retry_on: connect-failure, retriable_status_codes: [500]", Some(false)),
        ("retry_on: '${CONDITIONS}', num_retries: 2", None),
    ] {
        assert_eq!(read(&policy(fields), None).unwrap()[0].may_repeat_unsafe, is_unsafe, "{fields}");
    }
    let ignored = policy("retry_on: connect-failure, retriable_status_codes: [500]");
    let found = remarks(&ignored, RemarkKind::NoEffect);
    assert!(found.len() == 1 && found[0].contains("`retriable-status-codes`"), "{found:?}");
}

#[test]
fn a_subset_of_istio_inherits_the_pool_that_it_does_not_set() {
    let rule = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: a}\nspec:\n  trafficPolicy: \
                {connectionPool: {http: {maxRetries: 5}}}\n  subsets:\n  - {name: x, trafficPolicy: {outlierDetection: {}}}\n  \
                - {name: y, trafficPolicy: {connectionPool: {tcp: {}}}}\n";
    let found: Vec<_> = described(rule).iter().map(|line| line.split(": ").nth(1).unwrap().to_owned()).collect();
    expect(&found, &["budget=(at most 5 retries at once)", "budget=(at most 5 retries at once)", "budget=(none)*"]);
}

#[test]
fn what_a_system_refuses_is_said() {
    let envoy = |backoff: &str| {
        format!("route: {{cluster: a, retry_policy: {{retry_on: reset, retry_back_off: {{{backoff}}}}}}}\n")
    };
    let istio = |retries: &str| {
        format!(
            "apiVersion: networking.istio.io/v1\nkind: VirtualService\nspec: {{http: [{{retries: {{{retries}}}}}]}}\n"
        )
    };
    for (text, wanted) in [
        (envoy("base_interval: 1s, max_interval: 0.5s"), "below base_interval"),
        (envoy("max_interval: 0.5s"), "base_interval is required"),
        (envoy("base_interval: 0s"), "above zero"),
        (istio("attempts: 0, perTryTimeout: 2s, retryOn: 5xx"), "attempts: 0"),
        (istio("perTryTimeout: 2s"), "attempts: 0"),
        (istio("attempts: 2, retryOn: 'sometimes'"), "`sometimes`"),
        (istio("attempts: -1"), "whole number"),
    ] {
        let found = remarks(&text, RemarkKind::Invalid);
        assert!(found.iter().any(|remark| remark.contains(wanted)), "{text}: {found:?}");
    }
    for text in [
        envoy("base_interval: 1s, max_interval: 1s"),
        istio("attempts: 0"),
        istio("attempts: 2, perTryTimeout: 2s, retryOn: '503,connect-failure'"),
    ] {
        assert_eq!(remarks(&text, RemarkKind::Invalid), [""; 0], "{text}");
    }
}

#[test]
fn a_name_that_several_systems_have_is_no_mark_of_one() {
    for text in [
        // Azure Logic Apps.
        r#"{"definition": {"actions": {"Call": {"type": "Http", "inputs": {"retryPolicy": {"type": "fixed", "count": 4}}}}}}"#,
        "retryPolicy: {initialInterval: 1s, maximumAttempts: 3}\n",
        "methodConfig: {}\n",
        "static_resources: 5\n",
        r#"{"retry": {"strategy": "linear"}}"#,
        r#"{"Retry": {"Delay": 5}}"#,
        r#"{"RetryOptions": {"MaxRetries": 5}}"#,
        "[default]\nmax_attempts = 3\n",
        "[Service]\nname = x\n",
        "defaults\n  a b\n",
        "server 10.0.0.1;\n",
        "build: {script: make}\n",
        "version: 2.1\njobs: {build: {steps: [checkout]}}\n",
    ] {
        assert!(read(text, None).is_err(), "{text}: {:?}", read(text, None));
    }
}

#[test]
fn an_object_of_a_cluster_is_what_its_kind_says_and_what_is_not_read_is_named() {
    for (text, names) in [
        (
            "apiVersion: pubsub.cnrm.cloud.google.com/v1beta1\nkind: PubSubSubscription\nspec: {retryPolicy: {retry_on: \
             5xx, num_retries: 2}}\n",
            "PubSubSubscription/.spec.retryPolicy",
        ),
        (
            "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata: {name: a, annotations: \
             {nginx.ingress.kubernetes.io/proxy-next-upstream-tries: '3'}}\n",
            "Ingress/a annotations.nginx.ingress.kubernetes.io/proxy-next-upstream-tries",
        ),
        (
            "apiVersion: traefik.io/v1alpha1\nkind: Middleware\nmetadata: {name: a}\nspec: {retry: {attempts: 4}}\n",
            "Middleware/a.spec.retry",
        ),
        (
            "apiVersion: argoproj.io/v1alpha1\nkind: Workflow\nmetadata: {name: a}\nspec: {templates: [{retryStrategy: \
             {limit: 3}}]}\n",
            "Workflow/a.spec.templates[0].retryStrategy",
        ),
        ("services: {a: {extends: {service: b}}, b: {image: b}}\n", "services.a.extends"),
        (
            "apiVersion: dapr.io/v1alpha1\nkind: Resiliency\nspec: {policies: {circuitBreakers: {a: {trip: x}}}}\n",
            "policies.circuitBreakers",
        ),
        (
            "static_resources: {listeners: [{route: {cluster: a, hedge_policy: {hedge_on_per_try_timeout: true}}}]}\n",
            "route.hedge_policy",
        ),
    ] {
        let entries = read(text, None).unwrap();
        assert!(entries.iter().all(|entry| entry.kind == EntryKind::Unread), "{entries:?}");
        let found = remarks(text, RemarkKind::NotRead);
        assert!(found.len() == 1 && found[0].contains(names), "{found:?}");
    }
    // Of other kinds of these groups, nothing is read, and there is nothing to name.
    for text in [
        "apiVersion: dapr.io/v1alpha1\nkind: Component\nspec: {type: x}\n",
        "apiVersion: v1\nkind: ConfigMap\ndata: {retry: '3'}\n",
    ] {
        assert!(described(text).is_empty(), "{:?}", described(text));
    }
}

#[test]
fn haproxy_goes_to_another_server_at_once_where_it_may_choose() {
    let backend = |options: &str, servers: u32| {
        let servers: String = (0..servers).map(|at| format!("  server s{at} 10.0.0.{at}:80\n")).collect();
        format!("backend a\n  {options}\n{servers}")
    };
    let (wait, at_once) = ("base=1s*", "base=0ns*");
    for (options, servers, base, note) in [
        ("", 2, wait, "before the same server is tried again"),
        ("option redispatch 1", 2, at_once, "every retry goes to another server, at once"),
        ("option redispatch", 2, at_once, "every retry goes to another server, at once; where a cookie"),
        ("option redispatch 2", 2, at_once, "every 2nd retry goes to another server, and the others wait"),
        ("option redispatch -1\n  balance leastconn", 2, at_once, "the last retry goes to another server, and"),
        ("option redispatch -1\n  balance source", 2, wait, "the last retry goes to another server, at once"),
        ("option redispatch -2\n  balance hdr(x)", 2, wait, "every 2nd retry goes to another server, at once"),
        // Of three retries, each first one.
        ("option redispatch -3\n  balance uri", 2, at_once, "every retry goes to another server, at once"),
        ("option redispatch 1\n  balance hash path", 2, at_once, "every retry goes to another server, at once"),
        ("option redispatch 0", 2, wait, "before the same server is tried again"),
        ("option redispatch x", 2, wait, "before the same server is tried again"),
        ("no option redispatch", 2, wait, "before the same server is tried again"),
        // With one server there is no other.
        ("option redispatch 1", 1, wait, "before the same server is tried again"),
        ("option redispatch 1\n  server b 10.0.1.1:80 backup", 1, wait, "before the same server is tried again"),
        ("option redispatch 1\n  server-template b 1-2 a.example:80", 0, at_once, "every retry goes to another"),
        ("option redispatch 1\n  server-template b 1 a.example:80", 0, wait, "before the same server"),
        ("option redispatch $N", 2, "attempts=4* each", "is not known"),
        ("option redispatch\n  balance \"$B\"", 2, "attempts=4* each", "is not known"),
    ] {
        let text = backend(options, servers);
        let lines = described(&text);
        let is_unknown = base.starts_with("attempts") && !lines[0].contains("base");
        assert!(lines[0].contains(base) || is_unknown, "{options}: {lines:?}");
        let notes = [remarks(&text, RemarkKind::Note), remarks(&text, RemarkKind::NotRead)].concat();
        assert!(notes.iter().any(|found| found.contains(note)), "{options}: {notes:?}");
    }
    let crash = backend("option redispatch -4\n  balance source", 2);
    assert!(remarks(&crash, RemarkKind::Invalid)[0].contains("divides by zero"));
}

#[test]
fn haproxy_reads_numbers_and_conditions_in_its_own_way() {
    let backend = |lines: &str| format!("backend a\n  {lines}\n  server a 10.0.0.1:80\n");
    let http = |lines: &str| backend(&format!("mode http\n  {lines}"));
    // What it reads, how often it tries, and the base of the delays; what it refuses, or ignores.
    for (text, wanted, invalid, ignored) in [
        (backend(""), "attempts=4* base=1s*", "", ""),
        ("backend a\n  option redispatch\n  dispatch 10.0.0.1:80\n".to_owned(), "attempts=4* base=1s*", "", ""),
        (backend("retries 0"), "attempts=1 ", "", ""),
        (backend("retries -1"), "attempts=1 ", "", ""),
        (backend("retries x"), "attempts=1 ", "HAProxy reads 0", ""),
        (backend("retries 2x"), "attempts=3 ", "HAProxy reads 2", ""),
        (backend("retries 2 3"), "attempts=unknown", "takes one number", ""),
        (backend("retry-on none"), "attempts=1 ", "", ""),
        (http("retry-on none"), "attempts=1 ", "", ""),
        (http("retry-on none 503"), "attempts=4*", "stands alone", ""),
        // Failed connections are not among them.
        (http("retry-on 503"), "attempts=4* base=0ns*", "", ""),
        (backend("retry-on 503"), "attempts=1 ", "", "mode http only"),
        (backend("retry-on conn-failure 503"), "attempts=4* base=1s*", "", "mode http only"),
        (backend("retry-on all-retryable-errors"), "attempts=4* base=1s*", "", "mode http only"),
        (http("retry-on conn-failure"), "attempts=4* base=1s*", "", ""),
        (http("retry-on conn-failure 429"), "attempts=4* base=0ns*", "", ""),
        (http("retry-on 0rtt-rejected"), "attempts=4* base=0ns*", "", ""),
        (http("retry-on 505"), "attempts=unknown", "`505` is not a condition", ""),
        (http("retry-on \"$C\""), "attempts=unknown", "", ""),
        (backend("timeout connect 300"), "base=300ms*", "", ""),
        (backend("timeout connect 0"), "base=1s*", "", ""),
        (backend("timeout connect soon"), "attempts=4* all", "`soon` is not a length", ""),
        (backend("timeout connect 2s\n  timeout server 3s"), "each=3s", "", ""),
        (backend("timeout server 0"), "each=none", "", ""),
        // The time to connect limits no answer.
        (backend("timeout connect 2s"), "jitter=none* all=none*", "", ""),
        ("frontend f\n  retry-on 503\n".to_owned(), "Unread", "refuses it in a frontend", ""),
        ("frontend f\n  option redispatch\n".to_owned(), "Unread", "", "ignores it in a frontend"),
    ] {
        let lines = described(&text);
        assert!(lines[0].contains(wanted), "{text}: {lines:?}");
        for (kind, part) in [(RemarkKind::Invalid, invalid), (RemarkKind::NoEffect, ignored)] {
            let found = remarks(&text, kind);
            assert!(found.iter().all(|remark| remark.contains(part)), "{text}: {found:?}");
            assert_eq!(found.is_empty(), part.is_empty(), "{text}: {found:?}");
        }
    }
    let repeats = |lines: &str| read(&http(lines), None).unwrap()[0].may_repeat_unsafe;
    assert_eq!(repeats("retry-on conn-failure 0rtt-rejected"), Some(false));
    assert_eq!(repeats("retry-on response-timeout"), Some(true));
    assert_eq!(repeats("retry-on \"$C\""), None);
}

#[test]
fn libraries_and_workflows_refuse_numbers_that_mean_nothing() {
    let resilience4j = |property: &str| {
        format!("resilience4j.retry.instances.a.wait-duration=1s\nresilience4j.retry.instances.a.{property}\n")
    };
    let state = |kind: &str, retrier: &str| {
        format!(
            "{{\"StartAt\": \"A\", \"States\": {{\"A\": {{\"Type\": \"{kind}\", \"Retry\": [{{\"ErrorEquals\": [\"E\"], {retrier}}}]}}}}}}"
        )
    };
    for (text, wanted) in [
        (resilience4j("max-attempts=0"), "1 or more"),
        (resilience4j("exponential-backoff-multiplier=0"), "above 0"),
        (resilience4j("randomized-wait-factor=1"), "does not reach"),
        ("{\"Retry\": {\"MaxRetryAttempts\": 0, \"Delay\": \"00:00:01\"}}".to_owned(), "from 1 to"),
        (state("Pass", "\"MaxAttempts\": 1"), "only Task, Parallel and Map"),
        (state("Task", "\"BackoffRate\": 0.5"), "1 or more"),
    ] {
        let found = remarks(&text, RemarkKind::Invalid);
        assert!(found.len() == 1 && found[0].contains(wanted), "{text}: {found:?}");
    }
    assert_eq!(remarks(&state("Task", "\"BackoffRate\": 1"), RemarkKind::Invalid), [""; 0]);
}

#[test]
fn a_route_of_grpc_has_no_field_for_retries() {
    let route = |kind: &str| {
        format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: {kind}\nmetadata: {{name: a}}\nspec: {{rules: [{{retry: {{attempts: 2}}}}]}}\n"
        )
    };
    assert_eq!(attempts(&route("HTTPRoute")).0, Limit::At(3));
    expect(
        &remarks(&route("GRPCRoute"), RemarkKind::NoEffect),
        &["4:17 GRPCRoute/a.rules[0].retry: a GRPCRoute has no field of this name"],
    );
    assert!(described(&route("GRPCRoute"))[0].starts_with("Unread"));
}

#[test]
fn what_stands_at_a_level_where_a_system_ignores_it_is_said() {
    let istio = |spec: &str| {
        format!("apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{name: a}}\nspec: {{{spec}}}\n")
    };
    let cron = |job: &str, template: &str| {
        format!(
            "apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: a}}\nspec: {{{job}jobTemplate: {{{template}spec: {{template: {{spec: {{restartPolicy: Never}}}}}}}}}}\n"
        )
    };
    for (text, field) in [
        ("frontend f\n  bind :80\n  retries 5\n".to_owned(), "frontend f.retries"),
        (istio("retries: {attempts: 5}, http: [{route: []}]"), "spec.retries"),
        (istio("http: [{route: [{destination: {host: a}, retries: {attempts: 5}}]}]"), "http[0].route[0].retries"),
        (cron("backoffLimit: 2, ", ""), "spec.backoffLimit"),
        (cron("", "backoffLimit: 2, "), "spec.jobTemplate.backoffLimit"),
        ("spring.rabbitmq.listener.retry.enabled=true\n".to_owned(), "spring.rabbitmq.listener.retry.enabled"),
    ] {
        let found = remarks(&text, RemarkKind::NoEffect);
        assert!(found.len() == 1 && found[0].contains(field), "{text}: {found:?}");
    }
    assert_eq!(attempts(&cron("backoffLimit: 2, ", "")).0, Limit::At(7));
    let beside =
        "virtual_hosts: [{routes: [{match: {prefix: /}, route: {cluster: a}, retry_policy: {retry_on: 5xx}}]}]\n";
    let found = remarks(beside, RemarkKind::Invalid);
    assert!(found.len() == 1 && found[0].contains("a route has no such field"), "{found:?}");
}

#[test]
fn limits_that_contradict_each_other_are_refused() {
    let handler = |sections: &str| format!("{{\"Http\": {{\"Retry\": {{\"MaxRetryAttempts\": 2}}, {sections}}}}}");
    let route = |timeouts: &str| {
        format!(
            "apiVersion: gateway.networking.k8s.io/v1\nkind: HTTPRoute\nspec: {{rules: [{{timeouts: {{{timeouts}}}}}]}}\n"
        )
    };
    for (text, wanted) in [
        (handler("\"AttemptTimeout\": {\"Timeout\": \"00:00:12\"}"), ""),
        (handler("\"AttemptTimeout\": {\"Timeout\": \"00:00:16\"}"), "SamplingDuration"),
        (
            handler(
                "\"AttemptTimeout\": {\"Timeout\": \"00:00:16\"}, \"CircuitBreaker\": {\"SamplingDuration\": \"00:00:32\"}",
            ),
            "",
        ),
        (handler("\"TotalRequestTimeout\": {\"Timeout\": \"00:00:05\"}"), "TotalRequestTimeout"),
        (route("request: 1s, backendRequest: 2s"), "backendRequest"),
        (route("request: 0s, backendRequest: 2s"), ""),
        (route("request: 2s, backendRequest: 2s"), ""),
    ] {
        let found = remarks(&text, RemarkKind::Invalid);
        assert!(found.iter().all(|remark| remark.contains(wanted)), "{text}: {found:?}");
        assert_eq!(found.is_empty(), wanted.is_empty(), "{text}: {found:?}");
    }
}
