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
