use core::num::NonZeroU32;
use core::time::Duration;

use proptest::prelude::*;
use proptest::{collection, option};
use stagger::hedge::{Hedge, HedgeDelay};
use stagger::profile::GRPC_A6;
use stagger::{HintMode, Jitter, Policy, Ratio, policy};
use stagger_http::grpc::Codes;
use stagger_http::service_config::{
    AttemptPolicy, Hedging, MethodConfig, MethodName, MethodRetries, RetryThrottling, ServiceConfig, Unmapped,
};

use super::{ms, read};

const BASE: Policy = policy!(exponential(ms(100), secs(1)).jitter(Jitter::Factor(Ratio::percent(20))).max_attempts(4));

#[test]
fn policy_settings_without_a_counterpart_are_listed() {
    let policy = Policy::exponential(ms(100), Duration::from_secs(1))
        .jitter(Jitter::Full)
        .max_attempts(7)
        .floor(ms(10))
        .spread(ms(20))
        .max_elapsed(Duration::from_secs(60))
        .max_hint(Duration::from_secs(9))
        .throttled_base(ms(500))
        .local_base(ms(300))
        .stable_after(Duration::from_secs(5))
        .build()
        .unwrap();
    let (mapped, unmapped) = MethodRetries::from_policy(&policy, Codes::UNAVAILABLE).unwrap();
    let want = [
        Unmapped::Jitter(Jitter::Full),
        Unmapped::MaxAttempts(NonZeroU32::new(7)),
        Unmapped::Floor(ms(10)),
        Unmapped::Spread(ms(20)),
        Unmapped::MaxElapsed(Duration::from_secs(60)),
        Unmapped::HintMode(HintMode::AtLeast),
        Unmapped::MaxHint(Some(Duration::from_secs(9))),
        Unmapped::ThrottledBase(ms(500)),
        Unmapped::LocalBase(ms(300)),
        Unmapped::StableAfter(Duration::from_secs(5)),
    ];
    assert_eq!(unmapped, want);
    assert_eq!(mapped.max_attempts().get(), 5);
    for (unmapped, name) in want.iter().zip([
        "jitter=full",
        "max-attempts=7",
        "floor=10ms",
        "spread=20ms",
        "max-elapsed=1m",
        "hint=at-least",
        "max-hint=9s",
        "throttled-base=500ms",
        "local-base=300ms",
        "stable-after=5s",
    ]) {
        let text = unmapped.to_string();
        assert!(text.starts_with(&format!("{name}: ")), "{text}");
        let alone: Policy = format!("exponential base=100ms cap=1s {name}").parse().unwrap();
        assert!(
            MethodRetries::from_policy(&alone, Codes::UNAVAILABLE).unwrap().1.contains(unmapped),
            "the setting has the same name in the policy language: {alone}"
        );
    }
}

#[test]
fn the_profile_maps_completely_and_policies_that_cannot_be_mapped_are_rejected() {
    let (mapped, unmapped) = MethodRetries::from_policy(&GRPC_A6.policy(), Codes::UNAVAILABLE).unwrap();
    assert_eq!((*mapped.policy(), unmapped), (GRPC_A6.policy(), vec![]));
    for (policy, codes, want) in [
        ("stop", Codes::UNAVAILABLE, "the policy makes no retries; omit retryPolicy"),
        ("exponential max-attempts=1", Codes::UNAVAILABLE, "max-attempts=1 makes no retries; omit retryPolicy"),
        ("linear", Codes::UNAVAILABLE, "gRPC's delays grow by a constant factor; use exponential or constant backoff"),
        ("zero", Codes::UNAVAILABLE, "initialBackoff must not be zero; use a backoff with a delay"),
        (
            "exponential jitter=decorrelated",
            Codes::UNAVAILABLE,
            "jitter=decorrelated has no backoff ceilings, which gRPC needs; use full jitter",
        ),
        ("exponential", Codes::NONE, "there are no retryable status codes; add at least UNAVAILABLE"),
    ] {
        let error = MethodRetries::from_policy(&policy.parse().unwrap(), codes).unwrap_err();
        assert_eq!(error.to_string(), want, "{policy}");
    }
    let constant: Policy = "constant base=3s".parse().unwrap();
    let (mapped, _) = MethodRetries::from_policy(&constant, Codes::UNAVAILABLE).unwrap();
    assert_eq!((mapped.initial_backoff(), mapped.max_backoff()), (Duration::from_secs(3), Duration::from_secs(3)));
    assert_eq!(mapped.backoff_multiplier().to_string(), "1");
}

// The ceilings of gRPC's four retries are those of the policy.
#[test]
fn a_policy_without_a_cap_maps_to_one_that_is_never_reached() {
    let uncapped = BASE.to_builder().uncapped().max_attempts(5).build().unwrap();
    let (mapped, unmapped) = MethodRetries::from_policy(&uncapped, Codes::UNAVAILABLE).unwrap();
    assert_eq!(mapped.max_backoff(), ms(800));
    for retry in 1..5 {
        assert_eq!(mapped.policy().bounds(retry), uncapped.bounds(retry));
    }
    assert_eq!(unmapped, [Unmapped::HintMode(HintMode::AtLeast)]);
}

#[test]
fn hedge_settings_without_a_counterpart_are_listed() {
    let (mapped, unmapped) = Hedging::from_hedge(&Hedge::after(ms(50)).with_max_copies(9), Codes::NONE).unwrap();
    assert_eq!((mapped.max_attempts().get(), unmapped), (5, vec![Unmapped::MaxAttempts(NonZeroU32::new(10))]));
    let (mapped, unmapped) =
        Hedging::from_hedge(&Hedge::at_quantile(Ratio::percent(95), ms(70)), Codes::UNAVAILABLE).unwrap();
    assert_eq!(mapped.delay(), ms(70), "the delay until the quantile is known");
    assert_eq!(unmapped, [Unmapped::Quantile(Ratio::percent(95))]);
    assert_eq!(HedgeDelay::Fixed(ms(70)), mapped.to_hedge().delay());
}

#[test]
fn a_service_config_is_written_in_the_customary_form() {
    let (retries, _) = MethodRetries::from_policy(&GRPC_A6.policy(), Codes::new(&[14, 10])).unwrap();
    let name = MethodName::Method("shop.Stock".to_owned(), "Count".to_owned());
    let config = ServiceConfig::new(vec![MethodConfig::new([name], AttemptPolicy::Retry(retries))]).unwrap();
    let config = config.with_throttling(RetryThrottling::new(10, Ratio::percent(10)).unwrap());
    let want = r#"{
  "methodConfig": [
    {
      "name": [
        {
          "service": "shop.Stock",
          "method": "Count"
        }
      ],
      "retryPolicy": {
        "maxAttempts": 4,
        "initialBackoff": "0.1s",
        "maxBackoff": "1s",
        "backoffMultiplier": 2.0,
        "retryableStatusCodes": [
          "ABORTED",
          "UNAVAILABLE"
        ]
      }
    }
  ],
  "retryThrottling": {
    "maxTokens": 10,
    "tokenRatio": 0.1
  }
}"#;
    assert_eq!(config.to_string(), want);
}

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
