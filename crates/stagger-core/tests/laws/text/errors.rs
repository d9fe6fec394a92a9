//! Error messages of the policy language.

use core::error::Error;

use stagger_core::text::parse_duration;
use stagger_core::{Policy, PolicyProblem};

#[test]
fn a_misspelled_setting_suggests_the_nearest_one() {
    for (word, want) in [
        ("bse", "base"),
        ("baes", "base"),
        ("basee", "base"),
        ("atempts", "attempts"),
        ("max-atempts", "max-attempts"),
        ("max_elapsed", "max-elapsed"),
        ("maxdelay", "max-delay"),
        ("jiter", "jitter"),
        ("stable-afer", "stable-after"),
        ("sped", "step"),
        ("spreed", "spread"),
        ("multiplyer", "multiplier"),
        ("throtled-base", "throttled-base"),
        ("hint-sprad", "hint-spread"),
    ] {
        let error = format!("exponential {word}=1s").parse::<Policy>().unwrap_err();
        assert_eq!(error.to_string(), format!("`{word}` is not a setting; did you mean `{want}`?"));
        assert_eq!(error.word(), word);
        assert!(error.policy_error().is_none());
    }
    for far in ["x", "wobble", &"w".repeat(500)] {
        let error = format!("{far}=1").parse::<Policy>().unwrap_err().to_string();
        assert!(error.contains("is not a setting; use base, cap, multiplier,"), "{error}");
    }
}

#[test]
fn a_setting_that_the_backoff_lacks_is_rejected_by_name() {
    for (line, want) in [
        ("zero base=1s", "`base` has no meaning for zero backoff; leave it out, or choose another backoff"),
        ("stop delay=1s", "`base` has no meaning for stop backoff"),
        ("list delays=1 base=1s", "`base` has no meaning for list backoff"),
        ("exponential step=1s", "`step` has no meaning for exponential backoff"),
        ("linear factor=2", "`multiplier` has no meaning for linear backoff"),
        ("exponential delays=1s", "`delays` has no meaning for exponential backoff"),
        ("constant base=1s delays=1s", "`delays` has no meaning for constant backoff"),
        ("zero multiplier=2", "`multiplier` has no meaning for zero backoff"),
    ] {
        let error = line.parse::<Policy>().unwrap_err().to_string();
        assert!(error.contains(want), "{line}: {error}");
    }
}

#[test]
fn required_durations_cannot_be_infinite() {
    for key in ["base", "floor", "spread", "throttled-base", "local-base"] {
        let error = format!("exponential {key}=inf").parse::<Policy>().unwrap_err();
        assert_eq!(error.to_string(), format!("`{key}` must have a length; `inf` has no meaning there"));
    }
    let error = "list delays=1s,inf".parse::<Policy>().unwrap_err().to_string();
    assert_eq!(error, "`inf` must have a length; `inf` has no meaning there");
    let error = "linear step=none".parse::<Policy>().unwrap_err().to_string();
    assert!(error.starts_with("`step` must have a length"), "{error}");
}

#[test]
fn setting_a_value_twice_is_rejected() {
    for line in [
        "base=1s base=1s",
        "cap=1s max=1s",
        "max=1s max-delay=1s",
        "attempts=3 max-attempts=3",
        "deadline=1m max-elapsed=1m",
        "stable-after=1s reset-after=1s",
        "multiplier=2 factor=2",
        "local-base=1s local-base=1s",
    ] {
        let error = line.parse::<Policy>().unwrap_err().to_string();
        assert!(error.ends_with("is set twice; keep one of them"), "{line}: {error}");
    }
}

#[test]
fn policy_errors_are_distinct_from_parse_errors() {
    let error = "exponential base=1s cap=50ms".parse::<Policy>().unwrap_err();
    assert!(error.policy_error().unwrap().problems().eq([PolicyProblem::CapBelowBase]));
    assert_eq!(error.to_string(), "cap 50ms is below base 1s: raise cap or lower base");
    assert_eq!(error.word(), "");
    // The message is complete, so there is no source that repeats it.
    assert!(error.source().is_none());
}

#[test]
fn errors_quote_the_word_and_name_the_fix() {
    for (line, want) in [
        ("exponential base", "`base` has no value; write it as name=value, like base=500ms"),
        ("uniform 1s..3s", "`1s..3s` has no name; write it as range=1s..3s"),
        ("list 1s,2s", "`1s,2s` has no name; write it as delays=1s,2s"),
        ("list 1s", "`1s` has no name; write it as delays=1s"),
        ("constant 5s", "`5s` has no name; write it as base=5s"),
        ("exponential 100ms", "`100ms` has no name; write it as base=100ms"),
        ("constant 5", "`5` has no name; write it as base=5"),
        ("constant five", "`five` has no value; write it as name=value, like base=500ms"),
        ("base=1s exponential", "`exponential` has no value; write it as name=value, like base=500ms"),
        ("cap=5x", "`5x` has a unit that is not known; use ns, us, ms, s, m, h or d after each number"),
        ("cap=300y", "`300y` has a unit that is not known"),
        ("cap=1000000d", "`1000000d` is longer than 292 years; use inf or none where no limit is meant"),
        ("cap=0.5ns", "`0.5ns` is finer than a nanosecond; round it"),
        ("cap=x", "`x` is not a length of time; write it like 500ms, 1.5s, 1m30s or 2h"),
        ("cap=1h30", "`1h30` has a number without a unit; write ns, us, ms, s, m, h or d after each number"),
        ("retries=3", "`retries` is not a setting; write max-attempts=4: the first call counts"),
        ("max-retries=4294967295", "write max-attempts, which counts the first call"),
        ("initial=1s", "`initial` is not a setting; did you mean `base`?"),
        ("constant base=1s jitter=decorrelated", "use a decorrelated backoff, or choose another jitter"),
        ("cap=", "`cap` has no value; write it as name=value, like base=500ms"),
        ("max-attempts=1.5", "`1.5` is not a whole number; write one from 1 to 4294967295, or inf"),
        ("max-attempts=4294967296", "`4294967296` is not a whole number"),
        ("multiplier=x", "`x` is not a number; write a multiplier of 1 or more, like 2 or 1.5"),
        ("jitter=fulll", "`fulll` is not a jitter; use full, equal, decorrelated, none, or a share like ±20% or added"),
        (
            "jitter=0.3333333",
            "`0.3333333` is not a whole number of millionths; round it to six decimals, down if it is a threshold",
        ),
        ("hint-spread=2", "`2` is not a share; write it as 20% or 0.2, from 0 to 1"),
        ("hint=maybe", "`maybe` is not a hint mode; use at-least, exact or clamp:5s"),
        (
            "fibonacci",
            "`fibonacci` is not a backoff; begin with exponential, linear, constant, uniform, decorrelated, list",
        ),
        ("list delays=1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8", "has more than 16 delays; the last one repeats, so shorten"),
        ("list delays=1ns,1h", "`1ns,1h` have no common unit that fits; round them, to milliseconds"),
        ("list delays=1s,,2s", "`1s,,2s` has a stray comma"),
        ("max-attempts=3, cap=9s", "`3,` has a stray comma"),
        ("jitter=full, cap=9s", "`full,` has a stray comma"),
        ("constant", "a constant backoff needs base, like base=5s; add it"),
        ("list", "a list backoff needs delays, like delays=1s,2s,5s; add it"),
        ("exponental", "`exponental` is not a backoff or a profile; did you mean `exponential`?"),
        ("tenacty", "`tenacty` is not a backoff or a profile; did you mean `tenacity`?"),
        ("constent base=1s", "did you mean `constant`?"),
        ("exponential, base=1s", "`exponential,` has a stray comma"),
        ("exponential base=1s, cap=9s", "`1s,` has a stray comma"),
        ("list delays=1s,2s,", "`1s,2s,` has a stray comma"),
        ("exponential base=-1s", "`-1s` is negative"),
        ("decorrelated jitter=full", "`jitter` has no meaning for decorrelated backoff"),
        ("decorrelated multiplier=2", "`multiplier` has no meaning for decorrelated backoff"),
        ("exponential max-attempts=0", "max-attempts is 0, but the first call counts: use 1"),
        ("exponential max-attempts=-1", "`-1` is not a whole number"),
        ("exponential multiplier=nan", "multiplier NaN is not a finite number of at least 1"),
        ("uniform", "a uniform backoff needs range, like range=1s..5s"),
        ("uniform range=1s", "`1s` is not a range; write it as 1s..5s"),
        ("uniform range=1s..", "`1s..` is not a range; write it as 1s..5s"),
        ("uniform range=1s..inf", "`range` must have a length"),
        ("1s..5x", "`5x` has a unit that is not known"),
        ("5s..1s", "range 5s..1s has no delay: write the shorter delay first, and end above 0s"),
        ("0s..0s", "range 0s..0s has no delay"),
        ("1s..5s range=1s..5s", "`range` is set twice"),
        ("1s..5s base=1s", "`base` has no meaning for uniform backoff"),
        ("exponential range=1s..5s", "`range` has no meaning for exponential backoff"),
        ("1s..5s jitter=none", "a uniform backoff draws from its range: drop jitter"),
        ("1s..5s jitter=polly-v8", "a uniform backoff draws from its range: drop jitter"),
        ("1s..5s cap=2s", "cap and floor are for delays that grow"),
        ("1s..5s throttled-base=2s", "throttled-base 2s is not between base 5s and cap"),
        ("1s..5s max-elapsed=500ms", "max-elapsed 500ms ends before the first retry can start"),
    ] {
        let error = line.parse::<Policy>().unwrap_err().to_string();
        assert!(error.contains(want), "{line}: {error}");
    }
}

#[test]
fn a_long_word_is_truncated_when_quoted() {
    let error = parse_duration(&"9".repeat(100)).unwrap_err();
    assert_eq!(error.word(), "9".repeat(40));
}
