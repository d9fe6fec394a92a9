//! Error messages of the policy language.

use core::error::Error;
use core::time::Duration;

use stagger_core::admission::{Admission, Reservation};
use stagger_core::breaker::{CircuitBreaker, CircuitBreakerBuilder, Window as BreakerWindow};
use stagger_core::budget::{Adaptive, Concurrent, Lifetime, SuccessRate, Throttle, Tokens, Window};
use stagger_core::text::parse_duration;
use stagger_core::{HintMode, Jitter, Policy, PolicyBuilder, PolicyProblem, Ratio, Seed};

use crate::laws::support::{SECRET, ms, secs};

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

// Every error message names the offending value and how to fix it.

/// Asserts that `message` contains each of `values`, and after them a way to fix the problem.
fn assert_helpful(message: &str, values: &[&str]) {
    for value in values {
        assert!(message.contains(value), "{value:?} is not in {message:?}");
    }
    let fix = message.rfind("; ").max(message.rfind(": ")).map(|at| &message[at + 2..]);
    assert!(
        fix.is_some_and(|fix| fix.split_whitespace().count() >= 2),
        "{message:?} does not say how to fix the problem"
    );
    for private in ["is no ", "who ", "whoever", "nobody", "lent ", "lend"] {
        assert!(!message.contains(private), "{private:?} is in {message:?}");
    }
    assert!(message.starts_with(|c: char| c.is_lowercase() || c.is_ascii_digit() || c == '`'), "{message:?}");
}

#[test]
fn parse_errors_name_the_word_and_the_fix() {
    for (line, value) in [
        ("exponentail", "exponentail"),
        ("fibonacci", "fibonacci"),
        ("tenacty", "tenacity"),
        ("exponential,", "`exponential,`"),
        ("bse=1s", "`base`"),
        ("tries=3", "`tries`"),
        ("base", "`base`"),
        ("base=", "`base`"),
        ("base=1s base=2s", "`base`"),
        ("base=1s,", "`1s,`"),
        ("base=-1s", "`-1s`"),
        ("base=5x", "`5x`"),
        ("base=..", "`..`"),
        ("base=inf", "`base`"),
        ("cap=1000000d", "`1000000d`"),
        ("cap=0.5ns", "`0.5ns`"),
        ("multiplier=two", "`two`"),
        ("max-attempts=-1", "`-1`"),
        ("jitter=fulll", "`fulll`"),
        ("jitter=add:-1s", "`-1s`"),
        ("jitter=150%", "`150%`"),
        ("jitter=0.3333333", "`0.3333333`"),
        ("hint=maybe", "`maybe`"),
        ("zero base=1s", "zero"),
        ("decorrelated jitter=full", "`jitter`"),
        ("constant", "constant"),
        ("list", "delays"),
        ("list delays=1s,,2s", "`1s,,2s`"),
        ("list delays=1,2,3,4,5,6,7,8,9,1,2,3,4,5,6,7,8", "1,2,3"),
        ("list delays=1ns,1h", "`1ns,1h`"),
    ] {
        assert_helpful(&line.parse::<Policy>().unwrap_err().to_string(), &[value]);
    }
    assert_helpful(&parse_duration("-1s").unwrap_err().to_string(), &["`-1s`"]);
    assert_helpful(&"5;ticket=7".parse::<Reservation>().unwrap_err().to_string(), &["`5;ticket=7`"]);
}

#[test]
fn policy_errors_name_the_value_and_the_fix() {
    const PLAIN: PolicyBuilder = Policy::exponential(Duration::from_millis(100), Duration::from_secs(30));
    let above_one = Ratio::millionths(1_000_001);
    for (builder, values) in [
        (PLAIN.max_attempts(0), &["max-attempts is 0"][..]),
        (PLAIN.base(Duration::ZERO), &["base is 0s"]),
        (PLAIN.cap(ms(50)), &["cap 50ms", "base 100ms"]),
        (PLAIN.floor(secs(31)), &["floor 31s", "cap 30s"]),
        (PLAIN.multiplier(0.999), &["multiplier 0.999"]),
        (PLAIN.multiplier(f64::NAN), &["multiplier NaN"]),
        (PLAIN.multiplier(f64::INFINITY), &["multiplier inf"]),
        (PLAIN.jitter(Jitter::Factor(above_one)), &["jitter ±100.0001%"]),
        (PLAIN.hint_spread(above_one), &["hint-spread 100.0001%"]),
        (PLAIN.hint_mode(HintMode::Exact).hint_spread(Ratio::percent(10)), &["hint-spread 10%"]),
        (Policy::list(&[]), &["list"]),
        (PLAIN.jitter(Jitter::Decorrelated).multiplier(3.0), &["multiplier"]),
        (Policy::zero().jitter(Jitter::Full), &["jitter"]),
        (Policy::constant(ms(1)).cap(ms(2)), &["cap"]),
        (Policy::zero().base(secs(1)), &["base"]),
        (PLAIN.spread(secs(10)).max_elapsed(secs(9)), &["spread 10s", "max-elapsed 9s"]),
        (PLAIN.jitter(Jitter::None).max_elapsed(ms(99)), &["max-elapsed 99ms"]),
        (PLAIN.throttled_base(ms(99)), &["throttled-base 99ms", "base 100ms"]),
        (PLAIN.local_base(secs(31)), &["local-base 31s"]),
    ] {
        assert_helpful(&builder.build().unwrap_err().to_string(), values);
    }
}

#[test]
fn budget_errors_name_the_value_and_the_fix() {
    let seed = Seed::new(1);
    let above_one = Ratio::percent(101);
    for (error, values) in [
        (Tokens::builder().capacity(0).build().err(), &["capacity is 0"][..]),
        (Tokens::builder().capacity(9).initial(10).build().err(), &["initial 10", "capacity 9"]),
        (Tokens::builder().capacity(3).build().err(), &["cost 5", "capacity 3"]),
        (Tokens::builder().cost(0).build().err(), &["cost is 0"]),
        (Tokens::builder().refill(1, Duration::ZERO).build().err(), &["0s"]),
        (Throttle::new(1_001, Ratio::percent(10)).err(), &["max_tokens 1001"]),
        (Throttle::new(10, Ratio::millionths(999)).err(), &["token_ratio 0.000999"]),
        (Concurrent::with(above_one, 1).err(), &["101%"]),
        (Lifetime::with(Ratio::ONE, 1).err(), &["100%"]),
        (SuccessRate::with(Ratio::ZERO, 10).err(), &["0%"]),
        (SuccessRate::with(Ratio::percent(90), 65).err(), &["65 recent attempts"]),
        (Window::builder().ttl(ms(999)).build().err(), &["window 999ms"]),
        (Adaptive::builder(seed).multiplier(Ratio::percent(50)).build().err(), &["multiplier 0.5"]),
    ] {
        assert_helpful(&error.expect("a problem").to_string(), values);
    }
}

#[test]
fn breaker_errors_name_the_value_and_the_fix() {
    let builder = || CircuitBreaker::builder(Seed::new(1));
    let ratio = || builder().failure_ratio(Ratio::percent(50));
    let table: [(CircuitBreakerBuilder, &[&str]); 10] = [
        (builder(), &["no rule"]),
        (builder().consecutive(0), &["consecutive is 0"]),
        (builder().failure_ratio(Ratio::percent(101)), &["ratio 101%"]),
        (builder().slow_ratio(secs(90_000), Ratio::ONE), &["1d1h"]),
        (ratio().window(BreakerWindow::Calls(1_001)), &["1001 calls"]),
        (ratio().window(BreakerWindow::Time(ms(99))), &["99ms"]),
        (ratio().min_calls(101), &["min_calls 101"]),
        (builder().consecutive(1).min_calls(5), &["min_calls"]),
        (builder().consecutive(1).probes(2).healthy_probes(3), &["probes 2", "healthy_probes 3"]),
        (builder().consecutive(1).probe_wait(Duration::ZERO), &["probe_wait is 0s"]),
    ];
    for (builder, values) in table {
        assert_helpful(&builder.build().unwrap_err().to_string(), values);
    }
}

#[test]
fn admission_errors_name_the_value_and_the_fix() {
    for (builder, values) in [
        (Admission::per_second(0), &["rate 0"][..]),
        (Admission::per_second(1).burst(0), &["burst is 0"]),
        (Admission::per_second(1).max_wait(ms(999)), &["max_wait 999ms", "1s"]),
    ] {
        assert_helpful(&builder.build(SECRET).unwrap_err().to_string(), values);
    }
}
