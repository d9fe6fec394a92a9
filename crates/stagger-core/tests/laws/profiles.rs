//! The registry of named policies: properties of every entry.

use core::time::Duration;

use stagger_core::profile::Profile;
use stagger_core::{Jitter, Outcome, Policy, Seed};

use super::support::{Call, mean};

// Names and texts of profiles.

#[test]
fn profile_names_are_unique_and_not_words_of_the_language() {
    let mut names: Vec<_> = Profile::all().map(Profile::name).collect();
    let words = ["zero", "constant", "linear", "exponential", "list", "stop", "none", "full", "equal", "decorrelated"];
    names.extend(words);
    names.sort_unstable();
    let count = names.len();
    names.dedup();
    assert_eq!(names.len(), count);
    for name in names {
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c)), "{name}");
    }
}

#[test]
fn profile_lookup_ignores_case_and_separators() {
    for profile in Profile::all() {
        assert_eq!(Profile::named(profile.name()), Some(profile));
        assert_eq!(Profile::named(&profile.name().replace(['-', '.'], "_").to_uppercase()), Some(profile));
    }
    assert_eq!((Profile::named(""), Profile::named("aws"), Profile::named("aws-sdk-")), (None, None, None));
}

#[test]
fn profiles_of_connections_begin_again_after_a_healthy_one_and_no_others_do() {
    for profile in Profile::all().filter(|profile| profile.name() != "kubernetes") {
        assert_eq!(profile.is_connection(), profile.policy().stable_after().is_some(), "{}", profile.name());
    }
    assert!(!Profile::named("kubernetes").unwrap().is_connection(), "its containers are processes");
}

#[test]
fn every_profile_documents_its_source() {
    for profile in Profile::all() {
        let texts = [profile.title(), profile.source(), profile.read_on()];
        assert!(texts.iter().all(|text| text.len() >= 7), "{profile:?}");
        // Only the profiles of stagger itself have no version.
        assert_eq!(profile.version().is_empty(), profile.title().starts_with("stagger, "), "{profile:?}");
    }
}

#[test]
fn every_profile_round_trips_through_the_policy_language() {
    for profile in Profile::all() {
        let policy = profile.policy();
        assert_eq!(policy.to_string().parse(), Ok(policy), "{policy}");
        assert_eq!(profile.name().parse(), Ok(policy));
        assert_eq!(policy.to_builder().build(), Ok(policy));
    }
}

#[test]
fn settings_after_a_name_override_the_profile() {
    let policy: Policy = "socket_io cap=7s max-attempts=3".parse().unwrap();
    assert_eq!(
        policy.to_string(),
        "exponential base=1s cap=7s multiplier=2 jitter=socket.io max-attempts=3 stable-after=0s"
    );
    assert_eq!(
        "max-attempts=3 socket.io cap=7s".parse::<Policy>().map_err(|error| error.to_string()),
        Err("`socket.io` has no value; write it as name=value, like base=500ms".to_owned())
    );
}

#[cfg(feature = "serde")]
#[test]
fn configuration_files_accept_profile_names() {
    let want: Policy = "aws-sdk max-attempts=5".parse().unwrap();
    let json = r#"{"backoff": "aws-sdk", "max-attempts": 5}"#;
    assert_eq!(serde_json::from_str::<Policy>(json).unwrap(), want);
    assert_eq!(serde_json::from_str::<Policy>("\"aws-sdk max-attempts=5\"").unwrap(), want);
    assert_eq!(toml::from_str::<Policy>("max-attempts = 5\nbackoff = \"aws_sdk\"\n").unwrap(), want);
    for profile in Profile::all() {
        let policy = profile.policy();
        let json = serde_json::to_string(&policy).unwrap();
        assert_eq!(serde_json::from_str::<Policy>(&json).unwrap(), policy, "{json}");
    }
}

/// A native jitter must not get a second name in the policy language.
#[test]
fn a_profile_name_is_a_jitter_only_if_its_jitter_is_custom() {
    for profile in Profile::all() {
        let own = matches!(profile.policy().jitter(), Jitter::Profile(jitter) if jitter.name() == profile.name());
        assert_eq!(profile.name().parse::<Jitter>().is_ok(), own, "{}", profile.name());
        let native = !matches!(profile.policy().jitter(), Jitter::Profile(_));
        assert!(own != native, "{}: its jitter has another profile's name", profile.name());
    }
}

#[test]
fn jitters_for_exponential_backoff_are_rejected_elsewhere() {
    for jitter in ["aws-blog", "reconnecting-websocket", "socket.io"] {
        for backoff in ["constant base=1s", "linear base=1s", "list delays=1s"] {
            let error = format!("{backoff} jitter={jitter}").parse::<Policy>().unwrap_err().to_string();
            assert!(
                error.contains("this profile's jitter is for exponential delays: choose another jitter"),
                "{error}"
            );
        }
    }
}

// Pinned delays of each profile for one seed, in nanoseconds, so that they do not change by accident.

const FIRST_DELAYS: [(&str, [u64; 4]); 39] = [
    ("cenkalti", [332_943_710, 772_241_690, 1_038_868_919, 1_726_002_466]),
    ("google-http-java", [333_000_000, 772_000_000, 1_038_000_000, 1_725_000_000]),
    ("google-cloud", [165_887_419, 1_059_311_172, 1_693_756_156, 4_182_530_211]),
    ("aws-sdk", [165_887_419, 1_059_311_172, 1_693_756_156, 4_182_530_211]),
    ("aws-sdk-2026", [8_294_371, 52_965_559, 84_687_808, 209_126_511]),
    ("aws-dynamodb-2026", [4_147_185, 26_482_779, 42_343_904, 104_563_255]),
    ("openai", [395_735_927, 882_413_897, 1_711_719_519, 3_522_816_276]),
    ("anthropic", [395_735_927, 882_413_897, 1_711_719_519, 3_522_816_276]),
    ("aws-blog", [6_658_874, 12_932_452, 19_311_120, 32_674_422]),
    ("grpc-a6", [86_635_496, 202_372_447, 387_750_246, 807_301_208]),
    ("tenacity", [1_165_887_419, 2_529_655_586, 4_423_439_039, 8_522_816_276]),
    ("polly-v8", [1_077_161_405, 2_989_182_093, 3_566_984_916, 8_768_739_068]),
    ("resilience4j", [333_000_000, 772_000_000, 1_038_000_000, 1_725_000_000]),
    ("failsafe-go", [2_000_000_000, 4_000_000_000, 8_000_000_000, 16_000_000_000]),
    ("envoy", [4_000_000, 26_000_000, 42_000_000, 104_000_000]),
    ("curl", [1_000_000_000, 2_000_000_000, 4_000_000_000, 8_000_000_000]),
    ("kubernetes", [0, 10_000_000_000, 20_000_000_000, 40_000_000_000]),
    ("reconnecting-websocket", [1_663_549_679, 2_162_614_582, 2_811_398_956, 3_654_818_642]),
    ("partysocket", [3_000_000_000, 3_900_000_000, 5_070_000_000, 6_591_000_000]),
    ("socket.io", [1_082_000_000, 2_529_000_000, 3_154_000_000, 5_000_000_000]),
    ("phoenix", [10_000_000, 50_000_000, 100_000_000, 150_000_000]),
    ("centrifuge", [583_000_000, 1_030_000_000, 1_347_000_000, 2_591_000_000]),
    ("signalr", [0, 2_000_000_000, 10_000_000_000, 30_000_000_000]),
    ("graphql-ws", [1_747_000_000, 3_730_000_000, 5_443_000_000, 9_711_000_000]),
    ("websockets", [0, 2_648_277_930, 3_100_000_000, 5_015_800_000]),
    ("stable-socket", [108_294_371, 1_053_000_000, 2_085_000_000, 4_209_000_000]),
    ("pusher", [1_000_000_000, 1_000_000_000, 1_000_000_000, 1_000_000_000]),
    ("ably", [0, 18_118_622_344, 22_117_195_195, 27_136_897_658]),
    ("aws-mqtt5", [1_000_000_000, 1_529_655_586, 2_270_317_117, 4_659_713_935]),
    ("async-nats", [0, 2_000_000, 4_000_000, 8_000_000]),
    ("ezsockets", [0, 5_000_000_000, 5_000_000_000, 5_000_000_000]),
    ("stubborn-io", [3_866_354_968, 8_023_724_469, 15_877_502_462, 32_073_012_084]),
    ("stream-tungstenite", [0, 1_005_931_117, 1_969_375_616, 4_018_253_021]),
    ("mcp-sdk", [1_000_000_000, 1_500_000_000, 2_250_000_000, 3_375_000_000]),
    ("default", [16_588_742, 105_931_117, 169_375_616, 418_253_021]),
    ("web-socket", [8_744_155_648, 22_944_833_790, 21_351_585_585, 22_842_244_145]),
    ("background-job", [19_976_622_591, 61_779_335_158, 110_812_684_677, 122_737_953_163]),
    ("serverless", [16_588_742, 105_931_117, 169_375_616, 418_253_021]),
    ("interactive", [3_317_748, 21_186_223, 33_875_123, 83_650_604]),
];

#[test]
fn the_first_delays_of_every_profile_are_pinned() {
    for (name, want) in FIRST_DELAYS {
        let policy = Profile::named(name).unwrap().policy();
        let got: Vec<_> = policy.schedule(Seed::new(1)).take(4).map(|delay| delay.as_nanos() as u64).collect();
        assert_eq!(got, want, "{name}");
    }
}

// The forecasts of every profile, compared with its drawn delays.

const CALLS: usize = 6_000;

fn drawn(policy: &Policy, n: u32) -> Vec<Duration> {
    let mut sample: Vec<_> = (0..CALLS as u64).map(|id| policy.delay(n, Seed::new(6).for_call(id)).unwrap()).collect();
    sample.sort_unstable();
    sample
}

#[test]
fn profile_delays_are_in_bounds_and_randomly_accessible() {
    for profile in Profile::all() {
        let policy = profile.policy();
        for seed in 0..200 {
            for (n, delay) in (1..=20).zip(policy.schedule(Seed::new(seed))) {
                let (lo, hi) = policy.bounds(n).unwrap();
                assert!(lo <= delay && delay <= hi, "{} retry {n}: {delay:?} of {lo:?}..{hi:?}", profile.name());
                assert_eq!(policy.delay(n, Seed::new(seed)), Some(delay), "{} retry {n}", profile.name());
            }
        }
    }
}

#[test]
fn profile_quantiles_match_drawn_delays() {
    let shares = [0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98];
    for profile in Profile::all() {
        let policy = profile.policy();
        for n in [1, 2, 3, 5, 9] {
            let sample = drawn(&policy, n);
            let share_below = |x| sample.partition_point(|&delay| delay < x) as f64 / CALLS as f64;
            for (q, x) in shares.into_iter().zip(policy.quantiles(n, shares).unwrap()) {
                // If many draws have the same value, it covers a range of quantiles. A grid of values shifts them, too.
                let (below, at) = (
                    share_below(x.saturating_sub(Duration::from_millis(1))),
                    share_below(x + Duration::from_millis(1)),
                );
                let within = 5.0 * (q * (1.0 - q) / CALLS as f64).sqrt() + 0.006;
                assert!(
                    below - within <= q && q <= at + within,
                    "{} retry {n}: {x:?} has {below}..{at}, not {q}",
                    profile.name()
                );
            }
        }
    }
}

#[test]
fn profile_means_match_drawn_delays() {
    for profile in Profile::all() {
        let policy = profile.policy();
        for n in [1, 2, 4, 8] {
            let (sample, got) = (drawn(&policy, n), policy.mean(n).unwrap().as_nanos() as f64);
            let want = mean(&sample);
            let (lo, hi) = policy.bounds(n).unwrap();
            let within = 5.0 * (hi - lo).as_nanos() as f64 / 2.0 / (CALLS as f64).sqrt() + want * 0.002 + 5e5;
            assert!((got - want).abs() < within, "{} retry {n}: {got}, not {want}", profile.name());
        }
    }
}

#[test]
fn profile_elapsed_forecasts_match_drawn_calls() {
    for profile in Profile::all() {
        let policy = profile.policy();
        let n = 4;
        let (least, most) = policy.elapsed_bounds(n).unwrap();
        let means: Duration = (1..=n).map(|k| policy.mean(k).unwrap()).sum::<Duration>() + policy.spread() / 2;
        assert!(
            policy.elapsed_mean(n).unwrap().abs_diff(means) <= means / 1_000 + Duration::from_nanos(8),
            "{}",
            profile.name()
        );
        let [low, middle, high] = policy.elapsed_quantiles(n, [0.1, 0.5, 0.9]).unwrap();
        assert!(least <= low && low <= middle && middle <= high && high <= most, "{}", profile.name());
        let mut waited: Vec<Duration> = (0..CALLS as u64)
            .map(|id| {
                let key = Seed::new(8).for_call(id);
                policy.schedule(key).take(n as usize).sum::<Duration>() + policy.first_spread(key)
            })
            .collect();
        waited.sort_unstable();
        let share = waited.partition_point(|&length| length <= middle) as f64 / CALLS as f64;
        let same = waited.first() == waited.last();
        assert!(same || (share - 0.5).abs() < 0.06, "{}: {middle:?} is the {share}-quantile", profile.name());
    }
}

/// The formula as published puts many clients on the cap. `Jitter::Decorrelated` does not.
#[test]
fn published_decorrelated_waits_the_cap_in_a_third_of_calls() {
    let policy: Policy = "exponential base=100ms cap=5s jitter=aws-blog max-attempts=inf".parse().unwrap();
    let at_cap = drawn(&policy, 12).iter().filter(|delay| **delay == Duration::from_secs(5)).count();
    assert!((at_cap as f64 / CALLS as f64 - 0.31).abs() < 0.03, "{at_cap}");
}

/// Only the first delay is random; the later ones grow by a fixed factor.
#[test]
fn reconnecting_websocket_draws_only_its_first_delay() {
    let policy = Profile::named("reconnecting-websocket").unwrap().policy();
    for seed in 0..100 {
        let delays: Vec<f64> = policy.schedule(Seed::new(seed)).take(12).map(|delay| delay.as_secs_f64()).collect();
        for pair in delays.windows(2) {
            assert!((pair[1] - (pair[0] * 1.3).min(10.0)).abs() < 1e-6, "{delays:?}");
        }
        assert!((delays[11] - 10.0).abs() < 1e-9);
    }
}

#[test]
fn websockets_draws_only_its_second_delay_below_5_seconds() {
    let policy = Profile::named("websockets").unwrap().policy();
    let want = [3.1, 5.0158, 8.115_564, 13.130_983, 21.245_93, 34.375_915, 55.620_231, 89.993_534, 90.0, 90.0];
    let mut firsts = Vec::new();
    for seed in 0..300 {
        let delays: Vec<f64> = policy.schedule(Seed::new(seed)).take(12).map(|delay| delay.as_secs_f64()).collect();
        assert!(delays[0].abs() < 1e-12 && delays[1] <= 5.0);
        firsts.push(delays[1]);
        assert!(delays[2..].iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-5), "{delays:?}");
    }
    assert!(firsts.iter().any(|&first| first < 0.2) && firsts.iter().any(|&first| first > 4.8));
}

/// `throttled_base` also changes the delays of jitters that belong to a profile.
#[test]
fn profile_jitters_use_the_base_of_the_failure_kind() {
    for (name, factor) in [("polly-v8", 4), ("socket.io", 4), ("cenkalti", 4), ("stubborn-io", 3)] {
        let plain = Profile::named(name).unwrap().policy().to_builder().unlimited_attempts();
        let throttled = plain.throttled_base(plain.build().unwrap().base() * factor).build().unwrap();
        for seed in 0..50 {
            let wait = |policy: &Policy, outcome| Call::new(policy).seed(seed).run([outcome]).waits[0];
            let (transient, later) = (wait(&throttled, Outcome::TRANSIENT), wait(&throttled, Outcome::throttled(None)));
            let want = transient * factor;
            let within = Duration::from_millis(u64::from(factor));
            // socket.io applies its cap last, and its base is a fifth of the cap.
            let want = if name == "socket.io" { want.min(Duration::from_secs(5)) } else { want };
            assert!(later.abs_diff(want) <= within, "{name}, seed {seed}: {later:?}, not {want:?}");
            assert_eq!(transient, wait(&plain.build().unwrap(), Outcome::TRANSIENT));
        }
    }
}
