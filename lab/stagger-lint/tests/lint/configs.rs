//! The rules for configurations of other systems: each fires on a file like those that people have, and is silent on
//! its fixed form, which is read again.

use stagger_lint::FileFinding;
use stagger_lint::config::ConfigFile;

#[track_caller]
pub(super) fn read(text: &str) -> ConfigFile {
    ConfigFile::read("file", text, None).unwrap_or_else(|error| panic!("{}: {error}\n{text}", error.position()))
}

fn codes(found: &[FileFinding]) -> Vec<&str> {
    found.iter().map(|found| found.finding().rule().code()).collect()
}

/// Applies one fix after the other, until none is left that can be applied.
fn fixed(text: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..12 {
        let edit = read(&text).check().iter().find_map(|found| found.fix()?.applied_to(&text));
        match edit {
            Some(fixed) => text = fixed,
            None => return text,
        }
    }
    panic!("fixes do not end:\n{text}")
}

const SERVICE: &str = "[Unit]\nDescription=app\n\n[Service]\nExecStart=/bin/app\nRestart=on-failure\n";

pub(super) const NGINX: &str = "\
upstream app {
    server 10.0.0.1;
    server 10.0.0.2;
    server 10.0.0.3;
}
server {
    location / {
        proxy_pass http://app;
    }
}
";

const HAPROXY: &str = "\
defaults
    mode http
    timeout connect 2s

backend app
    server a 10.0.0.1:80
    server b 10.0.0.2:80
";

const ENVOY: &str = "\
static_resources:
  listeners:
  - filter_chains:
    - filters:
      - typed_config:
          route_config:
            virtual_hosts:
            - name: app
              routes:
              - match: {prefix: /}
                route:
                  cluster: app
                  timeout: 4s
                  retry_policy:
                    retry_on: 5xx
                    num_retries: 3
                    per_try_timeout: 3s
  clusters:
  - name: app
    circuit_breakers:
      thresholds:
      - max_retries: 2000
";

pub(super) const GRPC: &str = r#"{
  "methodConfig": [
    {
      "name": [{"service": "shop.Orders"}],
      "timeout": "10s",
      "retryPolicy": {
        "maxAttempts": 4,
        "initialBackoff": "0.1s",
        "maxBackoff": "1s",
        "backoffMultiplier": 2,
        "retryableStatusCodes": ["UNAVAILABLE"]
      }
    }
  ]
}
"#;

const DEPLOYMENT: &str = "\
apiVersion: apps/v1
kind: Deployment
metadata: {name: app}
spec:
  template:
    spec:
      containers:
      - name: app
        livenessProbe:
          httpGet: {path: /healthz, port: 80}
";

const STATES: &str = r#"{
  "StartAt": "Call",
  "States": {
    "Call": {
      "Type": "Task",
      "Resource": "arn:aws:states:::lambda:invoke",
      "TimeoutSeconds": 20,
      "Retry": [
        {
          "ErrorEquals": ["Lambda.ServiceException"],
          "IntervalSeconds": 2,
          "MaxAttempts": 6,
          "BackoffRate": 2
        }
      ],
      "End": true
    }
  }
}
"#;

const RESILIENCE4J: &str = "\
resilience4j:
  retry:
    instances:
      orders:
        maxAttempts: 4
        waitDuration: 500ms
        enableExponentialBackoff: true
";

pub(super) const DOTNET: &str = r#"{
  "HttpResilience": {
    "Retry": { "MaxRetryAttempts": 5, "UseJitter": true, "MaxDelay": "00:00:10" },
    "TotalRequestTimeout": { "Timeout": "00:00:30" }
  }
}
"#;

const DAPR: &str = "\
apiVersion: dapr.io/v1alpha1
kind: Resiliency
spec:
  policies:
    timeouts: {short: 5s}
    retries:
      always:
        policy: exponential
        maxInterval: 10s
  targets:
    apps:
      orders: {retry: always, timeout: short}
";

pub(super) fn virtual_service(route: &str) -> String {
    format!(
        "apiVersion: networking.istio.io/v1\nkind: VirtualService\nmetadata: {{name: reviews}}\nspec:\n  http:\n{route}"
    )
}

/// Files whose findings can all be fixed: what is found, and a part of the fixed file.
#[test]
fn every_fix_silences_its_finding_and_the_fixed_file_has_none() {
    let plain = virtual_service("  - route: [{destination: {host: reviews}}]\n");
    let tight = virtual_service(
        "  - name: v2\n    timeout: 4s\n    retries:\n      attempts: 5\n      perTryTimeout: 2s\n      retryOn: \
         5xx,reset\n",
    );
    let rule = "apiVersion: networking.istio.io/v1\nkind: DestinationRule\nmetadata: {name: reviews}\nspec:\n  \
                trafficPolicy:\n    loadBalancer: {simple: LEAST_REQUEST}\n";
    let files: [(&str, &[&str], &[&str]); 15] = [
        (&plain, &["C001", "C003"], &["  - timeout: 10s\n    retries: {attempts: 2}\n    route:"]),
        (&tight, &["S013", "S019"], &["perTryTimeout: 560ms", "retryOn: connect-failure,refused-stream"]),
        (rule, &["C012"], &["    retryBudget: {percent: 20, minRetryConcurrency: 3}\n    loadBalancer"]),
        (
            SERVICE,
            &["C005"],
            &["[Unit]\nStartLimitIntervalSec=0\n", "RestartSec=1s\nRestartSteps=8\nRestartMaxDelaySec=2min"],
        ),
        (NGINX, &["C001", "C004"], &["        proxy_next_upstream_tries 2;\n"]),
        (HAPROXY, &["C001", "C003"], &["    retries 3\n", "    timeout server 30s\n"]),
        (
            GRPC,
            &["C012"],
            &["{\n  \"retryThrottling\": {\"maxTokens\": 100, \"tokenRatio\": 0.1},\n  \"methodConfig\""],
        ),
        (DEPLOYMENT, &["C007"], &["          timeoutSeconds: 5\n          httpGet"]),
        (STATES, &["S001", "S005"], &["          \"MaxDelaySeconds\": 60,\n", "\"JitterStrategy\": \"FULL\",\n"]),
        (
            RESILIENCE4J,
            &["S001", "S005"],
            &["        enableRandomizedWait: true\n", "exponentialMaxWaitDuration: 30s\n"],
        ),
        (
            &RESILIENCE4J
                .replace("    instances", "    configs:\n      default: {enableRandomizedWait: true}\n    instances"),
            &["S005"],
            &[],
        ),
        (
            "[Service]\nRestart=always\nStartLimitIntervalSec=0\n",
            &["C005", "C008"],
            &["[Unit]\nStartLimitIntervalSec=0\n\n[Service]\nRestart=always\nRestartSec=1s\n"],
        ),
        (
            "[Service]\nRestart=always\nRestartSec=10\nStartLimitBurst=3\n",
            &["C006"],
            &["[Unit]\nStartLimitIntervalSec=0\n\n[Service]", "RestartSec=10\n"],
        ),
        (
            &RESILIENCE4J.replace("maxAttempts", "max-attempts"),
            &["S001", "S005"],
            &["        enable-randomized-wait: true\n"],
        ),
        (
            "[Unit]\nStartLimitIntervalSec=30\n[Service]\nRestart=always\nRestartSec=100ms\n",
            &["C005"],
            &["[Unit]\nStartLimitIntervalSec=0\n", "RestartSec=1s\n"],
        ),
    ];
    for (text, want, parts) in files {
        let found = read(text).check();
        assert_eq!(codes(&found), want, "{text}");
        let fixed = fixed(text);
        assert_eq!(codes(&read(&fixed).check()), [""; 0], "{fixed}");
        for part in parts {
            assert!(fixed.contains(part), "{part}\n{fixed}");
        }
    }
    // An exponential policy of Dapr ends by itself, and a constant one does not.
    let constant =
        read(&DAPR.replace("exponential\n        maxInterval: 10s", "constant\n        duration: 2s")).check();
    assert_eq!((codes(&read(DAPR).check()), codes(&constant)), (vec![], vec!["S001", "S011"]));
    assert_eq!(constant[1].fix().unwrap().text(), "maxRetries: 3");
}

/// Findings whose fix is left to people, with the file as it should be.
#[test]
fn a_finding_without_edits_is_silent_on_the_file_as_it_should_be() {
    let unlimited = "spring.cloud.gateway:\n  routes: [{filters: [Retry=1]}]\n".to_owned();
    for (code, bad, good) in [
        (
            "C012",
            ENVOY.to_owned(),
            ENVOY.replace("max_retries: 2000", "retry_budget: {budget_percent: {value: 20}, min_retry_concurrency: 3}"),
        ),
        (
            "C012",
            "[default]\nretry_mode = legacy\n[profile b]\nretry_mode = legacy\n".to_owned(),
            "[default]\nretry_mode = standard\n".to_owned(),
        ),
        ("C010", GRPC.replace("\"maxAttempts\": 4", "\"maxAttempts\": 8"), GRPC.to_owned()),
        (
            "C013",
            "services:\n  db: {image: a}\n  app:\n    image: b\n    restart: always\n    depends_on: [db]\n".to_owned(),
            "services:\n  db: {image: a}\n  app:\n    image: b\n    restart: always\n    depends_on: {db: {condition: \
             service_healthy}}\n"
                .to_owned(),
        ),
        ("C009", DAPR.replace("orders: {retry: always", "orders: {retry: other"), DAPR.to_owned()),
        ("C003", unlimited.clone(), unlimited + "  httpclient: {response-timeout: 2s}\n"),
        ("C010", GRPC.replace("\"0.1s\"", "\"soon\""), GRPC.to_owned()),
        (
            "C008",
            RESILIENCE4J.replace("enableExponentialBackoff: true", "exponentialBackoffMultiplier: 3"),
            RESILIENCE4J.to_owned(),
        ),
        (
            "C008",
            SERVICE.to_owned() + "RestartSteps=5\n",
            SERVICE.to_owned() + "RestartSteps=5\nRestartMaxDelaySec=1min\n",
        ),
        (
            "S001",
            DAPR.replace("exponential\n        maxInterval: 10s", "constant\n        duration: 2s"),
            DAPR.to_owned(),
        ),
        ("S019", DOTNET.to_owned(), "{\"HttpResilience\": {\"Retry\": {\"MaxRetryAttempts\": 0}}}".to_owned()),
        (
            "C004",
            "backend a\n  option redispatch 1\n  server a 10.0.0.1:80\n  server b 10.0.0.2:80\n".to_owned(),
            "backend a\n  option redispatch\n  retries 1\n  timeout server 5s\n  server a 10.0.0.1:80\n  server b \
             10.0.0.2:80\n"
                .to_owned(),
        ),
    ] {
        assert!(codes(&read(&bad).check()).contains(&code), "{code}: {:?}\n{bad}", read(&bad).check());
        assert!(!codes(&read(&good).check()).contains(&code), "{code}: {:?}\n{good}", read(&good).check());
    }
}

#[test]
fn a_finding_says_what_the_system_does_and_where() {
    let found = read(ENVOY).check();
    let tight = found.iter().find(|found| found.finding().rule().code() == "S013").unwrap();
    assert_eq!(tight.place().unwrap().to_string(), "13:19");
    assert!(tight.path().ends_with("routes[0].route.retry_policy"), "{}", tight.path());
    assert_eq!(
        tight.finding().facts()[0],
        "Envoy makes up to 4 attempts, after 0s to 24ms, 0s to 49ms, 0s to 99ms, each of at most 3s, all within 4s"
    );
    assert_eq!(tight.fix().unwrap().text(), "per_try_timeout: 0.95s");
    let fixed = tight.fix().unwrap().applied_to(ENVOY).unwrap();
    assert!(fixed.contains("                    per_try_timeout: 0.95s\n"), "{fixed}");
}

#[test]
fn attempts_of_dotnet_are_shortened_so_that_they_and_the_delays_fit() {
    let text = DOTNET.replace("5, ", "3, ").replace("00:00:10", "00:00:03");
    let tight = |text: &str| read(text).check().into_iter().find(|found| found.finding().rule().code() == "S013");
    // Four attempts of 5 s, and three delays of at most 3 s.
    let fixed = tight(&text).unwrap().fix().unwrap().applied_to(&text).unwrap();
    assert!(
        fixed.contains("  \"HttpResilience\": {\n    \"AttemptTimeout\": { \"Timeout\": \"00:00:05\" },\n"),
        "{fixed}"
    );
    assert_eq!(tight(&fixed), None, "{fixed}");
    // Five delays of at most 10 s, and 37.1 s in all, leave no time for attempts.
    let found = tight(DOTNET).unwrap();
    let advice = found.finding().suggestion().advice().unwrap();
    assert_eq!(advice, "make fewer attempts: the delays between them alone take up to 37.1s");
}

#[test]
fn an_unknown_condition_is_taken_out_of_its_list() {
    let text = ENVOY.replace("retry_on: 5xx", "retry_on: connect-failure,rest-before-request");
    let found = read(&text).check();
    let unknown = found.iter().find(|found| found.finding().rule().code() == "C008").unwrap();
    let fixed = unknown.fix().unwrap().applied_to(&text).unwrap();
    assert!(fixed.contains("retry_on: connect-failure\n"), "{fixed}");
}

#[test]
fn a_server_that_is_never_left_out_is_found_and_mended() {
    let text = NGINX.replace("10.0.0.3;", "10.0.0.3 max_fails=0 weight=2;");
    let found = read(&text).check();
    let hazard = found.iter().find(|found| found.finding().rule().code() == "C013").unwrap();
    assert_eq!(hazard.place().unwrap().to_string(), "4:5");
    let fixed = hazard.fix().unwrap().applied_to(&text).unwrap();
    assert!(fixed.contains("\n    server 10.0.0.3 weight=2;\n"), "{fixed}");
    assert!(!codes(&read(&fixed).check()).contains(&"C013"), "{fixed}");
}

#[test]
fn a_constant_policy_of_dapr_grows_so_that_its_delays_are_drawn() {
    let block = DAPR.replace(
        "policy: exponential\n        maxInterval: 10s",
        "policy: constant\n        duration: 20s\n        maxRetries: 3",
    );
    let inline = block.replace(
        "always:\n        policy: constant\n        duration: 20s\n        maxRetries: 3",
        "always: {maxRetries: 3, duration: 2s, policy: constant}",
    );
    let silent = block.replace("        policy: constant\n        duration: 20s\n", "");
    for (text, part) in [
        (block, "        policy: exponential\n        maxInterval: 20s\n        maxRetries: 3\n"),
        (inline, "always: {maxRetries: 3, maxInterval: 15s, policy: exponential}"),
        (silent, "        policy: exponential\n        maxRetries: 3\n"),
    ] {
        let found = read(&text).check();
        assert_eq!(codes(&found), ["S001"], "{text}");
        let fixed = found[0].fix().unwrap().applied_to(&text).unwrap();
        assert!(fixed.contains(part), "{part}\n{fixed}");
        assert_eq!(codes(&read(&fixed).check()), [""; 0], "{fixed}");
    }
}

#[test]
fn the_limit_of_a_cluster_becomes_a_budget_if_there_is_one() {
    let fix = |text: &str| {
        let found = read(text).check();
        found.iter().find(|found| found.finding().rule().code() == "C012").unwrap().fix().unwrap().applied_to(text)
    };
    let fixed = fix(ENVOY).unwrap();
    assert!(
        fixed.ends_with("      - retry_budget: {budget_percent: {value: 20}, min_retry_concurrency: 3}\n"),
        "{fixed}"
    );
    assert!(!codes(&read(&fixed).check()).contains(&"C012"), "{fixed}");
    // The policies do not say which of several clusters they are for, and one of two would remain.
    let two = ENVOY.to_owned() + "  - name: other\n    circuit_breakers: {thresholds: [{max_retries: 2000}]}\n";
    assert_eq!(fix(&two), None);
}

#[test]
fn a_state_without_a_time_limit_gets_one() {
    let text = STATES
        .replace("      \"TimeoutSeconds\": 20,\n", "")
        .replace("\"IntervalSeconds\": 2,", "\"MaxDelaySeconds\": 9, \"JitterStrategy\": \"FULL\",")
        .replace("        }\n      ],", "        },\n        {\"ErrorEquals\": [\"A\"], \"MaxAttempts\": 1}\n      ],");
    let limits = |text: &str| {
        let found = read(text).check();
        found.into_iter().filter(|found| found.finding().rule().code() == "C003").collect::<Vec<_>>()
    };
    let found = limits(&text);
    assert_eq!(found.len(), 2, "{text}");
    for found in &found {
        let fixed = found.fix().unwrap().applied_to(&text).unwrap();
        assert!(fixed.contains("      \"TimeoutSeconds\": 60,\n      \"Retry\": ["), "{fixed}");
        assert_eq!(limits(&fixed), [], "{fixed}");
    }
}

#[test]
fn rejections_that_are_retried_and_runs_that_pile_up_are_found_and_mended() {
    let front = |conditions: &str| {
        let limited = "server { listen 8081; limit_req zone=one; location / { proxy_pass http://10.0.0.9; } }\n";
        NGINX.replace("10.0.0.1;", "127.0.0.1:8081;").replace(
            "        proxy_pass",
            &format!(
                "        proxy_next_upstream {conditions};\n        proxy_next_upstream_timeout 5s;\n        \
                      proxy_next_upstream_tries 2;\n        proxy_pass"
            ),
        ) + limited
    };
    let cron = "apiVersion: batch/v1\nkind: CronJob\nmetadata: {name: sync}\nspec:\n  schedule: '*/5 * * * *'\n  \
                jobTemplate: {spec: {template: {spec: {restartPolicy: Never}}}}\n";
    let allowed = cron.replace("  jobTemplate", "  concurrencyPolicy: Allow\n  jobTemplate");
    for (text, code, part) in [
        (front("error http_503 timeout"), "C014", "proxy_next_upstream error timeout;\n"),
        (front("http_503"), "C014", "proxy_next_upstream off;\n"),
        (cron.to_owned(), "C015", "  concurrencyPolicy: Forbid\n  schedule: '*/5"),
        (allowed, "C015", "  concurrencyPolicy: Forbid\n  jobTemplate"),
    ] {
        let found = read(&text).check();
        assert_eq!(codes(&found), [code], "{text}");
        let fixed = found[0].fix().unwrap().applied_to(&text).unwrap();
        assert!(fixed.contains(part), "{part}\n{fixed}");
        assert_eq!(codes(&read(&fixed).check()), [""; 0], "{fixed}");
    }
}

#[test]
fn what_applies_to_nothing_has_no_other_finding() {
    let text = DAPR.replace("orders: {retry: always", "orders: {retry: other");
    assert_eq!(codes(&read(&text).check()), ["C009"]);
}

#[test]
fn a_job_that_runs_again_is_not_called_unsafe_to_repeat() {
    for text in [
        "test:\n  script: make\n  retry: {max: 2, when: runner_system_failure}\n",
        "on: push\njobs:\n  test:\n    runs-on: x\n    steps:\n    - uses: nick-fields/retry@v3\n      with: {command: \
         make, max_attempts: 2, timeout_minutes: 5}\n",
    ] {
        assert_eq!(codes(&read(text).check()), [""; 0], "{text}");
    }
}

#[test]
fn an_edit_that_does_not_help_is_not_shown() {
    // The name has two meanings within the next lines: the first is a comment's.
    let text = virtual_service(
        "  - retries:\n      # retryOn: see below\n      attempts: 2\n      retryOn: 5xx\n    timeout: 9s\n",
    );
    let found = read(&text).check();
    let unsafe_to_repeat = found.iter().find(|found| found.finding().rule().code() == "S019").unwrap();
    let fix = unsafe_to_repeat.fix().unwrap();
    assert!(fix.edits().is_empty() && fix.text() == "retryOn: connect-failure,refused-stream", "{fix:?}");
}

#[test]
fn the_thresholds_of_the_rules_are_where_their_explanations_say() {
    let unit = |delay: u32| {
        format!(
            "[Unit]\nStartLimitIntervalSec=5min\nStartLimitBurst=5\n[Service]\nRestart=always\nRestartSec={delay}\n"
        )
    };
    let probe = |timeout: u32| {
        DEPLOYMENT
            .replace("httpGet", &format!("periodSeconds: 5\n          timeoutSeconds: {timeout}\n          httpGet"))
    };
    let breaker = |retries: u32| ENVOY.replace("2000", &retries.to_string());
    let tries = |tries: u32| {
        let directives =
            format!("        proxy_next_upstream_tries {tries};\n        proxy_next_upstream_timeout 9s;\n");
        NGINX.replace("        proxy_pass", &(directives + "        proxy_pass"))
    };
    for (code, found, silent) in [
        // Five starts within less than a minute.
        ("C005", unit(11), unit(12)),
        // Longer than its period, and a second at most.
        ("C007", probe(6), probe(5)),
        ("C007", probe(1), probe(2)),
        // A thousand retries at once.
        ("C012", breaker(1_000), breaker(999)),
        // More than one retry, though within a limit of time.
        ("C004", tries(3), tries(2)),
    ] {
        assert!(codes(&read(&found).check()).contains(&code), "{code}\n{found}");
        assert!(!codes(&read(&silent).check()).contains(&code), "{code}\n{silent}");
    }
}
