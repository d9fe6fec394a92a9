//! Every error message names the offending value and how to fix it.

use core::time::Duration;

use stagger_core::admission::{Admission, Reservation};
use stagger_core::breaker::{CircuitBreaker, CircuitBreakerBuilder, Window as BreakerWindow};
use stagger_core::budget::{Adaptive, Concurrent, Lifetime, SuccessRate, Throttle, Tokens, Window};
use stagger_core::text::parse_duration;
use stagger_core::{HintMode, Jitter, Policy, PolicyBuilder, Ratio, Seed};

use crate::laws::support::{SECRET, ms, secs};

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
