use core::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use stagger_core::{HintMode, Jitter, Policy, PolicyBuilder, Ratio};

/// All kinds of jitter.
pub(crate) const JITTERS: [Jitter; 6] = [
    Jitter::None,
    Jitter::Full,
    Jitter::Equal,
    Jitter::Decorrelated,
    Jitter::Factor(Ratio::percent(20)),
    Jitter::Factor(Ratio::ONE),
];

/// Configures a property with this number of cases, and stores failing seeds next to the test file.
pub(crate) fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig {
        cases,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    }
}

/// Generates policies with any backoff and jitter and any other compatible settings.
pub(crate) fn any_policy() -> impl Strategy<Value = Policy> {
    let backoff = prop_oneof![
        8 => growing(),
        2 => (length(), jitter()).prop_map(|(delay, jitter)| with_jitter(Policy::constant(delay), jitter)),
        2 => (list(), jitter()).prop_map(|(list, jitter)| with_jitter(Policy::list(&list), jitter)),
        2 => (length(), length()).prop_map(|(a, b)| Policy::uniform(a.min(b), a.max(b))),
        1 => Just(Policy::zero()),
        1 => Just(Policy::zero().jitter(Jitter::None)),
        1 => Just(Policy::stop()),
    ];
    (backoff, limits(), hints(), kinds())
        .prop_map(|(builder, limits, hints, kinds)| kinds.apply(hints.apply(limits.apply(builder))))
        .prop_filter_map("compatible settings", |builder| builder.build().ok())
}

/// Generates policies that have delays, with any jitter and no other settings: exponential, linear, constant or list.
pub(crate) fn any_delays() -> impl Strategy<Value = Policy> {
    prop_oneof![
        4 => growing(),
        1 => (length(), jitter()).prop_map(|(delay, jitter)| with_jitter(Policy::constant(delay), jitter)),
        1 => (list(), jitter()).prop_map(|(list, jitter)| with_jitter(Policy::list(&list), jitter)),
        1 => (length(), length()).prop_map(|(a, b)| Policy::uniform(a.min(b), a.max(b))),
    ]
    .prop_filter_map("compatible settings", |builder| builder.build().ok())
}

/// Generates durations from a nanosecond to the maximum, with all orders of magnitude equally likely.
pub(crate) fn length() -> impl Strategy<Value = Duration> {
    prop_oneof![
        (0..=62_u32, any::<u64>()).prop_map(|(bits, raw)| Duration::from_nanos(1 << bits | raw & ((1 << bits) - 1))),
        (1..=600_000_u64).prop_map(Duration::from_millis),
    ]
}

fn growing() -> impl Strategy<Value = PolicyBuilder> {
    let multiplier = prop_oneof![Just(1.0), Just(2.0), 1.0..4.0_f64, 1.0..1e18_f64];
    let backoff = prop_oneof![
        3 => multiplier.prop_map(Growth::Exponential),
        2 => Just(Growth::Decorrelated),
        2 => prop_oneof![Just(Duration::ZERO), length()].prop_map(Growth::Linear),
    ];
    let cap = prop_oneof![4 => length().prop_map(Some), 1 => Just(None), 1 => Just(Some(Duration::ZERO))];
    (length(), backoff, cap, share(), jitter()).prop_map(|(base, growth, above, floor, jitter)| {
        let cap = above.map_or(Duration::MAX, |above| base.saturating_add(above));
        let builder = match growth {
            Growth::Exponential(multiplier) => {
                with_jitter(Policy::exponential(base, cap).multiplier(multiplier), jitter)
            }
            Growth::Linear(step) => with_jitter(Policy::linear(base, step, cap), jitter),
            Growth::Decorrelated => {
                return if above.is_some() {
                    Policy::decorrelated(base, cap)
                } else {
                    Policy::decorrelated(base, cap).uncapped()
                };
            }
        };
        let builder = if above.is_some() { builder } else { builder.uncapped() };
        match floor {
            Some(share) => builder.floor(Duration::from_nanos(share.of(cap.as_nanos().try_into().unwrap_or(1 << 40)))),
            None => builder,
        }
    })
}

#[derive(Clone, Copy, Debug)]
enum Growth {
    Exponential(f64),
    Linear(Duration),
    Decorrelated,
}

fn with_jitter(builder: PolicyBuilder, jitter: Option<Jitter>) -> PolicyBuilder {
    jitter.map_or(builder, |jitter| builder.jitter(jitter))
}

fn jitter() -> impl Strategy<Value = Option<Jitter>> {
    prop_oneof![
        Just(None),
        Just(Some(Jitter::None)),
        Just(Some(Jitter::Full)),
        Just(Some(Jitter::Equal)),
        (0..=1_000_000_u32).prop_map(|share| Some(Jitter::Factor(Ratio::millionths(share)))),
    ]
}

fn share() -> impl Strategy<Value = Option<Ratio>> {
    prop::option::of((0..=1_000_000_u32).prop_map(Ratio::millionths))
}

fn list() -> impl Strategy<Value = Vec<Duration>> {
    let unit = prop_oneof![Just(1_000_000), Just(1_000_000_000), 1..=1_000_u64];
    (unit, prop::collection::vec(0..=u32::MAX, 1..=16))
        .prop_map(|(unit, multiples)| multiples.iter().map(|&n| Duration::from_nanos(u64::from(n) * unit)).collect())
}

#[derive(Debug)]
struct Limits {
    spread: Option<Duration>,
    attempts: Option<Option<u32>>,
    elapsed: Option<Duration>,
    stable_after: Option<Duration>,
}

impl Limits {
    fn apply(&self, mut to: PolicyBuilder) -> PolicyBuilder {
        if let Some(spread) = self.spread {
            to = to.spread(spread);
        }
        if let Some(attempts) = self.attempts {
            to = attempts.map_or(to.unlimited_attempts(), |max| to.max_attempts(max));
        }
        if let Some(limit) = self.elapsed {
            to = to.max_elapsed(limit);
        }
        if let Some(uptime) = self.stable_after {
            to = to.stable_after(uptime);
        }
        to
    }
}

fn limits() -> impl Strategy<Value = Limits> {
    let attempts = prop::option::of(prop::option::of(prop_oneof![1..=20_u32, 1..=u32::MAX]));
    let elapsed = prop::option::weighted(0.3, prop_oneof![length(), Just(Duration::MAX)]);
    let stable_after = prop::option::weighted(0.3, prop_oneof![Just(Duration::ZERO), length()]);
    (prop::option::weighted(0.3, length()), attempts, elapsed, stable_after)
        .prop_map(|(spread, attempts, elapsed, stable_after)| Limits { spread, attempts, elapsed, stable_after })
}

#[derive(Debug)]
struct Hints {
    max: Option<Option<Duration>>,
    mode: Option<HintMode>,
    spread: Option<Ratio>,
}

impl Hints {
    fn apply(&self, mut to: PolicyBuilder) -> PolicyBuilder {
        if let Some(max) = self.max {
            to = max.map_or(to.unlimited_hint(), |max| to.max_hint(max));
        }
        match (self.mode, self.spread) {
            (Some(mode), _) => to.hint_mode(mode),
            (None, Some(share)) => to.hint_spread(share),
            (None, None) => to,
        }
    }
}

fn hints() -> impl Strategy<Value = Hints> {
    let mode = prop_oneof![Just(HintMode::AtLeast), Just(HintMode::Exact), length().prop_map(HintMode::Clamp)];
    (prop::option::of(prop::option::of(length())), prop::option::of(mode), share())
        .prop_map(|(max, mode, spread)| Hints { max, mode, spread })
}

/// Bases for individual failure kinds, as multiples of the policy's base.
#[derive(Debug)]
struct Kinds {
    throttled: Option<u32>,
    local: Option<u32>,
}

impl Kinds {
    fn apply(&self, mut to: PolicyBuilder) -> PolicyBuilder {
        let base = to.build().map_or(Duration::ZERO, |policy| policy.base());
        if let Some(times) = self.throttled {
            to = to.throttled_base(base.saturating_mul(times));
        }
        if let Some(times) = self.local {
            to = to.local_base(base.saturating_mul(times));
        }
        to
    }
}

fn kinds() -> impl Strategy<Value = Kinds> {
    let times = || prop::option::weighted(0.2, 1..=20_u32);
    (times(), times()).prop_map(|(throttled, local)| Kinds { throttled, local })
}
