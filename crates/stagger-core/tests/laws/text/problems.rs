//! Every problem that a policy can have, alone, with its message.

use core::time::Duration;

use stagger_core::{HintMode, Jitter, Policy, PolicyBuilder, PolicyProblem, Ratio, profile};

use crate::laws::support::{ms, secs};

const EXPONENTIAL: PolicyBuilder = Policy::exponential(ms(100), secs(30));
const NANO: Duration = Duration::from_nanos(1);

#[test]
fn every_problem_is_found_alone_and_says_how_to_fix_it() {
    let ratio = Ratio::millionths(1_000_001);
    let decorrelated = "decorrelated jitter takes base and cap of an exponential backoff and nothing else: drop \
                        multiplier and floor, or choose another jitter";
    let grows_by_itself = "decorrelated jitter grows by itself, from base to cap: use a decorrelated backoff, or \
                           choose another jitter";
    let nothing_to_cap = "cap and floor are for delays that grow: drop them, or use an exponential or linear backoff";
    let misplaced =
        "base, step, range or multiplier is set for a backoff that has none: drop it, or choose another backoff";
    let list = "the list needs 1 to 16 delays that are multiples of a common unit: shorten it, or round its delays";
    let zero_base = "base is 0s, so every delay would be 0s: raise base, or use a zero backoff";
    let nothing_to_jitter = "a zero or stop backoff has no delay to jitter: drop jitter, or choose another backoff";
    let uniform_jitter = "a uniform backoff draws from its range: drop jitter, or use a constant backoff";
    let unused = "hint-spread 10% has no effect with this hint mode: use at-least, or drop hint-spread";
    for (builder, problem, message) in [
        (
            EXPONENTIAL.max_attempts(0),
            PolicyProblem::NoAttempt,
            "max-attempts is 0, but the first call counts: use 1 for no retry, or more",
        ),
        (EXPONENTIAL.base(Duration::ZERO), PolicyProblem::ZeroBase, zero_base),
        (Policy::constant(Duration::ZERO), PolicyProblem::ZeroBase, zero_base),
        (Policy::linear(Duration::ZERO, secs(1), secs(2)), PolicyProblem::ZeroBase, zero_base),
        (
            EXPONENTIAL.cap(ms(100) - NANO),
            PolicyProblem::CapBelowBase,
            "cap 99.999999ms is below base 100ms: raise cap or lower base",
        ),
        (
            EXPONENTIAL.floor(secs(30) + NANO),
            PolicyProblem::FloorAboveCap,
            "floor 30.000000001s is above cap 30s: lower floor or raise cap",
        ),
        (
            profile::POLLY_V8.policy().to_builder().floor(ms(7)),
            PolicyProblem::FloorUnused,
            "floor 7ms has no effect on this profile's jitter: drop floor, or choose another jitter",
        ),
        (
            profile::SOCKET_IO.policy().to_builder().floor(ms(7)),
            PolicyProblem::FloorUnused,
            "floor 7ms has no effect on this profile's jitter: drop floor, or choose another jitter",
        ),
        (
            EXPONENTIAL.multiplier(0.999),
            PolicyProblem::Multiplier,
            "multiplier 0.999 is not a finite number of at least 1: use 2, or 1 for no growth",
        ),
        (
            EXPONENTIAL.multiplier(f64::NAN),
            PolicyProblem::Multiplier,
            "multiplier NaN is not a finite number of at least 1: use 2, or 1 for no growth",
        ),
        (
            EXPONENTIAL.multiplier(f64::INFINITY),
            PolicyProblem::Multiplier,
            "multiplier inf is not a finite number of at least 1: use 2, or 1 for no growth",
        ),
        (
            EXPONENTIAL.multiplier(-2.0),
            PolicyProblem::Multiplier,
            "multiplier -2 is not a finite number of at least 1: use 2, or 1 for no growth",
        ),
        (
            EXPONENTIAL.jitter(Jitter::Factor(ratio)),
            PolicyProblem::RatioAboveOne,
            "jitter ±100.0001% is above 100%: use at most 100%",
        ),
        (
            EXPONENTIAL.hint_spread(ratio),
            PolicyProblem::RatioAboveOne,
            "hint-spread 100.0001% is above 100%: use at most 100%",
        ),
        (Policy::list(&[]), PolicyProblem::List, list),
        (Policy::list(&[secs(1); 17]), PolicyProblem::List, list),
        (Policy::list(&[NANO, secs(3600)]), PolicyProblem::List, list),
        (EXPONENTIAL.jitter(Jitter::Decorrelated).multiplier(3.0), PolicyProblem::Decorrelated, decorrelated),
        (EXPONENTIAL.jitter(Jitter::Decorrelated).floor(ms(1)), PolicyProblem::Decorrelated, decorrelated),
        (
            Policy::linear(ms(1), ms(1), ms(9)).jitter(Jitter::Decorrelated),
            PolicyProblem::Decorrelated,
            grows_by_itself,
        ),
        (Policy::constant(ms(1)).jitter(Jitter::Decorrelated), PolicyProblem::Decorrelated, grows_by_itself),
        (Policy::zero().jitter(Jitter::Full), PolicyProblem::NothingToJitter, nothing_to_jitter),
        (Policy::stop().jitter(Jitter::Equal), PolicyProblem::NothingToJitter, nothing_to_jitter),
        (Policy::uniform(ms(1), ms(2)).jitter(Jitter::None), PolicyProblem::NothingToJitter, uniform_jitter),
        (Policy::uniform(ms(1), ms(2)).jitter(Jitter::Equal), PolicyProblem::NothingToJitter, uniform_jitter),
        (
            Policy::uniform(ms(2), ms(1)),
            PolicyProblem::Range,
            "range 2ms..1ms has no delay: write the shorter delay first, and end above 0s",
        ),
        (
            Policy::uniform(Duration::ZERO, Duration::ZERO),
            PolicyProblem::Range,
            "range 0s..0s has no delay: write the shorter delay first, and end above 0s",
        ),
        (Policy::uniform(ms(1), ms(2)).floor(ms(1)), PolicyProblem::NothingToCap, nothing_to_cap),
        (Policy::uniform(ms(1), ms(2)).base(ms(1)), PolicyProblem::Misplaced, misplaced),
        (EXPONENTIAL.range(ms(1), ms(2)), PolicyProblem::Misplaced, misplaced),
        (
            Policy::uniform(secs(1), secs(5)).max_elapsed(ms(999)),
            PolicyProblem::ElapsedBelowBase,
            "max-elapsed 999ms ends before the first retry can start: raise max-elapsed, lower base, or set \
             max-attempts to 1",
        ),
        (
            Policy::uniform(secs(1), secs(5)).throttled_base(secs(4)),
            PolicyProblem::ThrottledBase,
            "throttled-base 4s is not between base 5s and cap: change it, or leave it out",
        ),
        (Policy::constant(ms(1)).cap(ms(2)), PolicyProblem::NothingToCap, nothing_to_cap),
        (Policy::list(&[ms(1)]).floor(ms(1)), PolicyProblem::NothingToCap, nothing_to_cap),
        (Policy::zero().cap(secs(1)), PolicyProblem::NothingToCap, nothing_to_cap),
        (Policy::zero().base(secs(1)), PolicyProblem::Misplaced, misplaced),
        (Policy::list(&[ms(1)]).base(secs(1)), PolicyProblem::Misplaced, misplaced),
        (Policy::constant(ms(1)).multiplier(2.0), PolicyProblem::Misplaced, misplaced),
        (EXPONENTIAL.step(secs(1)), PolicyProblem::Misplaced, misplaced),
        (
            EXPONENTIAL.spread(secs(10)).max_elapsed(secs(10) - NANO),
            PolicyProblem::SpreadAboveElapsed,
            "spread 10s is longer than max-elapsed 9.999999999s: shorten spread or raise max-elapsed",
        ),
        (
            EXPONENTIAL.jitter(Jitter::None).max_elapsed(ms(99)),
            PolicyProblem::ElapsedBelowBase,
            "max-elapsed 99ms ends before the first retry can start: raise max-elapsed, lower base, or set \
             max-attempts to 1",
        ),
        (
            EXPONENTIAL.hint_mode(HintMode::Exact).hint_spread(Ratio::percent(10)),
            PolicyProblem::HintSpreadUnused,
            unused,
        ),
        (
            EXPONENTIAL.throttled_base(ms(99)),
            PolicyProblem::ThrottledBase,
            "throttled-base 99ms is not between base 100ms and cap: change it, or leave it out",
        ),
        (
            EXPONENTIAL.local_base(secs(31)),
            PolicyProblem::LocalBase,
            "local-base 31s is not between base 100ms and cap: change it, or leave it out",
        ),
    ] {
        let error = builder.build().expect_err(message);
        assert!(error.problems().eq([problem]), "{problem:?}: {error}");
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn values_at_the_limit_of_each_problem_are_valid() {
    for builder in [
        EXPONENTIAL.max_attempts(1),
        EXPONENTIAL.base(NANO),
        EXPONENTIAL.cap(ms(100)),
        EXPONENTIAL.floor(secs(30)),
        EXPONENTIAL.uncapped().floor(secs(3000)),
        EXPONENTIAL.multiplier(1.0),
        EXPONENTIAL.multiplier(f64::MAX),
        EXPONENTIAL.jitter(Jitter::Factor(Ratio::ONE)),
        EXPONENTIAL.hint_spread(Ratio::ONE),
        Policy::list(&[secs(1); 16]),
        Policy::list(&[Duration::ZERO]),
        EXPONENTIAL.jitter(Jitter::Decorrelated).multiplier(2.0),
        Policy::zero().jitter(Jitter::None),
        Policy::linear(NANO, Duration::ZERO, NANO),
        EXPONENTIAL.spread(secs(10)).max_elapsed(secs(10)),
        EXPONENTIAL.jitter(Jitter::None).max_elapsed(ms(100)),
        EXPONENTIAL.jitter(Jitter::None).max_elapsed(ms(99)).max_attempts(1),
        EXPONENTIAL.max_elapsed(Duration::ZERO),
        EXPONENTIAL.jitter(Jitter::Equal).max_elapsed(ms(50)),
        EXPONENTIAL.floor(ms(30)).max_elapsed(ms(30)),
        EXPONENTIAL.hint_mode(HintMode::AtLeast).hint_spread(Ratio::ZERO),
        EXPONENTIAL.throttled_base(ms(100)),
        EXPONENTIAL.throttled_base(secs(30)),
        EXPONENTIAL.local_base(ms(100)),
        EXPONENTIAL.local_base(secs(30)),
        Policy::constant(ms(1)).throttled_base(secs(1)),
    ] {
        assert!(builder.build().is_ok(), "{}", builder.build().unwrap_err());
    }
}

#[test]
fn max_elapsed_must_allow_the_shortest_first_delay() {
    let limited = |builder: PolicyBuilder, limit| builder.max_elapsed(limit).build().is_ok();
    for (builder, least) in [
        (EXPONENTIAL.jitter(Jitter::None), ms(100)),
        (EXPONENTIAL.jitter(Jitter::Decorrelated), ms(100)),
        (EXPONENTIAL.jitter(Jitter::Equal), ms(50)),
        (EXPONENTIAL.floor(ms(7)), ms(7)),
        (Policy::list(&[ms(20), ms(1)]).jitter(Jitter::None), ms(20)),
    ] {
        assert!(limited(builder, least) && !limited(builder, least - NANO), "{least:?}");
    }
}

#[test]
fn bases_of_failure_kinds_require_a_base() {
    for builder in [Policy::zero(), Policy::stop(), Policy::list(&[secs(1)])] {
        assert!(builder.throttled_base(secs(1)).build().unwrap_err().problems().eq([PolicyProblem::ThrottledBase]));
        assert!(builder.local_base(secs(1)).build().unwrap_err().problems().eq([PolicyProblem::LocalBase]));
    }
}

/// The messages of all problems fit into the error, including the last one.
#[test]
fn no_message_is_lost_with_many_problems() {
    let worst = Policy::exponential(secs(86_399), ms(1))
        .jitter(Jitter::Decorrelated)
        .multiplier(f64::NAN)
        .floor(Duration::from_nanos(86_399_999_999_999))
        .step(secs(1))
        .max_attempts(0)
        .spread(Duration::from_nanos(86_399_999_999_998))
        .max_elapsed(Duration::from_nanos(86_399_999_999))
        .hint_mode(HintMode::Exact)
        .hint_spread(Ratio::percent(101))
        .throttled_base(NANO)
        .local_base(NANO);
    let error = worst.build().unwrap_err();
    let text = error.to_string();
    assert_eq!(error.problems().count(), 12, "{text}");
    assert_eq!(text.split("; ").count(), 12, "{text}");
    assert!(text.ends_with("local-base 1ns is not between base 23h59m59s and cap: change it, or leave it out"));
}
