//! Envoy, nginx and HAProxy.

use stagger_config::RemarkKind;

use crate::described::{described, expect, remarks};

const ENVOY: &str = r"static_resources:
  listeners:
  - filter_chains:
    - filters:
      - typed_config:
          route_config:
            virtual_hosts:
            - name: shop
              retry_policy: {retry_on: 'connect-failure,rest-before-request'}
              routes:
              - match: {prefix: /}
                route: {cluster: shop, timeout: 0s}
            - name: cart
              routes:
              - route:
                  cluster: cart
                  timeout: 3s
                  retry_policy:
                    retry_on: 5xx
                    num_retries: 4
                    per_try_timeout: 1s
                    retry_back_off: {base_interval: 0.1s}
                    retry_host_predicate: [{name: previous_hosts}]
              - route:
                  cluster: cart
                  retryPolicy: {retryOn: reset, numRetries: {value: 2}}
  clusters:
  - name: shop
    circuit_breakers: {thresholds: [{max_retries: 10}]}
";

#[test]
fn policies_of_envoy_are_found_at_every_place_in_both_spellings() {
    expect(
        &described(ENVOY),
        &[
            "Call static_resources.listeners[0].filter_chains[0].filters[0].typed_config.route_config.virtual_hosts[0].retry_policy at 9:15: attempts=2* base=25ms* cap=250ms* multiplier=2* jitter=full* all=none budget=(at most 10 retries at once)",
            "Call static_resources.listeners[0].filter_chains[0].filters[0].typed_config.route_config.virtual_hosts[1].routes[0].route.retry_policy at 18:19: attempts=5 base=100ms cap=1s* multiplier=2* jitter=full* each=1s all=3s budget=(at most 3 retries at once)* unsafe",
            "Call static_resources.listeners[0].filter_chains[0].filters[0].typed_config.route_config.virtual_hosts[1].routes[1].route.retryPolicy at 26:19: attempts=3 base=25ms* cap=250ms* multiplier=2* jitter=full* all=15s* budget=(at most 3 retries at once)* unsafe",
        ],
    );
    let found = remarks(ENVOY, RemarkKind::NoEffect);
    assert!(found.len() == 1 && found[0].contains("rest-before-request"), "{found:?}");
    assert_eq!(remarks(ENVOY, RemarkKind::Unmapped).len(), 1);
}

#[test]
fn a_policy_of_what_envoy_fetches_is_another_message() {
    let text = r#"{"vm_config": {"code": {"remote": {"retry_policy": {"retry_back_off": {"base_interval": "2s"}, "num_retries": 10}}}}}"#;
    expect(
        &described(text),
        &["Fetch vm_config.code.remote.retry_policy at 1:36: attempts=11 base=2s cap=20s* multiplier=2* jitter=full*"],
    );
}

#[test]
fn nginx_tries_as_many_servers_as_a_group_has() {
    let text = r"http {
  upstream app { server a:80; server b:80 max_fails=0; server c:80 down; server d:80 backup; }
  proxy_read_timeout 10s;
  server {
    location / { proxy_pass http://app; }
    location /orders {
      proxy_next_upstream error http_503 non_idempotent; # both
      proxy_next_upstream_tries 2;
      proxy_next_upstream_timeout 5s;
      proxy_pass http://app/orders;
    }
    location /off { proxy_next_upstream off; proxy_pass http://app; }
    location /one { grpc_pass grpc://10.0.0.1:50051; }
    location /name { proxy_read_timeout 1m30s; proxy_pass http://app.example/x; }
  }
}
";
    expect(
        &described(text),
        &[
            "Call server > location / > proxy_pass http://app at 5:18: attempts=3* base=0ns* jitter=none* each=10s all=none* budget=(none)*",
            "Call server > location /orders > proxy_pass http://app/orders at 10:7: attempts=2 base=0ns* jitter=none* each=10s all=5s budget=(none)* unsafe",
            "Call server > location /off > proxy_pass http://app at 12:46: attempts=1 each=10s",
            "Call server > location /one > grpc_pass grpc://10.0.0.1:50051 at 13:21: attempts=1* each=60s*",
            "Call server > location /name > proxy_pass http://app.example/x at 14:48: attempts=unknown* base=0ns* jitter=none* each=90s all=none* budget=(none)*",
        ],
    );
    let notes = remarks(text, RemarkKind::Note);
    assert!(notes.iter().any(|note| note.starts_with("14:48") && note.contains("several addresses")), "{notes:?}");
}

#[test]
fn haproxy_inherits_from_its_defaults_and_counts_retries() {
    let text = r"global
  maxconn 100
defaults
  mode http
  timeout connect 500
  timeout server 30s
backend plain
  server a 10.0.0.1:80
backend careful
  retries 1
  retry-on all-retryable-errors
  option redispatch
  server a 10.0.0.1:80
defaults tcp
  mode tcp
  timeout connect 5s
listen db from tcp
  retries 0
  retry-on 503
  server a 10.0.0.1:5432
frontend web
  bind :80
";
    expect(
        &described(text),
        &[
            "Call backend plain at 7:1: attempts=4* base=500ms* multiplier=1* jitter=none* each=30s all=none* budget=(none)*",
            "Call backend careful at 9:1: attempts=2 base=0ns* multiplier=1* jitter=none* each=30s all=none* budget=(none)* unsafe",
            "Call listen db at 17:1: attempts=1 all=none* budget=(none)*",
        ],
    );
    let found = remarks(text, RemarkKind::NoEffect);
    assert!(found.len() == 1 && found[0].starts_with("19:3"), "{found:?}");
}

#[test]
fn each_directive_of_nginx_does_what_its_row_says() {
    let http = |servers: &str, directives: &str| {
        format!("upstream a {{ {servers} }}\nserver {{ location / {{ {directives} proxy_pass http://a; }} }}\n")
    };
    let stream = |directives: &str| {
        format!(
            "stream {{ upstream a {{ server 10.0.0.1:1; server 10.0.0.2:1; }} server {{ listen 1; {directives} proxy_pass a; }} }}\n"
        )
    };
    let three = "server 10.0.0.1; server 10.0.0.2; server 10.0.0.3;";
    let tried = "base=0ns* jitter=none* each=60s* all=none*";
    let at_once = format!("{tried} budget=(none)*");
    for (text, wanted, refused) in [
        (http(three, ""), format!("attempts=3* {at_once}"), 0),
        (http("server 10.0.0.1; server 10.0.0.2 down;", ""), "attempts=1* each=60s*".to_owned(), 0),
        (http("server 10.0.0.1;", "proxy_next_upstream_tries 3;"), "attempts=1* each=60s*".to_owned(), 0),
        (http(three, "proxy_next_upstream error;"), format!("attempts=3 {at_once}"), 0),
        (http(three, "proxy_next_upstream off;"), "attempts=1 each=60s*".to_owned(), 0),
        (http(three, "proxy_next_upstream error off;"), "attempts=1 each=60s*".to_owned(), 0),
        (http(three, "proxy_next_upstream error http_501;"), format!("attempts=3 {at_once}"), 1),
        (http(three, "proxy_next_upstream on;"), format!("attempts=3 {at_once}"), 1),
        (http(three, "proxy_next_upstream http_502 updating;"), format!("attempts=3 {at_once}"), 0),
        (http(three, "proxy_next_upstream_tries 2;"), format!("attempts=2 {at_once}"), 0),
        (http(three, "proxy_next_upstream_tries 0;"), format!("attempts=3* {at_once}"), 0),
        (http(three, "proxy_next_upstream_tries 2.0;"), format!("attempts=unknown {at_once}"), 1),
        (
            http(three, "proxy_next_upstream_timeout 0;"),
            format!("attempts=3* {}", at_once.replace("all=none*", "all=none")),
            0,
        ),
        (
            http(three, "proxy_next_upstream_timeout 5;"),
            format!("attempts=3* {}", at_once.replace("all=none*", "all=5s")),
            0,
        ),
        (
            http(three, "proxy_next_upstream_timeout soon;"),
            format!("attempts=3* {}", at_once.replace("all=none*", "all=unknown")),
            1,
        ),
        (
            http(three, "proxy_read_timeout 1500ms;"),
            format!("attempts=3* {}", at_once.replace("each=60s*", "each=1.5s")),
            0,
        ),
        (
            http(three, "proxy_read_timeout 1.5s;"),
            format!("attempts=3* {}", at_once.replace("each=60s*", "each=unknown")),
            1,
        ),
        (http(three, "proxy_connect_timeout 5s;"), format!("attempts=3* {at_once}"), 0),
        (
            stream("proxy_connect_timeout 5s; proxy_read_timeout 9s;"),
            format!("attempts=2* {}", at_once.replace("each=60s*", "each=5s")),
            0,
        ),
        (stream("proxy_next_upstream on;"), format!("attempts=2 {at_once}"), 0),
        (stream("proxy_next_upstream error;"), format!("attempts=2 {at_once}"), 1),
    ] {
        assert_eq!(described(&text)[0].split_once(": ").unwrap().1, wanted, "{text}");
        let found = remarks(&text, RemarkKind::Invalid);
        assert_eq!(found.len(), refused, "{text}: {found:?}");
    }
    let fastcgi = http(three, "fastcgi_next_upstream http_502;").replace("proxy_pass http://a", "fastcgi_pass a");
    assert_eq!(remarks(&fastcgi, RemarkKind::Invalid).len(), 1);
}

#[test]
fn what_nginx_adds_to_the_tries_that_a_file_counts_is_said() {
    let group =
        |servers: &str| format!("upstream a {{ {servers} }}\nserver {{ location / {{ proxy_pass http://a; }} }}\n");
    for (servers, note) in [
        ("server app1; server app2;", "once for each of its addresses"),
        ("server 10.0.0.1; keepalive 8;", "kept connection"),
        ("server 10.0.0.1;", ""),
        ("server 10.0.0.1; server unix:/run/a; keepalive 8;", ""),
    ] {
        let notes = remarks(&group(servers), RemarkKind::Note);
        let notes: Vec<_> = notes.iter().filter(|note| !note.contains("without a next_upstream_timeout")).collect();
        assert_eq!(notes.len(), usize::from(!note.is_empty()), "{servers}: {notes:?}");
        assert!(notes.iter().all(|found| found.contains(note)), "{servers}: {notes:?}");
    }
    let limited =
        group("server 10.0.0.1; server 10.0.0.2;").replace("proxy_pass", "proxy_next_upstream_timeout 5s; proxy_pass");
    let notes = remarks(&limited, RemarkKind::Note);
    assert!(notes.len() == 1 && notes[0].contains("ends no attempt"), "{notes:?}");
}
