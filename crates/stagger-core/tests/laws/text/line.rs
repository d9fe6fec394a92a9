//! The policy language: a policy in one line.

use core::time::Duration;

use proptest::prelude::*;
use stagger_core::profile::Profile;
use stagger_core::text::ParseError;
use stagger_core::{HintMode, Jitter, Policy, PolicyProblem, Ratio, profile};

use crate::laws::support::{any_policy, any_settings, cases, ms, secs};

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn a_printed_policy_parses_as_the_same_policy(policy in any_policy()) {
        let line = policy.to_string();
        let read: Policy = line.parse().map_err(|error| TestCaseError::fail(format!("{line}: {error}")))?;
        prop_assert_eq!(read, policy, "{}", line);
        prop_assert_eq!(read.to_string(), line);
    }

    #[test]
    fn every_valid_policy_round_trips_through_text(builder in any_settings()) {
        if let Ok(policy) = builder.build() {
            let line = policy.to_string();
            prop_assert_eq!(line.parse(), Ok(policy), "{}", line);
        }
    }

    #[test]
    fn the_order_of_the_settings_does_not_matter(policy in any_policy(), seed in any::<u64>()) {
        let line = policy.to_string();
        let mut words: Vec<_> = line.split(' ').collect();
        let count = words.len() - 1;
        for at in 1..count {
            let other = at + (seed.rotate_left(at as u32) as usize) % (count - at + 1);
            words.swap(at, other);
        }
        prop_assert_eq!(words.join("  ").parse(), Ok(policy));
    }

    #[test]
    fn parsing_arbitrary_text_never_panics(text in "\\PC{0,60}") {
        let _ = text.parse::<Policy>();
        let _ = text.parse::<Jitter>();
        let _ = text.parse::<Ratio>();
        let _ = text.parse::<HintMode>();
    }

    /// The words are from the language, in random combinations.
    #[test]
    fn random_settings_parse_or_fail_with_a_fix(
        words in prop::collection::vec((0..KEYS.len(), 0..VALUES.len()), 0..6), shape in 0..SHAPES.len(),
    ) {
        let settings = words.iter().map(|&(key, value)| format!("{}={}", KEYS[key], VALUES[value]));
        let line = [SHAPES[shape].to_owned()].into_iter().chain(settings).collect::<Vec<_>>().join(" ");
        match line.parse::<Policy>() {
            Ok(policy) => prop_assert_eq!(policy.to_string().parse(), Ok(policy)),
            Err(error) => {
                let message = error.to_string();
                let fixes = ["; ", ": ", "use ", "write ", "did you mean"];
                let has_fix = fixes.iter().any(|words| message.contains(words));
                prop_assert!(has_fix, "{line}: {message}");
            }
        }
    }
}

const SHAPES: [&str; 6] = ["exponential", "linear", "constant", "list", "zero", "stop"];
const KEYS: [&str; 17] = [
    "base",
    "step",
    "cap",
    "floor",
    "multiplier",
    "delays",
    "jitter",
    "spread",
    "max-attempts",
    "max-elapsed",
    "max-hint",
    "hint",
    "hint-spread",
    "throttled-base",
    "local-base",
    "stable-after",
    "wobble",
];
const VALUES: [&str; 15] = [
    "0",
    "1",
    "5ms",
    "1s,2s",
    "30s",
    "1h",
    "inf",
    "none",
    "full",
    "decorrelated",
    "20%",
    "exact",
    "clamp:5s",
    "1.5",
    "nan",
];

#[test]
fn the_one_line_form_round_trips() {
    for text in [
        "exponential base=500ms cap=30s multiplier=2 jitter=full spread=30s max-attempts=8 max-elapsed=5m",
        "exponential base=100ms cap=none multiplier=1.5 jitter=±20% max-attempts=inf",
        "exponential base=1s cap=1m jitter=decorrelated max-attempts=10",
        "exponential base=1s cap=1m floor=250ms multiplier=3 jitter=equal max-attempts=2 max-hint=inf \
         hint=clamp:5s throttled-base=20s local-base=30s stable-after=10s",
        "linear base=1s step=500ms cap=10s jitter=none max-attempts=4",
        "constant base=5s jitter=equal max-attempts=4 max-hint=1h hint-spread=25%",
        "list delays=1s,2s,5s jitter=none max-attempts=4",
        "uniform range=1s..5s max-attempts=4",
        "uniform range=0s..1m30s spread=2s max-attempts=inf throttled-base=2m",
        "zero max-attempts=3",
        "stop",
    ] {
        let policy: Policy = text.parse().unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(policy.to_string(), text.split_whitespace().collect::<Vec<_>>().join(" "));
        assert_eq!(policy.to_builder().build(), Ok(policy));
    }
}

#[test]
fn other_spellings_are_accepted_and_never_printed() {
    let policy: Policy = "exponential delay=500ms max-delay=30s factor=3 attempts=8 deadline=5m".parse().unwrap();
    assert_eq!(
        policy.to_string(),
        "exponential base=500ms cap=30s multiplier=3 jitter=full max-attempts=8 max-elapsed=5m"
    );
    assert_eq!("".parse::<Policy>(), "exponential".parse());
    assert_eq!("base=100ms max=30s max-hint=30s".parse(), Ok(Policy::DEFAULT));
    assert_eq!(
        "decorrelated base=1s cap=1m".parse(),
        Policy::decorrelated(secs(1), secs(60)).build().map_err(ParseError::from)
    );
    assert_eq!(
        "decorrelated base=1s cap=30s jitter=decorrelated"
            .parse::<Policy>()
            .map(|policy| policy.to_string())
            .as_deref(),
        Ok("exponential base=1s cap=30s jitter=decorrelated max-attempts=4")
    );
    assert_eq!("1s..5s max-attempts=2".parse(), "uniform range=1s..5s max-attempts=2".parse::<Policy>());
    assert_eq!("linear base=2s cap=9s".parse(), "linear base=2s step=2s cap=9s".parse::<Policy>());
}

#[test]
fn every_setting_is_parsed_and_printed() {
    let policy = Policy::exponential(ms(500), secs(30))
        .multiplier(1.5)
        .floor(ms(20))
        .jitter(Jitter::Factor(Ratio::percent(20)))
        .spread(secs(30))
        .max_attempts(8)
        .max_elapsed(secs(300))
        .max_hint(secs(60))
        .hint_mode(HintMode::AtLeast)
        .hint_spread(Ratio::percent(25))
        .throttled_base(secs(1))
        .local_base(secs(2))
        .stable_after(secs(10))
        .build()
        .unwrap();
    let line = "exponential base=500ms cap=30s floor=20ms multiplier=1.5 jitter=±20% spread=30s max-attempts=8 \
                max-elapsed=5m max-hint=1m hint-spread=25% throttled-base=1s local-base=2s stable-after=10s";
    assert_eq!(policy.to_string(), line);
    assert_eq!(line.parse(), Ok(policy));
    // The getters return what was set.
    assert_eq!((policy.base(), policy.cap(), policy.floor()), (ms(500), Some(secs(30)), ms(20)));
    assert_eq!((policy.spread(), policy.max_elapsed()), (secs(30), Some(secs(300))));
    assert_eq!((policy.max_hint(), policy.hint_spread()), (Some(secs(60)), Ratio::percent(25)));
    assert_eq!((policy.throttled_base(), policy.local_base()), (secs(1), secs(2)));
    assert_eq!((policy.stable_after(), policy.hint_mode()), (Some(secs(10)), HintMode::AtLeast));
}

#[test]
fn omitted_settings_have_their_defaults() {
    let policy = Policy::DEFAULT;
    assert_eq!(policy, Policy::default());
    assert_eq!(
        policy.to_string(),
        "exponential base=100ms cap=30s multiplier=2 jitter=full max-attempts=4 max-hint=30s"
    );
    assert_eq!(policy.to_string().parse(), Ok(policy));
    let policy = policy.to_builder().max_hint(secs(300)).build().unwrap();
    assert_eq!("exponential".parse(), Ok(policy));
    assert_eq!((policy.max_elapsed(), policy.stable_after(), policy.spread()), (None, None, ms(0)));
    assert_eq!((policy.max_hint(), policy.hint_spread()), (Some(secs(300)), Ratio::percent(50)));
    assert_eq!((policy.throttled_base(), policy.local_base()), (ms(100), secs(1)));
    for (base, want) in [(ms(10), ms(100)), (ms(100), secs(1)), (ms(400), secs(1)), (secs(3), secs(3))] {
        assert_eq!(Policy::exponential(base, secs(30)).build().unwrap().local_base(), want, "{base:?}");
    }
}

/// Setting a value to its default gives an equal policy.
#[test]
fn equality_ignores_how_a_policy_was_written() {
    let policy = Policy::exponential(ms(100), secs(30)).build().unwrap();
    assert_eq!(policy, Policy::exponential(ms(100), secs(30)).jitter(Jitter::Full).build().unwrap());
    assert_eq!(Policy::zero().build(), Policy::zero().jitter(Jitter::None).build());
    let longest = Policy::constant(Duration::MAX).build().unwrap();
    assert_eq!(longest.to_string().parse(), Ok(longest));
}

#[test]
fn builder_set_accepts_the_words_of_the_language() {
    let builder = Policy::exponential(ms(100), secs(30));
    let set = [
        ("base", "2s"),
        ("max-delay", "1m"),
        ("factor", "3"),
        ("floor", "1s"),
        ("jitter", "equal"),
        ("spread", "5s"),
        ("attempts", "9"),
        ("deadline", "10m"),
        ("max-hint", "inf"),
        ("hint", "clamp:5s"),
        ("throttled-base", "3s"),
        ("local-base", "4s"),
        ("reset-after", "20s"),
    ];
    let policy = set.iter().fold(builder, |builder, (key, value)| builder.set(key, value).unwrap()).build().unwrap();
    assert_eq!(
        policy.to_string(),
        "exponential base=2s cap=1m floor=1s multiplier=3 jitter=equal spread=5s max-attempts=9 max-elapsed=10m \
         max-hint=inf hint=clamp:5s throttled-base=3s local-base=4s stable-after=20s"
    );
    // Settings can be reset.
    let resets =
        [("cap", "none"), ("max-attempts", "inf"), ("max-elapsed", "none"), ("max-hint", "5m"), ("hint", "at-least")];
    let builder = resets.iter().fold(policy.to_builder(), |builder, (key, value)| builder.set(key, value).unwrap());
    let policy = builder.set("hint-spread", "0.25").unwrap().set("stable-after", "none").unwrap().build().unwrap();
    assert_eq!(
        policy.to_string(),
        "exponential base=2s cap=none floor=1s multiplier=3 jitter=equal spread=5s max-attempts=inf hint-spread=25% \
         throttled-base=3s local-base=4s"
    );
    assert_eq!((policy.cap(), policy.max_attempts()), (None, None));

    let list = Policy::list(&[secs(1)]).set("delays", "1s,90s").unwrap().build().unwrap();
    assert_eq!(list.to_string(), "list delays=1s,1m30s jitter=equal max-attempts=4");
    let linear = Policy::linear(secs(1), secs(1), secs(9)).set("step", "2s").unwrap().build().unwrap();
    assert_eq!(linear.to_string(), "linear base=1s step=2s cap=9s jitter=full max-attempts=4");
    let constant = Policy::constant(secs(1)).set("delay", "2s").unwrap().build().unwrap();
    assert_eq!(constant.to_string(), "constant base=2s jitter=equal max-attempts=4");
}

#[test]
fn each_backoff_has_its_own_defaults() {
    for (line, want) in [
        ("linear", "linear base=100ms step=100ms cap=30s jitter=full max-attempts=4"),
        ("linear base=2s", "linear base=2s step=2s cap=30s jitter=full max-attempts=4"),
        ("linear step=3s", "linear base=100ms step=3s cap=30s jitter=full max-attempts=4"),
        ("linear cap=none", "linear base=100ms step=100ms cap=none jitter=full max-attempts=4"),
        ("exponential jitter=decorrelated", "exponential base=100ms cap=30s jitter=decorrelated max-attempts=4"),
        ("constant base=5", "constant base=5s jitter=equal max-attempts=4"),
        ("list delays=1,2", "list delays=1s,2s jitter=equal max-attempts=4"),
        ("zero", "zero max-attempts=4"),
        ("stop", "stop"),
        ("stop max-attempts=2", "stop max-attempts=2"),
        ("stop max-attempts=inf", "stop max-attempts=inf"),
        ("zero max-attempts=unlimited", "zero max-attempts=inf"),
    ] {
        let policy: Policy = line.parse().unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(policy.to_string(), want);
        assert_eq!(want.split(' ').next(), Some(policy.backoff().name()));
    }
}

#[test]
fn ratios_print_in_their_shortest_form() {
    for (millionths, want) in [
        (0, "0%"),
        (1, "0.0001%"),
        (100, "0.01%"),
        (1_500, "0.15%"),
        (123_456, "12.3456%"),
        (200_000, "20%"),
        (1_000_000, "100%"),
    ] {
        assert_eq!(Ratio::millionths(millionths).to_string(), want);
    }
}

#[test]
fn hint_modes_round_trip() {
    for (text, want) in
        [("at-least", HintMode::AtLeast), ("exact", HintMode::Exact), ("clamp:5s", HintMode::Clamp(secs(5)))]
    {
        assert_eq!(text.parse(), Ok(want));
        assert_eq!(want.to_string(), text);
    }
    assert_eq!(HintMode::default(), HintMode::AtLeast);
    for (text, want) in
        [("clamp", "use at-least, exact or clamp:5s"), ("clamp:5x", "a unit"), ("clamp:inf", "use at-least")]
    {
        let error = text.parse::<HintMode>().unwrap_err().to_string();
        assert!(error.contains(want), "{text}: {error}");
    }
}

// Values that were not given yield to those that were.

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
