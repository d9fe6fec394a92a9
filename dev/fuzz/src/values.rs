//! Values of stagger-core, created from the fuzzer's bytes.

use core::time::Duration;

use arbitrary::{Arbitrary, Result, Unstructured};
use stagger_core::{HintMode, Jitter, Policy, PolicyBuilder, PolicyError, Ratio};

/// A duration of any magnitude: uniform bytes would nearly always be centuries.
#[derive(Clone, Copy, Debug)]
pub struct AnyDuration(pub Duration);

impl<'a> Arbitrary<'a> for AnyDuration {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let magnitude = u8::arbitrary(u)?;
        Ok(Self(match magnitude {
            255 => Duration::MAX,
            // Round numbers, because configurations often have equal durations and multiples of each other.
            200.. => Duration::from_millis(u64::from(u8::arbitrary(u)?) * 50),
            _ => Duration::from_nanos(u64::arbitrary(u)? >> (magnitude % 64)),
        }))
    }
}

/// The longest duration that stagger-core computes with, 292 years. Longer ones count as this one.
pub(crate) const LONGEST: Duration = Duration::from_nanos(i64::MAX as u64);

/// The settings of a policy, which may be invalid.
#[derive(Arbitrary, Clone, Debug)]
pub struct AnyPolicy {
    shape: Shape,
    settings: Vec<Setting>,
}

#[derive(Arbitrary, Clone, Debug)]
enum Shape {
    Exponential(AnyDuration, AnyDuration),
    Linear(AnyDuration, AnyDuration, AnyDuration),
    Constant(AnyDuration),
    Decorrelated(AnyDuration, AnyDuration),
    List(Vec<AnyDuration>),
    Zero,
    Stop,
}

#[derive(Arbitrary, Clone, Debug)]
enum Setting {
    Base(AnyDuration),
    Cap(AnyDuration),
    Uncapped,
    Floor(AnyDuration),
    Multiplier(f64),
    SmallMultiplier(u8),
    Step(AnyDuration),
    Jitter(AnyJitter),
    Spread(AnyDuration),
    MaxAttempts(u32),
    FewAttempts(u8),
    UnlimitedAttempts,
    MaxElapsed(AnyDuration),
    MaxHint(AnyDuration),
    UnlimitedHint,
    HintMode(AnyHintMode),
    HintSpread(u32),
    ThrottledBase(AnyDuration),
    LocalBase(AnyDuration),
    StableAfter(AnyDuration),
}

#[derive(Arbitrary, Clone, Debug)]
enum AnyJitter {
    None,
    Full,
    Equal,
    Decorrelated,
    Factor(u32),
    Added(AnyDuration),
}

#[derive(Arbitrary, Clone, Debug)]
enum AnyHintMode {
    AtLeast,
    Exact,
    Clamp(AnyDuration),
}

impl AnyPolicy {
    /// Builds the policy.
    ///
    /// # Errors
    /// Returns the error of the builder if the settings are invalid.
    pub fn build(&self) -> Result<Policy, PolicyError> {
        let shape = match &self.shape {
            Shape::Exponential(base, cap) => Policy::exponential(base.0, cap.0),
            Shape::Linear(base, step, cap) => Policy::linear(base.0, step.0, cap.0),
            Shape::Constant(delay) => Policy::constant(delay.0),
            Shape::Decorrelated(base, cap) => Policy::decorrelated(base.0, cap.0),
            Shape::List(delays) => Policy::list(&delays.iter().map(|duration| duration.0).collect::<Vec<_>>()),
            Shape::Zero => Policy::zero(),
            Shape::Stop => Policy::stop(),
        };
        self.settings.iter().fold(shape, |builder, setting| setting.apply(builder)).build()
    }
}

impl Setting {
    fn apply(&self, builder: PolicyBuilder) -> PolicyBuilder {
        match self {
            Self::Base(duration) => builder.base(duration.0),
            Self::Cap(duration) => builder.cap(duration.0),
            Self::Uncapped => builder.uncapped(),
            Self::Floor(duration) => builder.floor(duration.0),
            Self::Multiplier(number) => builder.multiplier(*number),
            Self::SmallMultiplier(eighths) => builder.multiplier(f64::from(*eighths) / 8.0),
            Self::Step(duration) => builder.step(duration.0),
            Self::Jitter(jitter) => builder.jitter(match jitter {
                AnyJitter::None => Jitter::None,
                AnyJitter::Full => Jitter::Full,
                AnyJitter::Equal => Jitter::Equal,
                AnyJitter::Decorrelated => Jitter::Decorrelated,
                AnyJitter::Factor(share) => Jitter::Factor(ratio(*share)),
                AnyJitter::Added(length) => Jitter::Added(length.0),
            }),
            Self::Spread(duration) => builder.spread(duration.0),
            Self::MaxAttempts(attempts) => builder.max_attempts(*attempts),
            Self::FewAttempts(attempts) => builder.max_attempts(u32::from(*attempts)),
            Self::UnlimitedAttempts => builder.unlimited_attempts(),
            Self::MaxElapsed(duration) => builder.max_elapsed(duration.0),
            Self::MaxHint(duration) => builder.max_hint(duration.0),
            Self::UnlimitedHint => builder.unlimited_hint(),
            Self::HintMode(mode) => builder.hint_mode(match mode {
                AnyHintMode::AtLeast => HintMode::AtLeast,
                AnyHintMode::Exact => HintMode::Exact,
                AnyHintMode::Clamp(duration) => HintMode::Clamp(duration.0),
            }),
            Self::HintSpread(share) => builder.hint_spread(ratio(*share)),
            Self::ThrottledBase(duration) => builder.throttled_base(duration.0),
            Self::LocalBase(duration) => builder.local_base(duration.0),
            Self::StableAfter(duration) => builder.stable_after(duration.0),
        }
    }
}

/// Creates a ratio, which is above one in one of eight cases.
fn ratio(bits: u32) -> Ratio {
    Ratio::millionths(if bits.is_multiple_of(8) { bits } else { bits % 1_000_001 })
}
