//! Policies as configurations of other systems, read again.

use core::time::Duration;

use proptest::option;
use proptest::prelude::*;
use stagger_config::export::{Circumstances, Exported, System, export};
use stagger_config::{Entry, EntryKind, Limit, RetryBudget, read};
use stagger_core::{Jitter, Policy, Ratio};

const SYSTEMS: [System; 3] = [System::Grpc, System::Envoy, System::Istio];

fn exported(system: System, policy: &str, circumstances: &Circumstances) -> Exported {
    let parsed = policy.parse().expect("the policy is valid");
    export(system, &parsed, circumstances).unwrap_or_else(|error| panic!("{policy}: {error}"))
}

/// Returns the entry of the calls, with the budget that another document of the file sets.
fn read_back(text: &str) -> Entry {
    let entries = read(text, None).unwrap_or_else(|error| panic!("{}: {error}\n{text}", error.position()));
    let limit = entries.iter().find(|entry| entry.kind == EntryKind::Limit).and_then(|entry| entry.settings.budget);
    let mut call = entries.into_iter().find(|entry| entry.kind == EntryKind::Call).expect("there are retries");
    call.settings.budget = limit.or(call.settings.budget);
    assert!(call.remarks.iter().all(|remark| remark.kind > stagger_config::RemarkKind::NoEffect), "{call:?}\n{text}");
    call
}

fn ceilings(policy: &Policy) -> Vec<Duration> {
    let plain = policy
        .to_builder()
        .jitter(Jitter::None)
        .floor(Duration::ZERO)
        .unlimited_elapsed()
        .build()
        .expect("without the rest the policy is valid");
    let retries = policy.max_attempts().map_or(20, |attempts| attempts.get() - 1);
    (1..=retries).map_while(|retry| plain.bounds(retry)).map(|(_, ceiling)| ceiling).collect()
}

fn policies() -> impl Strategy<Value = Policy> {
    let jitter = prop_oneof![
        Just(Jitter::Full),
        Just(Jitter::None),
        Just(Jitter::Equal),
        Just(Jitter::Factor(Ratio::percent(20))),
        Just(stagger_core::profile::ENVOY.policy().jitter()),
    ];
    let length = || (1..100_000_u64).prop_map(Duration::from_millis);
    let shape = (any::<bool>(), length(), length(), prop_oneof![Just(2.0), 1.0..4.0_f64], option::of(length()));
    (shape, 2..12_u32, jitter, option::of(length())).prop_filter_map(
        "contradictory",
        |(shape, attempts, jitter, max_elapsed)| {
            let (is_constant, base, cap, multiplier, floor) = shape;
            let policy = match is_constant {
                true => Policy::constant(base),
                false => Policy::exponential(base.min(cap), base.max(cap)).multiplier(multiplier),
            };
            let policy = policy.max_attempts(attempts).jitter(jitter);
            let policy = max_elapsed.map_or(policy, |limit| policy.max_elapsed(limit));
            let least = floor.filter(|floor| *floor < base.min(cap));
            least.map_or(policy, |floor| policy.floor(floor)).build().ok()
        },
    )
}

fn circumstances() -> impl Strategy<Value = Circumstances> {
    let budget = prop_oneof![
        Just(RetryBudget::Unlimited),
        // Without a retry at once there is nothing to read again.
        (1..100_u32).prop_map(RetryBudget::Concurrent),
        (1..=100_u32, 0..10_u32)
            .prop_map(|(percent, least)| RetryBudget::ShareOfActive { ratio: f64::from(percent) / 100.0, least }),
        (1..=1_000_u32, 1..2_000_u32).prop_map(|(tokens, millis)| RetryBudget::Throttle {
            tokens: f64::from(tokens),
            ratio: f64::from(millis) / 1e3
        }),
    ];
    (option::of(lengths()), option::of(lengths()), option::of(budget)).prop_map(|(each, all, budget)| {
        let found = each.map_or(Circumstances::default(), |limit| Circumstances::default().attempt_timeout(limit));
        let found = all.map_or(found, |limit| found.timeout(limit));
        budget.map_or(found, |budget| found.budget(budget))
    })
}

/// Lengths of which Istio takes every other one.
fn lengths() -> impl Strategy<Value = Duration> {
    let nanos = (1..u64::from(u32::MAX)).prop_map(Duration::from_nanos);
    prop_oneof![nanos, (1..100_000_u64).prop_map(Duration::from_millis)]
}

/// The values that a test compares, as text.
fn values(entry: &Entry) -> [Option<String>; 3] {
    let settings = &entry.settings;
    let length = |limit: Limit<Duration>| limit.at().map_or("none".to_owned(), |length| format!("{length:?}"));
    [
        settings.attempt_timeout.filter(|limit| limit.is_stated()).map(|limit| length(limit.value)),
        settings.timeout.filter(|limit| limit.is_stated()).map(|limit| length(limit.value)),
        settings.budget.filter(|budget| budget.is_stated()).map(|budget| budget.value.to_string()),
    ]
}

proptest! {
    #[test]
    fn what_is_read_again_is_the_policy_or_is_named_as_lost(policy in policies(), around in circumstances()) {
        for system in SYSTEMS {
            let exported = export(system, &policy, &around).unwrap();
            let is_lost = |name: &str| exported.losses.iter().any(|loss| loss.name == name);
            let entry = read_back(&exported.text);
            let found = entry.policy().unwrap();
            let has_changed = found.max_attempts() != policy.max_attempts();
            prop_assert_eq!(has_changed, is_lost("max-attempts"), "{}", exported.text);
            prop_assert_eq!(found.jitter() != policy.jitter(), is_lost("jitter"), "{} {}", found, exported.text);
            prop_assert_eq!(policy.max_elapsed().is_some(), is_lost("max-elapsed"));
            prop_assert_eq!(policy.floor() != Duration::ZERO, is_lost("floor"));
            let (wanted, got) = (ceilings(&policy), ceilings(&found));
            let compared = wanted.len().min(got.len());
            prop_assert_eq!(wanted[..compared] != got[..compared], is_lost("delays"), "{} {}", found, exported.text);
        }
    }

    #[test]
    fn circumstances_are_read_again_or_named_as_lost(
        each in lengths(),
        all in lengths(),
        around in circumstances(),
    ) {
        let policy: Policy = "exponential base=25ms cap=250ms max-attempts=3".parse().unwrap();
        let around = around.attempt_timeout(each).timeout(all);
        let mut budgets = Vec::new();
        for system in SYSTEMS {
            let exported = export(system, &policy, &around).unwrap();
            let is_lost = |name: &str| exported.losses.iter().any(|loss| loss.name == name);
            let [found_each, found_all, budget] = values(&read_back(&exported.text));
            prop_assert_eq!(found_each.is_none(), is_lost("attempt-timeout"), "{}", exported.text);
            let (each, all) = (format!("{each:?}"), format!("{all:?}"));
            prop_assert!(found_each.is_none_or(|found| found == each));
            prop_assert_eq!(found_all.is_none(), is_lost("timeout"), "{}", exported.text);
            prop_assert!(found_all.is_none_or(|found| found == all));
            budgets.push((budget, is_lost("budget")));
        }
        // One of them has it, and those that have it agree.
        let found: Vec<_> = budgets.iter().filter_map(|(budget, _)| budget.clone()).collect();
        prop_assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "{budgets:?}");
        if !found.is_empty() {
            let without = budgets.iter().filter(|(budget, is_lost)| budget.is_none() && !is_lost).count();
            // gRPC has no limit unless it is written.
            prop_assert!(without == 0 || found[0] == "none" && budgets[0].0.is_none(), "{budgets:?}");
        }
    }
}

#[test]
fn each_system_has_the_fields_that_people_write() {
    let around = Circumstances::default()
        .attempt_timeout(Duration::from_millis(1_500))
        .timeout(Duration::from_secs(10))
        .budget(RetryBudget::Concurrent(5));
    let policy = "exponential base=100ms cap=2s max-attempts=4";
    let envoy = "route:
  timeout: 10s
  retry_policy:
    retry_on: connect-failure,refused-stream,reset-before-request
    num_retries: 3
    per_try_timeout: 1.5s
    retry_back_off:
      base_interval: 0.1s
      max_interval: 2s
cluster:
  circuit_breakers:
    thresholds:
    - max_retries: 5
";
    assert_eq!(exported(System::Envoy, policy, &around).text, envoy);
    let istio = "apiVersion: networking.istio.io/v1
kind: VirtualService
metadata:
  name: example
spec:
  hosts: [example]
  http:
  - route:
    - destination: {host: example}
    timeout: 10s
    retries:
      attempts: 3
      retryOn: connect-failure,refused-stream,reset-before-request
      perTryTimeout: 1s500ms
      backoff: 100ms
---
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata:
  name: example
spec:
  host: example
  trafficPolicy:
    connectionPool: {http: {maxRetries: 5}}
";
    let exported_to_istio = exported(System::Istio, policy, &around);
    assert_eq!(exported_to_istio.text, istio);
    let delays = exported_to_istio.losses.iter().find(|loss| loss.name == "delays");
    assert_eq!(delays, None, "the three delays are below the cap");
    let capped = exported(System::Istio, "exponential base=100ms cap=300ms max-attempts=4", &around);
    let delays = capped.losses.iter().find(|loss| loss.name == "delays").unwrap();
    assert_eq!(delays.to_string(), "delays up to 100ms, 200ms, 300ms: up to 100ms, 200ms, 400ms there");
    let grpc = exported(System::Grpc, policy, &around.budget(RetryBudget::Throttle { tokens: 10.0, ratio: 0.1 }));
    for field in ["\"timeout\": \"10s\"", "\"maxTokens\": 10", "\"tokenRatio\": 0.1", "\"maxAttempts\": 4"] {
        assert!(grpc.text.contains(field), "{}", grpc.text);
    }
}

#[test]
fn a_policy_without_a_counterpart_is_refused_with_a_way_out() {
    for (system, policy, wanted) in [
        (System::Envoy, "stop", "the policy makes no retries; leave out the retry policy"),
        (System::Envoy, "exponential max-attempts=1", "max-attempts=1 makes no retries; leave out the retry policy"),
        (System::Istio, "exponential max-attempts=inf", "Envoy needs a limit of attempts; set max-attempts"),
        (System::Envoy, "zero max-attempts=3", "Envoy's delays are at least 1ms; use a backoff with a delay"),
        (System::Envoy, "linear", "Envoy's delays double up to a cap; use exponential or constant backoff"),
        (System::Istio, "exponential base=100us", "Envoy's delays are at least 1ms; raise the base"),
        (System::Grpc, "linear", "gRPC's delays grow by a constant factor; use exponential or constant backoff"),
    ] {
        let error = export(system, &policy.parse().unwrap(), &Circumstances::default()).unwrap_err();
        assert_eq!(error.to_string(), wanted, "{policy}");
    }
}

#[test]
fn a_profile_of_a_system_loses_only_what_it_says() {
    let names = |system, policy: &str| {
        let exported = exported(system, policy, &Circumstances::default());
        exported.losses.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert!(names(System::Grpc, "grpc-a6").is_empty());
    assert_eq!(
        names(System::Envoy, "envoy"),
        ["hint=at-least: Envoy reads Retry-After only if rate_limited_retry_back_off names the header"]
    );
    assert_eq!(
        names(System::Istio, "envoy"),
        ["hint=at-least: a VirtualService cannot tell Envoy to read Retry-After"]
    );
}

#[test]
fn no_retry_at_once_is_lost_for_istio_which_takes_zero_for_no_limit() {
    let policy: Policy = "exponential base=25ms cap=250ms max-attempts=3".parse().unwrap();
    let none = Circumstances::default().budget(RetryBudget::Concurrent(0));
    let exported = export(System::Istio, &policy, &none).unwrap();
    assert!(exported.losses.iter().any(|loss| loss.name == "budget") && !exported.text.contains("maxRetries"));
    assert!(export(System::Envoy, &policy, &none).unwrap().text.contains("max_retries: 0"));
}
