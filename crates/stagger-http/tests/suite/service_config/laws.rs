use core::time::Duration;

use proptest::prelude::*;
use proptest::{collection, option};
use stagger::hedge::Hedge;
use stagger::{Jitter, Policy, Ratio};
use stagger_http::grpc::Codes;
use stagger_http::service_config::{
    AttemptPolicy, Hedging, MethodConfig, MethodName, MethodRetries, RetryThrottling, ServiceConfig,
};

use super::read;

fn duration() -> impl Strategy<Value = Duration> {
    prop_oneof![
        (1..10_000_u64).prop_map(Duration::from_millis),
        (1..u64::from(u32::MAX)).prop_map(Duration::from_nanos),
        (1..315_576_000_000_u64).prop_map(Duration::from_secs),
    ]
}

fn codes() -> impl Strategy<Value = Codes> {
    collection::vec(1..=16_u32, 1..5).prop_map(|codes| Codes::new(&codes))
}

fn attempts() -> impl Strategy<Value = AttemptPolicy> {
    let retry = (duration(), duration(), 2..9_u32, 1.0..1e9_f64, codes());
    let retry = retry.prop_map(|(base, cap, attempts, multiplier, codes)| {
        let policy = Policy::exponential(base.min(cap), base.max(cap)).max_attempts(attempts).multiplier(multiplier);
        AttemptPolicy::Retry(MethodRetries::from_policy(&policy.build().unwrap(), codes).unwrap().0)
    });
    let hedge = (option::of(duration()), 1..9_u32, option::of(codes())).prop_map(|(delay, copies, codes)| {
        let hedge = Hedge::after(delay.unwrap_or_default()).with_max_copies(copies);
        AttemptPolicy::Hedge(Hedging::from_hedge(&hedge, codes.unwrap_or_default()).unwrap().0)
    });
    prop_oneof![Just(AttemptPolicy::Single), retry, hedge]
}

fn config() -> impl Strategy<Value = ServiceConfig> {
    let method = (collection::vec("[a-z]{1,3}", 0..3), option::of(duration()), attempts());
    let throttling = option::of((1..=1_000_u32, 1..=1_000_000_u32));
    (collection::vec(method, 0..4), throttling).prop_map(|(methods, throttling)| {
        let methods = methods.into_iter().enumerate().map(|(at, (names, timeout, attempts))| {
            let names = names.into_iter().enumerate().map(|(n, name)| match n {
                0 => MethodName::Service(format!("{name}{at}")),
                _ => MethodName::Method(format!("{name}{at}"), format!("{name}{n}")),
            });
            let method = MethodConfig::new(names, attempts);
            timeout.map_or(method.clone(), |limit| method.with_timeout(limit))
        });
        let config = ServiceConfig::new(methods.collect()).unwrap();
        let Some((tokens, ratio)) = throttling else { return config };
        config.with_throttling(RetryThrottling::new(tokens, Ratio::millionths(ratio * 1_000)).unwrap())
    })
}

proptest! {
    #[test]
    fn a_written_config_is_parsed_as_the_same_config(config in config()) {
        prop_assert_eq!(read(&config.to_string()), config);
    }

    #[test]
    fn any_text_is_a_config_or_an_error_with_a_problem(json in "[\\[\\]{}:,\"a-zA-Z0-9.]{0,60}") {
        if let Err(error) = json.parse::<ServiceConfig>() {
            prop_assert!(error.problems().count() > 0);
        }
    }

    // For each retry that both policies make.
    #[test]
    fn a_mapped_policy_has_the_same_ceilings(base in duration(), cap in duration(), multiplier in 1.0..50.0_f64) {
        let policy = Policy::exponential(base.min(cap), base.max(cap)).multiplier(multiplier);
        let policy = policy.jitter(Jitter::Factor(Ratio::percent(20))).max_attempts(5).build().unwrap();
        let (mapped, _) = MethodRetries::from_policy(&policy, Codes::UNAVAILABLE).unwrap();
        for retry in 1..5 {
            prop_assert_eq!(mapped.policy().bounds(retry), policy.bounds(retry));
        }
    }
}
