use core::time::Duration;

use proptest::prelude::*;
use proptest::{collection, option};
use stagger::{Jitter, Policy, Ratio, hedge::Hedge};
use stagger_http::grpc::Codes;
use stagger_http::service_config::{Attempts, Hedging, MethodConfig, MethodName, Retries, ServiceConfig, Throttling};

use super::read;

fn length() -> impl Strategy<Value = Duration> {
    prop_oneof![
        (1..10_000_u64).prop_map(Duration::from_millis),
        (1..u64::from(u32::MAX)).prop_map(Duration::from_nanos),
        (1..315_576_000_000_u64).prop_map(Duration::from_secs),
    ]
}

fn codes() -> impl Strategy<Value = Codes> {
    collection::vec(1..=16_u32, 1..5).prop_map(|codes| Codes::of(&codes))
}

fn attempts() -> impl Strategy<Value = Attempts> {
    let retried = (length(), length(), 2..9_u32, 1.0..1e9_f64, codes());
    let retried = retried.prop_map(|(base, cap, attempts, multiplier, codes)| {
        let policy = Policy::exponential(base.min(cap), base.max(cap)).max_attempts(attempts).multiplier(multiplier);
        Attempts::Retried(Retries::new(&policy.build().unwrap(), codes).unwrap().0)
    });
    let hedged = (option::of(length()), 1..9_u32, option::of(codes())).prop_map(|(delay, copies, codes)| {
        let hedge = Hedge::after(delay.unwrap_or_default()).with_max_copies(copies);
        Attempts::Hedged(Hedging::new(&hedge, codes.unwrap_or_default()).unwrap().0)
    });
    prop_oneof![Just(Attempts::One), retried, hedged]
}

fn config() -> impl Strategy<Value = ServiceConfig> {
    let method = (collection::vec("[a-z]{1,3}", 0..3), option::of(length()), attempts());
    let throttling = option::of((1..=1_000_u32, 1..=1_000_000_u32));
    (collection::vec(method, 0..4), throttling).prop_map(|(methods, throttling)| {
        let methods = methods.into_iter().enumerate().map(|(at, (names, timeout, attempts))| {
            let names = names.into_iter().enumerate().map(|(n, name)| match n {
                0 => MethodName::Service(format!("{name}{at}")),
                _ => MethodName::Method(format!("{name}{at}"), format!("{name}{n}")),
            });
            let method = MethodConfig::new(names, attempts);
            timeout.map_or(method.clone(), |limit| method.timeout(limit))
        });
        let config = ServiceConfig::new(methods.collect()).unwrap();
        let Some((tokens, ratio)) = throttling else { return config };
        config.throttled(Throttling::new(tokens, Ratio::millionths(ratio * 1_000)).unwrap())
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_as_what_it_was(config in config()) {
        prop_assert_eq!(read(&config.to_string()), config);
    }

    #[test]
    fn whatever_is_read_is_a_config_or_an_error_with_a_fault(json in "[\\[\\]{}:,\"a-zA-Z0-9.]{0,60}") {
        if let Err(error) = json.parse::<ServiceConfig>() {
            prop_assert!(error.faults().count() > 0);
        }
    }

    /// What gRPC makes of the policy has the same ceilings as the policy, for each retry that both make.
    #[test]
    fn what_is_said_of_a_policy_has_its_ceilings(base in length(), cap in length(), multiplier in 1.0..50.0_f64) {
        let policy = Policy::exponential(base.min(cap), base.max(cap)).multiplier(multiplier);
        let policy = policy.jitter(Jitter::Factor(Ratio::percent(20))).max_attempts(5).build().unwrap();
        let (said, _) = Retries::new(&policy, Codes::UNAVAILABLE).unwrap();
        for retry in 1..5 {
            prop_assert_eq!(said.policy().bounds(retry), policy.bounds(retry));
        }
    }
}
