use core::num::NonZeroU32;
use core::time::Duration;

use stagger::profile::GRPC_A6;
use stagger::{HintMode, Jitter, Policy, Ratio, hedge::Hedge, hedge::HedgeDelay, policy};
use stagger_http::grpc::Codes;
use stagger_http::service_config::{
    Attempts, Hedging, MethodConfig, MethodName, Retries, ServiceConfig, Throttling, Unsaid,
};

use super::ms;

const BASE: Policy = policy!(exponential(ms(100), secs(1)).jitter(Jitter::Factor(Ratio::percent(20))).max_attempts(4));

#[test]
fn what_a_service_config_cannot_say_of_a_policy_is_listed() {
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
    let (said, unsaid) = Retries::new(&policy, Codes::UNAVAILABLE).unwrap();
    let want = [
        Unsaid::Jitter(Jitter::Full),
        Unsaid::MaxAttempts(NonZeroU32::new(7)),
        Unsaid::Floor(ms(10)),
        Unsaid::Spread(ms(20)),
        Unsaid::MaxElapsed(Duration::from_secs(60)),
        Unsaid::HintMode(HintMode::AtLeast),
        Unsaid::MaxHint(Some(Duration::from_secs(9))),
        Unsaid::ThrottledBase(ms(500)),
        Unsaid::LocalBase(ms(300)),
        Unsaid::StableAfter(Duration::from_secs(5)),
    ];
    assert_eq!(unsaid, want);
    assert_eq!(said.max_attempts().get(), 5);
    for (unsaid, name) in want.iter().zip([
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
        let text = unsaid.to_string();
        assert!(text.starts_with(&format!("{name}: ")), "{text}");
        let alone: Policy = format!("exponential base=100ms cap=1s {name}").parse().unwrap();
        assert!(
            Retries::new(&alone, Codes::UNAVAILABLE).unwrap().1.contains(unsaid),
            "the language knows it so: {alone}"
        );
    }
}

#[test]
fn the_profile_loses_nothing_and_a_policy_without_retries_or_codes_is_none() {
    let (said, unsaid) = Retries::new(&GRPC_A6.policy(), Codes::UNAVAILABLE).unwrap();
    assert_eq!((*said.policy(), unsaid), (GRPC_A6.policy(), vec![]));
    for (policy, codes, want) in [
        ("stop", Codes::UNAVAILABLE, "the policy makes no retry: leave retryPolicy out"),
        ("exponential max-attempts=1", Codes::UNAVAILABLE, "max-attempts=1 makes no retry: leave retryPolicy out"),
        ("linear", Codes::UNAVAILABLE, "gRPC's delays grow by a factor: use exponential or constant backoff"),
        ("zero", Codes::UNAVAILABLE, "initialBackoff cannot be zero: use a backoff"),
        (
            "exponential jitter=decorrelated",
            Codes::UNAVAILABLE,
            "jitter=decorrelated has no ceilings, and gRPC has no other: use full",
        ),
        ("exponential", Codes::NONE, "there is no code to retry after: name UNAVAILABLE at least"),
    ] {
        let error = Retries::new(&policy.parse().unwrap(), codes).unwrap_err();
        assert_eq!(error.to_string(), want, "{policy}");
    }
    let constant: Policy = "constant base=3s".parse().unwrap();
    let (said, _) = Retries::new(&constant, Codes::UNAVAILABLE).unwrap();
    assert_eq!((said.initial_backoff(), said.max_backoff()), (Duration::from_secs(3), Duration::from_secs(3)));
    assert_eq!(said.backoff_multiplier().to_string(), "1");
}

/// Without a cap, the ceilings of gRPC's four retries are those of the policy.
#[test]
fn a_policy_without_a_cap_gets_one_that_is_never_reached() {
    let uncapped = BASE.to_builder().uncapped().max_attempts(5).build().unwrap();
    let (said, unsaid) = Retries::new(&uncapped, Codes::UNAVAILABLE).unwrap();
    assert_eq!(said.max_backoff(), ms(800));
    for retry in 1..5 {
        assert_eq!(said.policy().bounds(retry), uncapped.bounds(retry));
    }
    assert_eq!(unsaid, [Unsaid::HintMode(HintMode::AtLeast)]);
}

#[test]
fn what_a_hedge_says_that_a_service_config_cannot_is_listed() {
    let (said, unsaid) = Hedging::new(&Hedge::after(ms(50)).with_max_copies(9), Codes::NONE).unwrap();
    assert_eq!((said.max_attempts().get(), unsaid), (5, vec![Unsaid::MaxAttempts(NonZeroU32::new(10))]));
    let (said, unsaid) = Hedging::new(&Hedge::at_quantile(Ratio::percent(95), ms(70)), Codes::UNAVAILABLE).unwrap();
    assert_eq!(said.delay(), ms(70), "until it is known what the quantile is");
    assert_eq!(unsaid, [Unsaid::Quantile(Ratio::percent(95))]);
    assert_eq!(HedgeDelay::Fixed(ms(70)), said.hedge().delay());
}

#[test]
fn what_is_written_reads_as_people_write_it() {
    let (retries, _) = Retries::new(&GRPC_A6.policy(), Codes::of(&[14, 10])).unwrap();
    let name = MethodName::Method("shop.Stock".to_owned(), "Count".to_owned());
    let config = ServiceConfig::new(vec![MethodConfig::new([name], Attempts::Retried(retries))]).unwrap();
    let config = config.throttled(Throttling::new(10, Ratio::percent(10)).unwrap());
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
