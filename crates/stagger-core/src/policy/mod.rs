//! The policy: plain data that says how a call is retried.

mod builder;
mod error;
#[cfg(feature = "serde")]
mod serde;
mod text;

use core::num::NonZeroU32;
use core::time::Duration;

pub use builder::PolicyBuilder;
pub(crate) use builder::Settings;
pub use error::{PolicyError, PolicyProblem};

use crate::instant::nanos;
use crate::profile::{Band, Capped, Recipe};
use crate::{HintMode, Jitter, Ratio, schedule::Backoff};

/// The settings by which a call is retried: plain data, checked once, shared by every call, simulation and forecast.
///
/// Create one with a constructor, refine it with the setters of [`PolicyBuilder`], and check it with
/// [`build`](PolicyBuilder::build), which reports every problem at once. A policy that was built is valid. It reads no
/// clock and draws no random number: [`RetryMachine`](crate::machine::RetryMachine) and
/// [`Schedule`](crate::schedule::Schedule) receive both as arguments.
///
/// The default is `exponential base=100ms cap=30s multiplier=2 jitter=full max-attempts=4`.
///
/// | setting | default | meaning |
/// |---|---|---|
/// | `base`, `cap`, `multiplier`, `step` | 100 ms, 30 s, 2, `base` | the ceilings, see [`Backoff`] |
/// | `floor` | 0 | no delay is drawn below it |
/// | `jitter` | full; equal for constant and list | how a delay is drawn from its ceiling, see [`Jitter`] |
/// | `spread` | 0 | a uniform wait before the first action of an episode |
/// | `max_attempts` | 4 | the first call counts |
/// | `max_elapsed` | none | no retry starts later than this after the start of the call |
/// | `max_hint` | 5 min | a server's hint above it stops the call |
/// | `hint_mode`, `hint_spread` | `at-least`, 50 % | what a hint does to the delay, see [`HintMode`] |
/// | `throttled_base` | `base` | base after the server reported that it is overloaded |
/// | `local_base` | the larger of `base` and `min(10 · base, 1 s)` | base after the client ran out of a resource of its own |
/// | `stable_after` | none | how long a connection must have been open for the attempt count to restart |
///
/// ```
/// use core::time::Duration;
/// use stagger_core::{Jitter, Policy, Seed};
///
/// let policy = Policy::exponential(Duration::from_millis(100), Duration::from_secs(1))
///     .jitter(Jitter::None)
///     .max_attempts(6)
///     .build()?;
/// let delays: Vec<_> = policy.delays(Seed::new(1)).map(|delay| delay.as_millis()).collect();
/// assert_eq!(delays, [100, 200, 400, 800, 1000]);
/// # Ok::<(), stagger_core::PolicyError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Policy {
    pub(crate) curve: Curve,
    pub(crate) settings: Settings,
}

/// What the schedule reads for every delay, derived from the settings when the policy is built.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Curve {
    /// The policy has neither a spread nor a time limit.
    pub(crate) starts_immediately: bool,
    /// A second attempt is possible.
    pub(crate) allows_retries: bool,
    /// The shape is [`Shape::PLAIN`].
    pub(crate) is_plain: bool,
    /// The formula has parts that only additive jitter and the jitters of profiles use.
    pub(crate) is_special: bool,
    pub(crate) shape: Shape,
    /// The ceiling of retry 1, in nanoseconds. `next = min(cap, ceiling · multiplier)`, or `ceiling + step`.
    pub(crate) first: f64,
    pub(crate) multiplier: f64,
    pub(crate) step: f64,
    pub(crate) cap: f64,
    /// The factors of the ceiling after a throttled failure and after a local one.
    pub(crate) throttled: f64,
    pub(crate) local: f64,
}

/// Which formulas a policy uses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Shape {
    pub(crate) route: Route,
    pub(crate) draw: Draw,
    /// The shortest delay that is drawn, in nanoseconds.
    pub(crate) floor: u64,
    /// The cap that is applied after the draw, in nanoseconds; the ceilings are then not capped. `u64::MAX`: none.
    pub(crate) last_cap: u64,
    /// The unit that ceilings and draws are rounded down to, in nanoseconds; 0: they are not rounded.
    pub(crate) unit: u64,
}

impl Shape {
    /// The shape of most policies. The formulas are compiled separately for it.
    pub(crate) const PLAIN: Self =
        Self { route: Route::Geometric, draw: Draw::Full, floor: 0, last_cap: u64::MAX, unit: 0 };
}

/// What the ceiling of a retry depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// The ceiling before it, by a factor.
    Geometric,
    /// The ceiling before it, by a sum.
    Linear,
    /// The delay that was drawn before it.
    Decorrelated,
    /// The delay before it, by a factor; the first one is drawn from between these lengths in nanoseconds.
    Once(u64, u64),
    /// Polly's curve.
    Polly,
    /// The ceiling before it, by a factor; the draw is that of socket.io.
    SocketIo,
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
    /// Up to this many nanoseconds above the ceiling.
    Added(u64),
    Band(&'static Band),
}

impl Policy {
    /// Creates exponential backoff, `min(cap, base · multiplier^(n − 1))`, with multiplier 2 and full jitter.
    pub const fn exponential(base: Duration, cap: Duration) -> PolicyBuilder {
        PolicyBuilder::new(Backoff::Exponential { base, multiplier: 2.0 }).cap(cap)
    }

    /// Creates linear backoff, `min(cap, base + (n − 1) · step)`, with full jitter.
    pub const fn linear(base: Duration, step: Duration, cap: Duration) -> PolicyBuilder {
        PolicyBuilder::new(Backoff::Linear { base, step }).cap(cap)
    }

    /// Creates a policy with delays of `d/2..=d`, every time: constant backoff with equal jitter.
    ///
    /// For exactly `d`, add [`jitter(Jitter::None)`](PolicyBuilder::jitter); clients that fail together then retry
    /// together.
    pub const fn constant(d: Duration) -> PolicyBuilder {
        PolicyBuilder::new(Backoff::Constant { delay: d })
    }

    /// Creates exponential backoff with decorrelated jitter, which depends on base and cap only; see
    /// [`Jitter::Decorrelated`].
    pub const fn decorrelated(base: Duration, cap: Duration) -> PolicyBuilder {
        Self::exponential(base, cap).jitter(Jitter::Decorrelated)
    }

    /// Creates a policy with delays of `d/2..=d` for each `d` of a list, of which the last one repeats: a list with equal
    /// jitter.
    ///
    /// At most 16 delays. For exactly these, add [`jitter(Jitter::None)`](PolicyBuilder::jitter).
    pub const fn list(delays: &[Duration]) -> PolicyBuilder {
        PolicyBuilder::of_list(delays)
    }

    /// Creates a backoff without a delay between attempts.
    pub const fn zero() -> PolicyBuilder {
        PolicyBuilder::new(Backoff::Zero)
    }

    /// Creates a backoff without a retry.
    pub const fn stop() -> PolicyBuilder {
        PolicyBuilder::new(Backoff::Stop)
    }

    /// Creates a builder with the settings of this policy, to vary it. Values that nobody gave, such as those of
    /// [`Policy::DEFAULT`] and of profiles, yield to the values that are set; see [`PolicyBuilder`].
    pub const fn to_builder(&self) -> PolicyBuilder {
        PolicyBuilder::of_settings(self.settings)
    }

    /// Returns how the ceilings grow.
    #[must_use]
    pub const fn backoff(&self) -> &Backoff {
        &self.settings.backoff
    }

    /// Returns the ceiling of the first retry; zero for `zero` and `stop`.
    #[must_use]
    pub const fn base(&self) -> Duration {
        self.settings.base()
    }

    /// Returns the limit of every computed delay; `None` if there is none.
    #[must_use]
    pub const fn cap(&self) -> Option<Duration> {
        self.settings.cap
    }

    /// Returns the shortest delay that is drawn.
    #[must_use]
    pub const fn floor(&self) -> Duration {
        self.settings.floor
    }

    /// Returns how a delay is drawn from its ceiling.
    #[must_use]
    pub const fn jitter(&self) -> Jitter {
        self.settings.jitter()
    }

    /// Returns the longest wait before the first action of an episode.
    #[must_use]
    pub const fn spread(&self) -> Duration {
        self.settings.spread
    }

    /// Returns the maximum number of attempts, the first included; `None` if there is no limit.
    #[inline]
    #[must_use]
    pub const fn max_attempts(&self) -> Option<NonZeroU32> {
        match self.settings.max_attempts {
            Some(attempts) => NonZeroU32::new(attempts),
            None => None,
        }
    }

    /// Returns whether a second attempt is possible: `max_attempts` is not 1.
    #[inline]
    #[must_use]
    pub const fn allows_retries(&self) -> bool {
        self.curve.allows_retries
    }

    /// Returns whether a call begins with its first attempt: there is no spread to wait for, and no time limit that
    /// needs the clock.
    #[inline]
    #[must_use]
    pub const fn starts_immediately(&self) -> bool {
        self.curve.starts_immediately
    }

    /// Returns how long after the start of the call a retry may start; `None` if there is no limit.
    #[inline]
    #[must_use]
    pub const fn max_elapsed(&self) -> Option<Duration> {
        self.settings.max_elapsed
    }

    /// Returns the longest hint that is followed; `None` if every hint is.
    #[must_use]
    pub const fn max_hint(&self) -> Option<Duration> {
        self.settings.max_hint
    }

    /// Returns what a hint does to the delay.
    #[must_use]
    pub const fn hint_mode(&self) -> HintMode {
        self.settings.hint_mode
    }

    /// Returns the share of a hint over which clients are spread at least, with [`HintMode::AtLeast`].
    #[must_use]
    pub const fn hint_spread(&self) -> Ratio {
        match self.settings.hint_spread {
            Some(share) => share,
            None => Ratio::percent(50),
        }
    }

    /// Returns the base after the server reported that it is overloaded.
    #[must_use]
    pub const fn throttled_base(&self) -> Duration {
        match self.settings.throttled_base {
            Some(base) => base,
            None => self.base(),
        }
    }

    /// Returns the base after the client ran out of a resource of its own: the larger of `base` and `min(10 · base, 1
    /// s)`, unless set.
    #[must_use]
    pub const fn local_base(&self) -> Duration {
        self.settings.local_base()
    }

    /// Returns how long a connection must have been open for the attempt count to restart. `None`: the count never
    /// restarts, or, for [`ReconnectMachine`](crate::machine::ReconnectMachine), the larger of 10 s and the last delay.
    #[must_use]
    pub const fn stable_after(&self) -> Option<Duration> {
        self.settings.stable_after
    }

    pub(crate) const fn of_checked(settings: Settings) -> Self {
        let settings = settings.canonical();
        Self { curve: Curve::of(&settings), settings }
    }
}

impl Default for Policy {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Policy {
    /// The default policy: `exponential base=100ms cap=30s multiplier=2 jitter=full max-attempts=4`.
    pub const DEFAULT: Self =
        Self::exponential(Duration::from_millis(100), Duration::from_secs(30)).as_defaults().build_or_fail_to_compile();
}

impl Curve {
    const fn of(settings: &Settings) -> Self {
        let profile = match settings.jitter() {
            Jitter::Profile(jitter) => Some(&jitter.0.recipe),
            _ => None,
        };
        let (route, multiplier, step) = match settings.backoff {
            Backoff::Stop => (Route::Stop, 1.0, 0.0),
            Backoff::List(_) => (Route::List, 1.0, 0.0),
            Backoff::Zero | Backoff::Constant { .. } => (Route::Geometric, 1.0, 0.0),
            Backoff::Linear { step, .. } => (Route::Linear, 1.0, float(nanos(step))),
            Backoff::Exponential { multiplier, .. } => match (settings.jitter(), profile) {
                (Jitter::Decorrelated, _) | (_, Some(Recipe::Decorrelated)) => (Route::Decorrelated, 1.0, 0.0),
                (_, Some(Recipe::Once { from, to })) => (Route::Once(nanos(*from), nanos(*to)), multiplier, 0.0),
                (_, Some(Recipe::Polly(_))) => (Route::Polly, multiplier, 0.0),
                (_, Some(Recipe::SocketIo)) => (Route::SocketIo, multiplier, 0.0),
                _ => (Route::Geometric, multiplier, 0.0),
            },
        };
        let first = float(nanos(settings.base()));
        let cap = match settings.cap {
            Some(cap) => nanos(cap),
            None => crate::instant::LONGEST_NANOS,
        };
        let draw = match (settings.jitter(), settings.backoff, profile) {
            // A zero backoff draws nothing, so it takes the formula that costs least.
            (_, Backoff::Zero, _) | (Jitter::Full | Jitter::Decorrelated, ..) => Draw::Full,
            (Jitter::None, ..) => Draw::None,
            (Jitter::Equal, ..) => Draw::Equal,
            (Jitter::Factor(share), ..) => Draw::Factor(share.as_f64()),
            (Jitter::Added(length), ..) => Draw::Added(nanos(length)),
            (Jitter::Profile(_), _, Some(Recipe::Band(band) | Recipe::Polly(band))) => Draw::Band(band),
            (Jitter::Profile(_), ..) => Draw::Full,
        };
        let (capped, unit) = match (draw, profile) {
            (Draw::Band(band), _) => (band.capped, band.steps.nanos()),
            // Without a cap there is nothing to apply last, and forecasts stay exact.
            (Draw::Added(_), _) if settings.cap.is_some() => (Capped::Last, 0),
            (_, Some(Recipe::Decorrelated | Recipe::Once { .. } | Recipe::SocketIo)) => (Capped::Last, 0),
            _ => (Capped::First, 0),
        };
        let last_cap = if matches!(capped, Capped::First) { u64::MAX } else { cap };
        let shape = Shape { route, draw, floor: nanos(settings.floor), last_cap, unit };
        Self {
            starts_immediately: settings.spread.is_zero() && settings.max_elapsed.is_none(),
            allows_retries: !matches!(settings.max_attempts, Some(1)),
            is_plain: matches!(
                shape,
                Shape { route: Route::Geometric, draw: Draw::Full, floor: 0, last_cap: u64::MAX, unit: 0 }
            ),
            is_special: profile.is_some() || matches!(draw, Draw::Added(_)),
            shape,
            first,
            multiplier,
            step,
            cap: float(if matches!(capped, Capped::Last) { crate::instant::LONGEST_NANOS } else { cap }),
            throttled: share_of(settings.throttled_base(), first),
            local: share_of(settings.local_base(), first),
        }
    }
}

/// Returns `base / first`; 1 if `first` is 0.
const fn share_of(base: Duration, first: f64) -> f64 {
    if first > 0.0 { float(nanos(base)) / first } else { 1.0 }
}

/// Returns the largest `f64` that is not above `nanos`: a converted bound must stay a bound. Exact below 104 days.
pub(crate) const fn float(nanos: u64) -> f64 {
    let nearest = nanos as f64;
    if nearest as u64 > nanos { f64::from_bits(nearest.to_bits() - 1) } else { nearest }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_starts_immediately_without_spread_and_time_limit() {
        let plain = Policy::DEFAULT.to_builder();
        let second = Duration::from_secs(1);
        for (builder, want) in [
            (plain, true),
            (plain.spread(second), false),
            (plain.max_elapsed(second), false),
            (plain.spread(second).max_elapsed(second), false),
        ] {
            assert_eq!(builder.build().unwrap().starts_immediately(), want, "{builder:?}");
        }
    }

    #[test]
    fn only_a_limit_of_one_attempt_means_no_retry() {
        let plain = Policy::DEFAULT.to_builder();
        for (builder, want) in [
            (plain, true),
            (plain.max_attempts(2), true),
            (plain.max_attempts(1), false),
            (plain.unlimited_attempts(), true),
        ] {
            assert_eq!(builder.build().unwrap().allows_retries(), want, "{builder:?}");
        }
    }
}
