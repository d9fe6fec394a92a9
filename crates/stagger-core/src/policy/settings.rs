//! The policy: its checked settings, which are plain data, and what follows from them.

use core::num::NonZeroU32;
use core::time::Duration;

use super::{Backoff, Capped, Curve, HintMode, Jitter, Memory};
use crate::numbers::instant::{LONGEST_NANOS, nanos};
use crate::numbers::ratio::Ratio;

/// The settings by which a call is retried: plain data, checked once, shared by every call, simulation and forecast.
///
/// Create one with a constructor, refine it with the setters of [`PolicyBuilder`](crate::PolicyBuilder), and check it
/// with [`build`](crate::PolicyBuilder::build), which reports every problem at once. A policy that was built is valid.
/// It reads no clock and draws no random number: [`RetryMachine`](crate::machine::RetryMachine) and
/// [`Schedule`](crate::schedule::Schedule) receive both as arguments.
///
/// A policy has no timeout of an attempt. It says when to retry; a timeout ends an attempt without an error of the
/// operation, and so changes the error type of the call. It is a setting of the driver.
///
/// The default is `exponential base=100ms cap=30s multiplier=2 jitter=full max-attempts=4 max-hint=30s`.
///
/// | setting | default | meaning |
/// |---|---|---|
/// | `base`, `cap`, `multiplier`, `step` | 100 ms, 30 s, 2, `base` | the ceilings, see [`Backoff`] |
/// | `range` | | from where uniform backoff draws its delays |
/// | `floor` | 0 | no delay is drawn below it |
/// | `jitter` | full; equal for constant and list | how a delay is drawn from its ceiling, see [`Jitter`] |
/// | `spread` | 0 | a uniform wait before the first action of an episode |
/// | `max_attempts` | 4 | the first call counts |
/// | `max_elapsed` | none | no retry starts later than this after the start of the call |
/// | `max_hint` | 5 min; in [`Policy::DEFAULT`] 30 s | a server's hint above it stops the call |
/// | `hint_mode`, `hint_spread` | `at-least`, 50 % | what a hint does to the delay, see [`HintMode`] |
/// | `throttled_base` | `base` | base after the server reported that it is overloaded |
/// | `local_base` | the larger of `base` and `min(10 · base, 1 s)` | base after the client ran out of a resource |
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
    pub(crate) settings: PolicySettings,
}

impl Policy {
    /// Returns how the ceilings grow.
    #[must_use]
    pub const fn backoff(&self) -> &Backoff {
        &self.settings.backoff
    }

    /// Returns the ceiling of the first retry: the end of the range of a uniform backoff, and zero for `zero` and
    /// `stop`.
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
        self.settings.throttled_base()
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

    pub(crate) const fn of_checked(settings: PolicySettings) -> Self {
        let settings = settings.canonical();
        Self { curve: Curve::of(&settings), settings }
    }

    /// Returns the cap that is applied after the draw, in nanoseconds; `u64::MAX` if it is applied before.
    pub(crate) const fn last_cap(&self) -> u64 {
        match (self.settings.capped(), self.settings.cap) {
            (Capped::First, _) => u64::MAX,
            (_, Some(cap)) => nanos(cap),
            (_, None) => LONGEST_NANOS,
        }
    }

    /// Returns what the delay of a retry depends on, apart from its number.
    pub(crate) const fn memory(&self) -> Memory {
        match (self.settings.jitter(), &self.settings.backoff) {
            (Jitter::Decorrelated, _) => Memory::Decorrelated,
            (Jitter::Profile(jitter), Backoff::Exponential { .. }) => jitter.0.memory,
            _ => Memory::None,
        }
    }
}

/// The settings of a policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct PolicySettings {
    pub(crate) backoff: Backoff,
    pub(crate) cap: Option<Duration>,
    pub(crate) floor: Duration,
    /// `None`: the default of the backoff.
    pub(crate) jitter: Option<Jitter>,
    pub(crate) spread: Duration,
    pub(crate) max_attempts: Option<u32>,
    pub(crate) max_elapsed: Option<Duration>,
    pub(crate) max_hint: Option<Duration>,
    pub(crate) hint_mode: HintMode,
    pub(crate) hint_spread: Option<Ratio>,
    pub(crate) throttled_base: Option<Duration>,
    pub(crate) local_base: Option<Duration>,
    pub(crate) stable_after: Option<Duration>,
    pub(super) given: Given,
}

/// Which lengths were given, by a user or in code. The others are those of a default or a profile.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given {
    pub(super) base: bool,
    pub(super) step: bool,
    pub(super) cap: bool,
    pub(super) throttled_base: bool,
    pub(super) local_base: bool,
}

impl Given {
    pub(super) const NONE: Self =
        Self { base: false, step: false, cap: false, throttled_base: false, local_base: false };
}

/// Policies with the same settings are equal, whether these were given or are defaults.
impl PartialEq for Given {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The default of `max_hint`.
pub(crate) const DEFAULT_MAX_HINT: Duration = Duration::from_secs(300);
/// The default of `max_attempts`.
pub(crate) const DEFAULT_MAX_ATTEMPTS: u32 = 4;

impl PolicySettings {
    pub(crate) const fn base(&self) -> Duration {
        match self.backoff {
            Backoff::Constant { delay: base }
            | Backoff::Uniform { max: base, .. }
            | Backoff::Linear { base, .. }
            | Backoff::Exponential { base, .. } => base,
            Backoff::List(list) => Duration::from_nanos(list.nanos(1)),
            Backoff::Zero | Backoff::Stop => Duration::ZERO,
        }
    }

    pub(crate) const fn jitter(&self) -> Jitter {
        match (self.jitter, &self.backoff) {
            (Some(jitter), _) => jitter,
            (None, Backoff::Zero | Backoff::Stop) => Jitter::None,
            (None, Backoff::Constant { .. } | Backoff::List(_)) => Jitter::Equal,
            (None, Backoff::Uniform { .. } | Backoff::Linear { .. } | Backoff::Exponential { .. }) => Jitter::Full,
        }
    }

    pub(crate) const fn throttled_base(&self) -> Duration {
        match self.throttled_base {
            Some(base) => base,
            None => self.base(),
        }
    }

    pub(crate) const fn local_base(&self) -> Duration {
        const SECOND: u64 = 1_000_000_000;
        match self.local_base {
            Some(base) => base,
            None => {
                let base = nanos(self.base());
                Duration::from_nanos(longer(base, shorter(base.saturating_mul(10), SECOND)))
            }
        }
    }

    /// Returns the cap in nanoseconds; the longest length without one.
    pub(super) const fn longest_delay(&self) -> u64 {
        match self.cap {
            Some(cap) => nanos(cap),
            None => u64::MAX,
        }
    }

    /// Returns when the cap is applied.
    pub(super) const fn capped(&self) -> Capped {
        match self.jitter() {
            Jitter::Profile(jitter) => jitter.0.capped,
            // Without a cap there is nothing to apply last, and forecasts stay exact.
            Jitter::Added(_) if self.cap.is_some() => Capped::Last,
            _ => Capped::First,
        }
    }

    pub(super) const fn is_decorrelated(&self) -> bool {
        match self.jitter() {
            Jitter::Decorrelated => true,
            Jitter::Profile(jitter) => matches!(jitter.0.memory, Memory::Decorrelated),
            _ => false,
        }
    }

    /// Returns the form that equal policies share: the jitter is explicit, and no length is longer than the core
    /// computes with. So a policy that is printed and parsed is equal to itself.
    pub(super) const fn canonical(mut self) -> Self {
        self.jitter = Some(match self.jitter() {
            Jitter::Added(length) => Jitter::Added(computable(length)),
            jitter => jitter,
        });
        self.backoff = match self.backoff {
            Backoff::Constant { delay } => Backoff::Constant { delay: computable(delay) },
            Backoff::Uniform { min, max } => Backoff::Uniform { min: computable(min), max: computable(max) },
            Backoff::Linear { base, step } => Backoff::Linear { base: computable(base), step: computable(step) },
            Backoff::Exponential { base, multiplier } => Backoff::Exponential { base: computable(base), multiplier },
            other => other,
        };
        self.hint_mode = match self.hint_mode {
            HintMode::Clamp(above) => HintMode::Clamp(computable(above)),
            other => other,
        };
        self.floor = computable(self.floor);
        self.spread = computable(self.spread);
        self.cap = computable_or_none(self.cap);
        self.max_elapsed = computable_or_none(self.max_elapsed);
        self.max_hint = computable_or_none(self.max_hint);
        self.throttled_base = computable_or_none(self.throttled_base);
        self.local_base = computable_or_none(self.local_base);
        self.stable_after = computable_or_none(self.stable_after);
        self
    }
}

pub(super) const fn longer(a: u64, b: u64) -> u64 {
    if a < b { b } else { a }
}

pub(super) const fn shorter(a: u64, b: u64) -> u64 {
    if b < a { b } else { a }
}

/// Returns the length that the core computes with.
const fn computable(length: Duration) -> Duration {
    Duration::from_nanos(nanos(length))
}

const fn computable_or_none(length: Option<Duration>) -> Option<Duration> {
    match length {
        Some(length) => Some(computable(length)),
        None => None,
    }
}
