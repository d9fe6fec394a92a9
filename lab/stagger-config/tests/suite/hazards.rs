//! What makes a failure worse: rejections that are sent again, and runs that pile up.

use stagger_config::RemarkKind;

use crate::described::{described, expect, remarks};

/// A server of nginx before others of the same file, and what it retries.
fn front(conditions: &str, behind: &str) -> String {
    format!(
        "upstream app {{ server 127.0.0.1:8081; server 10.0.0.2; }}\nserver {{\n  listen 80;\n  location / {{\n    \
         proxy_next_upstream {conditions};\n    proxy_pass http://app;\n  }}\n}}\n{behind}"
    )
}

#[test]
fn rejections_of_a_limiter_that_are_retried_are_found_by_status_and_address() {
    let limited = |inner: &str| format!("server {{ listen 8081; location / {{ limit_req zone=a; {inner} }} }}\n");
    let found = |text: &str| remarks(text, RemarkKind::Hazard).len();
    for (text, want) in [
        (front("error http_503", &limited("")), 1),
        (front("error http_502", &limited("")), 0),
        (front("error http_503", &limited("limit_req_status 429;")), 0),
        (front("error http_429", &limited("limit_req_status 429;")), 1),
        (front("off", &limited("")), 0),
        // A status that is set above, and one that is set for another module.
        (front("http_503", &format!("limit_req_status 444;\n{}", limited(""))), 0),
        (front("http_503", &format!("limit_conn_status 444;\n{}", limited(""))), 1),
        // A limit that is set above a server.
        (front("http_503", "limit_conn a 10;\nserver { listen [::]:8081; }\n"), 1),
        (front("http_503", "server { listen 8081; limit_conn a 10; limit_conn_status 429; }\n"), 0),
        // Another server's limit, and the own one, which rejects before it passes on.
        (front("http_503", "server { listen 8082; limit_req zone=a; }\n"), 0),
        (front("http_503", "").replace("listen 80;", "listen 80; limit_req zone=a;"), 0),
        // A group of one server has no other to try.
        (front("http_503", &limited("")).replace(" server 10.0.0.2;", ""), 0),
        (front("http_503", &limited("")).replace("127.0.0.1:8081", "10.0.0.1:8081"), 0),
        (front("http_503", &limited("")).replace("127.0.0.1:8081;", "127.0.0.1:8081 down; server b;"), 0),
        (front("http_503", "server { limit_req zone=a; }\n").replace("127.0.0.1:8081", "localhost"), 1),
        (
            front("http_503", "server { listen unix:/run/b.sock; limit_req zone=a; }\n")
                .replace("127.0.0.1:8081", "unix:/run/b.sock"),
            1,
        ),
    ] {
        assert_eq!(found(&text), want, "{text}");
    }
    expect(
        &remarks(&front("error http_503", &limited("")), RemarkKind::Hazard),
        &["5:5 server > location / > proxy_pass http://app: `http_503` sends again what limit_req of the server at \
           127.0.0.1:8081 rejects, until a server takes it or the tries are used up"],
    );
}

fn cron(spec: &str, job: &str) -> String {
    format!(
        "apiVersion: batch/v1\nkind: CronJob\nmetadata: {{name: sync}}\nspec:\n{spec}  jobTemplate: {{spec: {{{job}template: {{spec: {{restartPolicy: Never}}}}}}}}\n"
    )
}

#[test]
fn runs_of_a_cron_job_that_begin_before_the_retries_of_the_last_end_are_found() {
    // The delays of six retries take 630 s, and those of two 30 s.
    for (spec, job, want) in [
        ("  schedule: '*/10 * * * *'\n", "", 1),
        ("  schedule: '*/12 * * * *'\n", "", 0),
        ("  schedule: '*/10 * * * *'\n", "activeDeadlineSeconds: 600, ", 0),
        ("  schedule: '*/10 * * * *'\n", "activeDeadlineSeconds: 601, ", 1),
        ("  schedule: '* * * * *'\n", "backoffLimit: 2, ", 0),
        ("  schedule: '* * * * *'\n", "backoffLimit: 3, ", 1),
        ("  schedule: '*/5 * * * *'\n  concurrencyPolicy: Forbid\n", "", 0),
        ("  schedule: '*/5 * * * *'\n  concurrencyPolicy: Replace\n", "", 0),
        ("  schedule: '*/5 * * * *'\n  concurrencyPolicy: Allow\n", "", 1),
        ("  schedule: '@hourly'\n", "backoffLimit: 100, ", 0),
        ("  suspend: true\n", "", 0),
    ] {
        let text = cron(spec, job);
        assert_eq!(remarks(&text, RemarkKind::Hazard).len(), want, "{text}");
    }
    // Containers restart at once first: 310 s.
    let restarted = |schedule: &str| cron(schedule, "").replace("Never", "OnFailure");
    assert_eq!(remarks(&restarted("  schedule: '*/5 * * * *'\n"), RemarkKind::Hazard).len(), 1);
    assert_eq!(remarks(&restarted("  schedule: '*/6 * * * *'\n"), RemarkKind::Hazard).len(), 0);
    assert_eq!(remarks(&restarted("  schedule: '* * * * *'\n  suspend: true\n"), RemarkKind::Hazard).len(), 0);
    expect(
        &remarks(&cron("  schedule: '*/5 * * * *'\n", ""), RemarkKind::Hazard),
        &[
            "5:3 CronJob/sync spec.schedule: Allow lets runs overlap: one begins every 5m, and one that fails is retried for \
           10m30s, and longer by what its attempts take",
        ],
    );
}

#[test]
fn the_clients_of_azure_service_bus_double_from_twice_their_delay() {
    let text = r#"{
  "version": "2.0",
  "extensions": {
    "serviceBus": {
      "clientRetryOptions": {"mode": "exponential", "tryTimeout": "00:00:30", "delay": "00:00:01", "maxDelay": "00:00:20", "maxRetries": 5},
      "prefetchCount": 10
    },
    "eventHubs": {
      "clientRetryOptions": {"mode": "Fixed", "delay": "00:00:00.80", "maximumRetries": 2}
    }
  }
}"#;
    expect(
        &described(text),
        &[
            "Call extensions.serviceBus.clientRetryOptions at 5:7: attempts=6 base=2s cap=20s multiplier=2 jitter=add:80ms* each=30s budget=(none)*",
            "Call extensions.eventHubs.clientRetryOptions at 9:7: attempts=3 base=800ms multiplier=1 jitter=add:64ms* each=60s* budget=(none)*",
        ],
    );
    let section = r#"{"Messaging": {"RetryOptions": {"MaxRetries": 4, "TryTimeout": "00:01:00", "MaxDelay": "0"}},
        "Other": {"RetryOptions": {"Count": 3}}}"#;
    // Without a delay nothing is retried.
    expect(&described(section), &["Call Messaging.RetryOptions at 1:16: attempts=1 each=60s budget=(none)*"]);
    assert!(remarks(section, RemarkKind::Note).iter().any(|note| note.contains("a delay of zero turns retries off")));
    let wrong = r#"{"RetryOptions": {"MaxRetries": 4, "Mode": "linear", "Delays": 3}}"#;
    expect(&remarks(wrong, RemarkKind::Invalid), &["1:36 RetryOptions.Mode: `linear` is not fixed or exponential"]);
    assert_eq!(remarks(wrong, RemarkKind::Unmapped).len(), 1);
}

#[test]
fn what_a_file_of_nginx_includes_is_named() {
    let text = "http {\n  include mime.types;\n  include conf.d/*.conf;\n  upstream a { server b; include more; }\n  \
                server {\n    location / { proxy_pass http://a; include fastcgi_params; }\n    location /b { proxy_pass http://a; }\n  }\n}\n";
    expect(
        &remarks(text, RemarkKind::NotRead),
        &[
            "3:3 include: what `conf.d/*.conf` says may replace this; `nginx -T` prints it in one file",
            "4:26 include: what `more` says may replace this; `nginx -T` prints it in one file",
        ],
    );
}

#[test]
fn annotations_in_source_code_are_not_read_and_the_error_says_so() {
    for code in [
        "class A {\n    @Retryable(maxAttempts = 5)\n    void call() {}\n}\n",
        "class A {\n    @Retry(name = \"a\")\n    fun call() {}\n}\n",
    ] {
        let error = stagger_config::read(code, None).unwrap_err();
        assert_eq!(error.position().to_string(), "2:5");
        assert!(error.to_string().contains("retries that annotations set in source code are not read"), "{error}");
    }
}
