//! Names and texts of profiles.

use stagger_core::profile::Profile;
use stagger_core::{Jitter, Policy};

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
