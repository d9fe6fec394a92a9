//! Values of the core, made from the fuzzer's bytes.

use core::time::Duration;

use arbitrary::{Arbitrary, Result, Unstructured};
use stagger_core::{HintMode, Jitter, Policy, PolicyBuilder, PolicyError, Ratio};

/// A length of time: of any magnitude, for uniform bytes would be centuries nearly always.
#[derive(Clone, Copy, Debug)]
pub struct Length(pub Duration);

impl<'a> Arbitrary<'a> for Length {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let magnitude = u8::arbitrary(u)?;
        Ok(Self(match magnitude {
            255 => Duration::MAX,
            // Round numbers: equal ones, and multiples of each other, are what people write.
            200.. => Duration::from_millis(u64::from(u8::arbitrary(u)?) * 50),
            _ => Duration::from_nanos(u64::arbitrary(u)? >> (magnitude % 64)),
        }))
    }
}

/// The longest length that the core computes with, 292 years; longer ones are taken for this one.
pub(crate) const LONGEST: Duration = Duration::from_nanos(i64::MAX as u64);

/// What a policy is made of.
#[derive(Arbitrary, Clone, Debug)]
pub struct Recipe {
    shape: Shape,
    settings: Vec<Setting>,
}

#[derive(Arbitrary, Clone, Debug)]
enum Shape {
    Exponential(Length, Length),
    Linear(Length, Length, Length),
    Constant(Length),
    Decorrelated(Length, Length),
    List(Vec<Length>),
    Zero,
    Stop,
}

#[derive(Arbitrary, Clone, Debug)]
enum Setting {
    Base(Length),
    Cap(Length),
    Uncapped,
    Floor(Length),
    Multiplier(f64),
    SmallMultiplier(u8),
    Step(Length),
    Jitter(AnyJitter),
    Spread(Length),
    MaxAttempts(u32),
    FewAttempts(u8),
    UnlimitedAttempts,
    MaxElapsed(Length),
    MaxHint(Length),
    UnlimitedHint,
    HintMode(AnyHintMode),
    HintSpread(u32),
    ThrottledBase(Length),
    LocalBase(Length),
    StableAfter(Length),
}

#[derive(Arbitrary, Clone, Debug)]
enum AnyJitter {
    None,
    Full,
    Equal,
    Decorrelated,
    Factor(u32),
    Added(Length),
}

#[derive(Arbitrary, Clone, Debug)]
enum AnyHintMode {
    AtLeast,
    Exact,
    Clamp(Length),
}

impl Recipe {
    /// Builds it; a recipe can be senseless.
    ///
    /// # Errors
    /// What the core says is wrong with it.
    pub fn build(&self) -> Result<Policy, PolicyError> {
        let shape = match &self.shape {
            Shape::Exponential(base, cap) => Policy::exponential(base.0, cap.0),
            Shape::Linear(base, step, cap) => Policy::linear(base.0, step.0, cap.0),
            Shape::Constant(delay) => Policy::constant(delay.0),
            Shape::Decorrelated(base, cap) => Policy::decorrelated(base.0, cap.0),
            Shape::List(delays) => Policy::list(&delays.iter().map(|length| length.0).collect::<Vec<_>>()),
            Shape::Zero => Policy::zero(),
            Shape::Stop => Policy::stop(),
        };
        self.settings.iter().fold(shape, |builder, setting| setting.apply(builder)).build()
    }
}

impl Setting {
    fn apply(&self, builder: PolicyBuilder) -> PolicyBuilder {
        match self {
            Self::Base(length) => builder.base(length.0),
            Self::Cap(length) => builder.cap(length.0),
            Self::Uncapped => builder.uncapped(),
            Self::Floor(length) => builder.floor(length.0),
            Self::Multiplier(number) => builder.multiplier(*number),
            Self::SmallMultiplier(eighths) => builder.multiplier(f64::from(*eighths) / 8.0),
            Self::Step(length) => builder.step(length.0),
            Self::Jitter(jitter) => builder.jitter(match jitter {
                AnyJitter::None => Jitter::None,
                AnyJitter::Full => Jitter::Full,
                AnyJitter::Equal => Jitter::Equal,
                AnyJitter::Decorrelated => Jitter::Decorrelated,
                AnyJitter::Factor(share) => Jitter::Factor(ratio(*share)),
                AnyJitter::Added(length) => Jitter::Added(length.0),
            }),
            Self::Spread(length) => builder.spread(length.0),
            Self::MaxAttempts(attempts) => builder.max_attempts(*attempts),
            Self::FewAttempts(attempts) => builder.max_attempts(u32::from(*attempts)),
            Self::UnlimitedAttempts => builder.unlimited_attempts(),
            Self::MaxElapsed(length) => builder.max_elapsed(length.0),
            Self::MaxHint(length) => builder.max_hint(length.0),
            Self::UnlimitedHint => builder.unlimited_hint(),
            Self::HintMode(mode) => builder.hint_mode(match mode {
                AnyHintMode::AtLeast => HintMode::AtLeast,
                AnyHintMode::Exact => HintMode::Exact,
                AnyHintMode::Clamp(length) => HintMode::Clamp(length.0),
            }),
            Self::HintSpread(share) => builder.hint_spread(ratio(*share)),
            Self::ThrottledBase(length) => builder.throttled_base(length.0),
            Self::LocalBase(length) => builder.local_base(length.0),
            Self::StableAfter(length) => builder.stable_after(length.0),
        }
    }
}

/// Mostly a share; one in eight is above one.
fn ratio(bits: u32) -> Ratio {
    Ratio::millionths(if bits.is_multiple_of(8) { bits } else { bits % 1_000_001 })
}
