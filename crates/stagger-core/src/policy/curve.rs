use core::time::Duration;

use super::{Backoff, Capped, Jitter, PolicySettings};
use crate::numbers::instant::{LONGEST_NANOS, nanos};
use crate::outcome::FailureKind;

/// What the schedule reads for every delay, derived from the settings when the policy is built.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Curve {
    /// The policy has neither a spread nor a time limit.
    pub(crate) starts_immediately: bool,
    /// A second attempt is possible.
    pub(crate) allows_retries: bool,
    /// The shape is [`Shape::PLAIN`].
    pub(crate) is_plain: bool,
    /// The delays come from the curve of a profile, or have a jitter that follows one.
    pub(crate) is_special: bool,
    pub(crate) shape: Shape,
    /// The ceiling of retry 1, in nanoseconds. `next = min(cap, ceiling · multiplier)`, or `ceiling + step`.
    pub(crate) first: f64,
    pub(crate) multiplier: f64,
    pub(crate) step: f64,
    /// The cap of the ceilings. If the cap is applied after the draw, they have none.
    pub(crate) cap: f64,
    /// The factors of the ceiling after a throttled failure and after a local one.
    throttled: f64,
    local: f64,
}

/// Which parts of the formula a policy uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shape {
    pub(crate) growth: Growth,
    pub(crate) draw: Draw,
    /// The shortest delay that is drawn, in nanoseconds.
    pub(crate) floor: u64,
}

impl Shape {
    /// The shape of most policies. The formula is compiled separately for it.
    pub(crate) const PLAIN: Self = Self { growth: Growth::Geometric, draw: Draw::Full, floor: 0 };
}

/// What the ceiling of a retry depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Growth {
    /// The ceiling before it, by a factor.
    Geometric,
    /// The ceiling before it, by a sum.
    Linear,
    /// The delay that was drawn before it.
    Decorrelated,
    /// The list.
    List,
    /// Nothing: there is no retry.
    Stop,
}

/// How a delay is drawn from its ceiling.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Draw {
    Full,
    None,
    Equal,
    Factor(f64),
}

/// The closed interval from which the delay of a retry is drawn, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) lo: u64,
    pub(crate) hi: u64,
}

/// A drawn delay, the interval that it was drawn from (before a cap that is applied last), and the value that the
/// schedule carries to the next one: its ceiling, or whatever else it depends on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Drawn {
    pub(crate) delay: u64,
    pub(crate) interval: Interval,
    pub(crate) carry: f64,
}

impl Curve {
    pub(super) const fn of(settings: &PolicySettings) -> Self {
        let (growth, multiplier, step) = match settings.backoff {
            _ if settings.is_decorrelated() => (Growth::Decorrelated, 1.0, 0.0),
            Backoff::Stop => (Growth::Stop, 1.0, 0.0),
            Backoff::List(_) => (Growth::List, 1.0, 0.0),
            Backoff::Zero | Backoff::Constant { .. } | Backoff::Uniform { .. } => (Growth::Geometric, 1.0, 0.0),
            Backoff::Linear { step, .. } => (Growth::Linear, 1.0, float(nanos(step))),
            Backoff::Exponential { multiplier, .. } => (Growth::Geometric, multiplier, 0.0),
        };
        let draw = match (settings.jitter(), settings.backoff) {
            // A zero backoff draws nothing, so it takes the formula that costs least.
            (_, Backoff::Zero) | (Jitter::Full | Jitter::Decorrelated | Jitter::Added(_) | Jitter::Profile(_), _) => {
                Draw::Full
            }
            (Jitter::None, _) => Draw::None,
            (Jitter::Equal, _) => Draw::Equal,
            (Jitter::Factor(share), _) => Draw::Factor(share.as_f64()),
        };
        let floor = match settings.backoff {
            Backoff::Uniform { min, .. } => nanos(min),
            _ => nanos(settings.floor),
        };
        let shape = Shape { growth, draw, floor };
        let is_special = matches!(settings.jitter(), Jitter::Added(_) | Jitter::Profile(_));
        let first = float(nanos(settings.base()));
        Self {
            starts_immediately: settings.spread.is_zero() && settings.max_elapsed.is_none(),
            allows_retries: !matches!(settings.max_attempts, Some(1)),
            is_plain: !is_special && matches!(shape, Shape { growth: Growth::Geometric, draw: Draw::Full, floor: 0 }),
            is_special,
            shape,
            first,
            multiplier,
            step,
            cap: match (settings.capped(), settings.cap) {
                (Capped::First | Capped::Twice, Some(cap)) => float(nanos(cap)),
                _ => float(LONGEST_NANOS),
            },
            throttled: share_of(settings.throttled_base(), first),
            local: share_of(settings.local_base(), first),
        }
    }

    /// Returns the factor of the ceilings after a failure of this kind.
    #[inline(always)]
    pub(crate) fn kind_factor(&self, kind: FailureKind) -> f64 {
        match kind {
            FailureKind::Transient => 1.0,
            FailureKind::Throttled => self.throttled,
            FailureKind::LocalExhaustion => self.local,
        }
    }
}

/// Returns `base / first`; 1 if `first` is 0.
const fn share_of(base: Duration, first: f64) -> f64 {
    if first > 0.0 { float(nanos(base)) / first } else { 1.0 }
}

/// Returns the largest `f64` that is not above `nanos`: a converted bound must stay a bound. Exact below 104 days.
const fn float(nanos: u64) -> f64 {
    let nearest = nanos as f64;
    if nearest as u64 > nanos { f64::from_bits(nearest.to_bits() - 1) } else { nearest }
}
