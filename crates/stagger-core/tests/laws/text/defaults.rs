//! Values that were not given yield to those that were.

use core::time::Duration;

use stagger_core::profile::Profile;
use stagger_core::text::ParseError;
use stagger_core::{Policy, PolicyProblem, profile};

use crate::laws::support::{ms, secs};

#[test]
fn a_default_yields_to_a_given_value() {
    for (text, want) in [
        ("base=1m", "exponential base=1m cap=1m"),
        ("cap=50ms", "exponential base=50ms cap=50ms"),
        ("base=30s", "exponential base=30s cap=30s"),
        ("cap=100ms", "exponential base=100ms cap=100ms"),
        ("linear base=1m", "linear base=1m step=1m cap=1m"),
        ("linear cap=50ms", "linear base=50ms step=50ms cap=50ms"),
        ("linear cap=50ms step=1ms", "linear base=50ms step=1ms cap=50ms"),
        ("linear base=2s", "linear base=2s step=2s cap=30s"),
        ("decorrelated base=1m", "decorrelated base=1m cap=3m"),
        ("decorrelated cap=90ms", "decorrelated base=30ms cap=90ms"),
        ("decorrelated base=30s", "decorrelated base=30s cap=1m30s"),
        ("decorrelated base=20s", "decorrelated base=20s cap=30s"),
        ("exponential throttled-base=1m", "exponential base=100ms cap=1m throttled-base=1m"),
        ("exponential local-base=2m throttled-base=1m", "exponential cap=2m local-base=2m throttled-base=1m"),
        ("exponential base=5m throttled-base=10m", "exponential base=5m cap=10m throttled-base=10m"),
    ] {
        let want: Policy = want.parse().unwrap();
        assert_eq!(text.parse(), Ok(want), "{text}");
    }
}

#[test]
fn a_value_of_a_profile_yields_to_a_given_value() {
    for (text, base, cap) in [
        ("aws-sdk base=1m", secs(60), Some(secs(60))),
        ("aws-sdk cap=500ms", ms(500), Some(ms(500))),
        // A profile without a cap stays without one.
        ("tenacity base=1h", secs(3600), None),
        // Its interval would be empty if cap and base were equal.
        ("default jitter=decorrelated base=2m", secs(120), Some(secs(360))),
        ("aws-blog cap=3ms", ms(1), Some(ms(3))),
    ] {
        let policy: Policy = text.parse().unwrap();
        assert_eq!((policy.base(), policy.cap()), (base, cap), "{text}");
    }
    let throttled = |text: &str| text.parse::<Policy>().unwrap().throttled_base();
    assert_eq!(throttled("aws-sdk-2026"), secs(1));
    assert_eq!(throttled("aws-sdk-2026 base=2s"), secs(2));
    assert_eq!(throttled("aws-sdk-2026 cap=500ms"), ms(500));
    // Without the profile's floor the delays of its clients would lie elsewhere, so it does not yield.
    assert!("aws-mqtt5 cap=500ms".parse::<Policy>().unwrap_err().to_string().contains("floor 1s is above cap 500ms"));
    assert!("aws-mqtt5 cap=500ms floor=0s".parse::<Policy>().is_ok());
}

#[test]
fn given_values_that_contradict_are_an_error() {
    for text in [
        "base=1m cap=30s",
        "cap=30s base=1m",
        "aws-sdk cap=20s base=1m",
        "linear base=1s cap=50ms",
        "decorrelated base=1s cap=50ms",
        "cap=0s",
    ] {
        let error = text.parse::<Policy>().unwrap_err();
        assert!(error.policy_error().unwrap().problems().eq([PolicyProblem::CapBelowBase]), "{text}: {error}");
    }
    let cap_and_throttled = "cap=1s throttled-base=2s".parse::<Policy>().unwrap_err();
    assert!(cap_and_throttled.to_string().contains("throttled-base 2s is not between base 100ms and cap"));
    let base_and_throttled = "base=1s throttled-base=500ms".parse::<Policy>().unwrap_err();
    assert!(base_and_throttled.to_string().contains("throttled-base 500ms is not between base 1s and cap"));
}

#[test]
fn equal_policies_are_equal_whoever_gave_their_values() {
    let given = Policy::exponential(ms(100), secs(30)).max_hint(secs(30)).build().unwrap();
    assert_eq!(given, Policy::DEFAULT);
    // A builder remembers who gave them.
    assert_eq!(Policy::DEFAULT.to_builder().base(secs(60)).build().unwrap().cap(), Some(secs(60)));
    assert!(given.to_builder().base(secs(60)).build().is_err());
    assert!(given.to_builder().as_defaults().base(secs(60)).build().is_ok());
    let half = Policy::exponential(secs(9), secs(10)).as_defaults().base(secs(60)).build().unwrap();
    assert_eq!(half.to_builder().cap(secs(5)).build().map_err(ParseError::from), "base=1m cap=5s".parse());
    assert_eq!(half.to_builder().base(secs(2)).build().unwrap().cap(), Some(secs(60)));
}

#[test]
fn a_policy_alone_is_not_changed() {
    for policy in Profile::all().map(Profile::policy).chain([Policy::DEFAULT]) {
        assert_eq!(policy.to_builder().build(), Ok(policy));
        assert_eq!(policy.to_string().parse(), Ok(policy));
    }
    assert_eq!(profile::AWS_MQTT5.policy().floor(), secs(1));
    let longest = Policy::DEFAULT.to_builder().base(Duration::MAX).build().unwrap();
    assert_eq!(longest.cap(), Some(longest.base()));
}
