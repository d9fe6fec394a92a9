//! Random policies and settings.

use core::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use stagger_core::profile::Profile;
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

/// One call of a setter, with a valid or invalid value.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Setting {
    Base(Duration),
    Cap(Option<Duration>),
    Floor(Duration),
    Multiplier(f64),
    Step(Duration),
    Jitter(Jitter),
    Spread(Duration),
    MaxAttempts(Option<u32>),
    MaxElapsed(Option<Duration>),
    MaxHint(Option<Duration>),
    HintMode(HintMode),
    HintSpread(Ratio),
    ThrottledBase(Duration),
    LocalBase(Duration),
    StableAfter(Option<Duration>),
}

impl Setting {
    pub(crate) const fn apply(self, to: PolicyBuilder) -> PolicyBuilder {
        match self {
            Self::Base(base) => to.base(base),
            Self::Cap(Some(cap)) => to.cap(cap),
            Self::Cap(None) => to.uncapped(),
            Self::Floor(floor) => to.floor(floor),
            Self::Multiplier(multiplier) => to.multiplier(multiplier),
            Self::Step(step) => to.step(step),
            Self::Jitter(jitter) => to.jitter(jitter),
            Self::Spread(spread) => to.spread(spread),
            Self::MaxAttempts(Some(attempts)) => to.max_attempts(attempts),
            Self::MaxAttempts(None) => to.unlimited_attempts(),
            Self::MaxElapsed(Some(limit)) => to.max_elapsed(limit),
            Self::MaxElapsed(None) => to.unlimited_elapsed(),
            Self::MaxHint(Some(max)) => to.max_hint(max),
            Self::MaxHint(None) => to.unlimited_hint(),
            Self::HintMode(mode) => to.hint_mode(mode),
            Self::HintSpread(share) => to.hint_spread(share),
            Self::ThrottledBase(base) => to.throttled_base(base),
            Self::LocalBase(base) => to.local_base(base),
            Self::StableAfter(Some(uptime)) => to.stable_after(uptime),
            Self::StableAfter(None) => to.never_stable(),
        }
    }
}

/// Generates builders with arbitrary settings, most of them incompatible.
pub(crate) fn any_settings() -> impl Strategy<Value = PolicyBuilder> {
    let lengths = || prop_oneof![1 => Just(Duration::ZERO), 1 => Just(Duration::MAX), 8 => length()];
    let shape = prop_oneof![
        3 => (lengths(), lengths()).prop_map(|(base, cap)| Policy::exponential(base, cap)),
        1 => (lengths(), lengths()).prop_map(|(base, cap)| Policy::decorrelated(base, cap)),
        1 => (lengths(), lengths(), lengths()).prop_map(|(base, step, cap)| Policy::linear(base, step, cap)),
        1 => lengths().prop_map(Policy::constant),
        1 => (lengths(), lengths()).prop_map(|(a, b)| Policy::uniform(a, b)),
        1 => prop::collection::vec(lengths(), 0..20).prop_map(|delays| Policy::list(&delays)),
        1 => Just(Policy::zero()),
        1 => Just(Policy::stop()),
        1 => Just(Policy::DEFAULT.to_builder()),
        2 => prop::sample::select(Profile::all().collect::<Vec<_>>()).prop_map(|it| it.policy().to_builder()),
    ];
    (shape, prop::collection::vec(setting(), 0..6))
        .prop_map(|(shape, settings)| settings.into_iter().fold(shape, |builder, setting| setting.apply(builder)))
}

fn setting() -> impl Strategy<Value = Setting> {
    let length = || prop_oneof![1 => Just(Duration::ZERO), 1 => Just(Duration::MAX), 8 => length()];
    let maybe = move || prop::option::weighted(0.8, length());
    let share = || (0..=1_200_000_u32).prop_map(Ratio::millionths);
    let multiplier = prop_oneof![
        4 => 1.0..10.0_f64,
        1 => Just(f64::NAN),
        1 => Just(f64::INFINITY),
        1 => Just(f64::MAX),
        1 => -10.0..1.0_f64,
    ];
    let jitter = prop_oneof![
        Just(Jitter::None),
        Just(Jitter::Full),
        Just(Jitter::Equal),
        Just(Jitter::Decorrelated),
        share().prop_map(Jitter::Factor),
    ];
    let mode = prop_oneof![Just(HintMode::AtLeast), Just(HintMode::Exact), length().prop_map(HintMode::Clamp)];
    prop_oneof![
        length().prop_map(Setting::Base),
        maybe().prop_map(Setting::Cap),
        length().prop_map(Setting::Floor),
        multiplier.prop_map(Setting::Multiplier),
        length().prop_map(Setting::Step),
        jitter.prop_map(Setting::Jitter),
        length().prop_map(Setting::Spread),
        prop::option::weighted(0.8, 0..5_u32).prop_map(Setting::MaxAttempts),
        maybe().prop_map(Setting::MaxElapsed),
        maybe().prop_map(Setting::MaxHint),
        mode.prop_map(Setting::HintMode),
        share().prop_map(Setting::HintSpread),
        length().prop_map(Setting::ThrottledBase),
        length().prop_map(Setting::LocalBase),
        maybe().prop_map(Setting::StableAfter),
    ]
}
