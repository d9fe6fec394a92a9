//! The policy: plain data that says how a call is retried.

pub(crate) mod backoff;
pub(crate) mod builder;
pub(crate) mod curve;
mod error;
pub(crate) mod hint_mode;
pub(crate) mod jitter;
pub(crate) mod macros;
pub(crate) mod profile_jitter;

use core::num::NonZeroU32;
use core::time::Duration;

pub use builder::PolicyBuilder;
pub(crate) use builder::Settings;
pub(crate) use curve::{Curve, Draw, Drawn, Interval, Route, Shape};
pub use error::{PolicyError, PolicyProblem};
pub(crate) use profile_jitter::{Capped, DelayCurve, Formula, Memory, SAMPLE, SAMPLE_SIDE};

use crate::numbers::ratio::Ratio;
use crate::policy::backoff::Backoff;
use crate::policy::hint_mode::HintMode;
use crate::policy::jitter::Jitter;

/// The settings by which a call is retried: plain data, checked once, shared by every call, simulation and forecast.
///
/// Create one with a constructor, refine it with the setters of [`PolicyBuilder`], and check it with
/// [`build`](PolicyBuilder::build), which reports every problem at once. A policy that was built is valid. It reads no
/// clock and draws no random number: [`RetryMachine`](crate::machine::RetryMachine) and
/// [`Schedule`](crate::schedule::Schedule) receive both as arguments.
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

    /// Creates a policy with delays drawn uniformly from `a..=b`, every time.
    ///
    /// The draw is the whole policy: there is no cap, floor or other jitter. After a failure with a base of its own
    /// ([`throttled_base`](PolicyBuilder::throttled_base)), the upper end is that base. As text: `uniform range=1s..5s`,
    /// or `1s..5s`.
    pub const fn uniform(a: Duration, b: Duration) -> PolicyBuilder {
        PolicyBuilder::new(Backoff::Uniform { min: a, max: b })
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

    /// Creates a builder with the settings of this policy, to vary it. Values that were not given, such as those of
    /// [`Policy::DEFAULT`] and of profiles, yield to the values that are set; see [`PolicyBuilder`].
    pub const fn to_builder(&self) -> PolicyBuilder {
        PolicyBuilder::of_settings(self.settings)
    }

    /// Returns how the ceilings grow.
    #[must_use]
    pub const fn backoff(&self) -> &Backoff {
        &self.settings.backoff
    }

    /// Returns the ceiling of the first retry: the end of the range of a uniform backoff, and zero for `zero` and `stop`.
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
    /// The default policy: `exponential base=100ms cap=30s multiplier=2 jitter=full max-attempts=4 max-hint=30s`.
    ///
    /// A server's hint above 30 s stops the call: the policy waits for at most 30 s between attempts, and whoever waits
    /// for the result does not wait for longer because the server says so. With the limit of other policies, 5 minutes,
    /// a server that answers `Retry-After: 299` would keep a call for a quarter of an hour.
    ///
    /// It is for calls whose result a user or another call waits for. The program `stagger` retries commands, which take
    /// longer; its default, with a base of 1 s and 5 attempts, outlasts the restart of a service more often.
    pub const DEFAULT: Self = Self::exponential(Duration::from_millis(100), Duration::from_secs(30))
        .max_hint(Duration::from_secs(30))
        .as_defaults()
        .build_or_fail_to_compile();
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A policy refers to the curve of a profile, which must not take any of these away.
    #[test]
    fn a_policy_is_plain_data_to_threads_and_panics() {
        fn plain<T: Copy + Send + Sync + Unpin + core::panic::UnwindSafe + core::panic::RefUnwindSafe>(_: T) {}
        plain(Policy::DEFAULT);
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
