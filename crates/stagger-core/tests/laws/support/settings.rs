use core::time::Duration;

use proptest::prelude::*;
use stagger_core::profile::Profile;
use stagger_core::{HintMode, Jitter, Policy, PolicyBuilder, Ratio};

use super::policies::length;

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
