use core::time::Duration;

use super::{Policy, PolicyError};
use crate::numbers::instant::nanos;
use crate::numbers::ratio::Ratio;
use crate::policy::backoff::{Backoff, DelayList};
use crate::policy::hint_mode::HintMode;
use crate::policy::jitter::Jitter;

/// Builds a [`Policy`]: its settings before they are checked.
///
/// Every setter takes and returns the builder, and none can fail, so that a policy can be a `const`;
/// [`build`](Self::build) reports every problem at once.
///
/// A value that was not given yields to one that was. [`Policy::DEFAULT`] and every [profile](crate::profile) give no
/// value, and setters and the arguments of constructors give theirs: `Policy::DEFAULT.to_builder().base(one_minute)`
/// raises the cap of 30 s to a minute. [`build`](Self::build) applies these rules, and only where values contradict:
///
/// - A cap that was not given is raised to the longest of the given `base`, `throttled_base` and `local_base`.
/// - A base that was not given is lowered to the given cap.
/// - A `throttled_base` or `local_base` of a profile moves into `base..=cap`.
/// - A `step` that was not given is the base.
/// - With decorrelated jitter, which draws nothing where cap and base are equal, the cap is three times the base
///   instead, and the base a third of the cap.
///
/// If both values were given, the contradiction is a [`PolicyError`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use = "a builder does nothing until `build`"]
pub struct PolicyBuilder {
    pub(crate) settings: Settings,
    /// A setting that the backoff does not have was set, which the settings themselves cannot show.
    pub(super) misplaced: bool,
}

/// The settings of a policy.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Settings {
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
    base: bool,
    step: bool,
    cap: bool,
    throttled_base: bool,
    local_base: bool,
}

impl Given {
    const NONE: Self = Self { base: false, step: false, cap: false, throttled_base: false, local_base: false };
}

/// Policies with the same settings are equal, whoever gave them.
impl PartialEq for Given {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

/// The default of `max_hint`.
pub(crate) const DEFAULT_MAX_HINT: Duration = Duration::from_secs(300);
/// The default of `max_attempts`.
pub(crate) const DEFAULT_MAX_ATTEMPTS: u32 = 4;

impl Settings {
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
}

impl Settings {
    /// Returns the settings in which every length that was not given has yielded to those that were, by the rules of
    /// [`PolicyBuilder`].
    const fn resolved(mut self) -> Self {
        let given = self.given;
        let (base, cap) = (nanos(self.base()), self.longest_delay());
        // Decorrelated jitter draws from `[base, 3 · base]` at first, so equal lengths would leave nothing to draw.
        let decorrelates = self.is_decorrelated();
        let room = if decorrelates { 3 } else { 1 };
        let contradicts = cap < base || (decorrelates && cap == base);
        // A cap of zero is an error of its own.
        if contradicts && given.cap && !given.base && cap > 0 {
            self.set_base(Duration::from_nanos(cap / room));
        }
        if self.cap.is_some() && !given.cap {
            let mut least = if contradicts && given.base { base.saturating_mul(room) } else { cap };
            if given.throttled_base {
                least = longer(least, nanos(self.throttled_base()));
            }
            if given.local_base {
                least = longer(least, nanos(self.local_base()));
            }
            self.cap = Some(Duration::from_nanos(least));
        }
        let (base, cap) = (nanos(self.base()), self.longest_delay());
        if let (Backoff::Linear { step, .. }, false) = (&mut self.backoff, given.step) {
            *step = Duration::from_nanos(base);
        }
        if let (Some(length), false) = (self.throttled_base, given.throttled_base) {
            self.throttled_base = Some(Duration::from_nanos(shorter(longer(nanos(length), base), cap)));
        }
        if let (Some(length), false) = (self.local_base, given.local_base) {
            self.local_base = Some(Duration::from_nanos(shorter(longer(nanos(length), base), cap)));
        }
        self
    }

    /// Returns the cap in nanoseconds; the longest length without one.
    pub(super) const fn longest_delay(&self) -> u64 {
        match self.cap {
            Some(cap) => nanos(cap),
            None => u64::MAX,
        }
    }

    /// Sets the base; returns whether the backoff has one.
    const fn set_base(&mut self, new: Duration) -> bool {
        match &mut self.backoff {
            Backoff::Constant { delay } => *delay = new,
            Backoff::Linear { base, .. } | Backoff::Exponential { base, .. } => *base = new,
            Backoff::Zero | Backoff::Uniform { .. } | Backoff::List(_) | Backoff::Stop => return false,
        }
        true
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

const fn longer(a: u64, b: u64) -> u64 {
    if a < b { b } else { a }
}

const fn shorter(a: u64, b: u64) -> u64 {
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

impl PolicyBuilder {
    /// Creates a builder for a backoff without a cap, with every other setting at its default.
    pub const fn new(backoff: Backoff) -> Self {
        Self::of_settings(Settings {
            backoff,
            cap: None,
            floor: Duration::ZERO,
            jitter: None,
            spread: Duration::ZERO,
            max_attempts: Some(DEFAULT_MAX_ATTEMPTS),
            max_elapsed: None,
            max_hint: Some(DEFAULT_MAX_HINT),
            hint_mode: HintMode::AtLeast,
            hint_spread: None,
            throttled_base: None,
            local_base: None,
            stable_after: None,
            given: Given { base: true, step: true, ..Given::NONE },
        })
    }

    /// Makes every value so far a default, which yields to the values that are set from here on.
    ///
    /// ```
    /// use core::time::Duration;
    /// use stagger_core::Policy;
    ///
    /// let second = Duration::from_secs(1);
    /// let ours = Policy::exponential(second, 30 * second).as_defaults();
    /// assert_eq!(ours.base(60 * second).build()?.cap(), Some(60 * second));
    /// # Ok::<(), stagger_core::PolicyError>(())
    /// ```
    pub const fn as_defaults(mut self) -> Self {
        self.settings.given = Given::NONE;
        self
    }

    pub(crate) const fn of_settings(settings: Settings) -> Self {
        Self { settings, misplaced: false }
    }

    pub(super) const fn of_list(delays: &[Duration]) -> Self {
        match DelayList::new(delays) {
            Some(list) => Self::new(Backoff::List(list)),
            // A list that does not fit is reported like an empty one; one problem describes both.
            None => Self::new(Backoff::List(DelayList::EMPTY)),
        }
    }

    /// Sets the ceiling of the first retry, for exponential, linear and constant backoff.
    pub const fn base(mut self, base: Duration) -> Self {
        self.misplaced |= !self.settings.set_base(base);
        self.settings.given.base = true;
        self
    }

    /// Sets the limit of every computed delay. Hints and spread are not computed delays.
    pub const fn cap(mut self, cap: Duration) -> Self {
        self.settings.cap = Some(cap);
        self.settings.given.cap = true;
        self
    }

    /// Removes the limit of computed delays. With base 100 ms and multiplier 2 the tenth retry then waits up to 51 s,
    /// the twentieth up to 15 hours.
    pub const fn uncapped(mut self) -> Self {
        self.settings.cap = None;
        self.settings.given.cap = true;
        self
    }

    /// Sets the shortest delay that is drawn: the interval of a draw is raised to it, and collapses to it where its
    /// upper end is lower. Default 0.
    pub const fn floor(mut self, floor: Duration) -> Self {
        self.settings.floor = floor;
        self
    }

    /// Sets the factor by which each further retry multiplies the ceiling, for exponential backoff. Finite, at least 1;
    /// default 2.
    pub const fn multiplier(mut self, new: f64) -> Self {
        match &mut self.settings.backoff {
            Backoff::Exponential { multiplier, .. } => *multiplier = new,
            _ => self.misplaced = true,
        }
        self
    }

    /// Sets the amount that each further retry adds to the ceiling, for linear backoff. Default: `base`.
    pub const fn step(mut self, new: Duration) -> Self {
        match &mut self.settings.backoff {
            Backoff::Linear { step, .. } => *step = new,
            _ => self.misplaced = true,
        }
        self.settings.given.step = true;
        self
    }

    /// Sets the shortest and the longest delay, for uniform backoff.
    pub const fn range(mut self, a: Duration, b: Duration) -> Self {
        match &mut self.settings.backoff {
            Backoff::Uniform { min, max } => (*min, *max) = (a, b),
            _ => self.misplaced = true,
        }
        self
    }

    /// Sets how a delay is drawn from its ceiling. Default: full for exponential and linear backoff, equal for constant
    /// backoff and lists.
    pub const fn jitter(mut self, jitter: Jitter) -> Self {
        self.settings.jitter = Some(jitter);
        self
    }

    /// Sets the longest wait before the first action of an episode: attempt 1 of a call, the first reconnect after a
    /// drop; uniform on `[0, spread]`. Default 0. It counts as elapsed time.
    ///
    /// Backoff cannot replace it: clients that all lose their connection at the same instant come back within one base,
    /// however well it is jittered. A fleet of N clients before a server that takes C a second needs N / C.
    pub const fn spread(mut self, spread: Duration) -> Self {
        self.settings.spread = spread;
        self
    }

    /// Sets the maximum number of attempts, the first included. At least 1, which means no retry; default 4. For a
    /// connection that is kept up, the loss counts as the first, unless there is a [spread](Self::spread) before it.
    pub const fn max_attempts(mut self, attempts: u32) -> Self {
        self.settings.max_attempts = Some(attempts);
        self
    }

    /// Removes the limit of attempts.
    pub const fn unlimited_attempts(mut self) -> Self {
        self.settings.max_attempts = None;
        self
    }

    /// Sets how long after the start of the call a retry may start, on a monotonic clock. The time of the attempts and
    /// the coming delay count: the call stops when `elapsed + delay > max_elapsed`. The limit interrupts no attempt.
    /// Default: no limit. Zero does not mean "no limit": it allows only what takes no time.
    pub const fn max_elapsed(mut self, limit: Duration) -> Self {
        self.settings.max_elapsed = Some(limit);
        self
    }

    /// Removes the time limit.
    pub const fn unlimited_elapsed(mut self) -> Self {
        self.settings.max_elapsed = None;
        self
    }

    /// Sets the longest server hint that is followed; a longer one stops the call. Default 5 minutes.
    ///
    /// Short hints need no limit: [exact ones](crate::ServerHint#exact-hints) shorten three waits in a row at
    /// most, and clients are spread above all others.
    pub const fn max_hint(mut self, longest: Duration) -> Self {
        self.settings.max_hint = Some(longest);
        self
    }

    /// Follows every hint, however long.
    pub const fn unlimited_hint(mut self) -> Self {
        self.settings.max_hint = None;
        self
    }

    /// Sets what a hint does to the delay. Default [`HintMode::AtLeast`].
    pub const fn hint_mode(mut self, mode: HintMode) -> Self {
        self.settings.hint_mode = mode;
        self
    }

    /// Sets the share of a hint over which clients are spread at least, with [`HintMode::AtLeast`]. Default 50 %.
    pub const fn hint_spread(mut self, share: Ratio) -> Self {
        self.settings.hint_spread = Some(share);
        self
    }

    /// Sets the base after the server reported that it is overloaded; from `base` to `cap`. Default: `base`.
    pub const fn throttled_base(mut self, base: Duration) -> Self {
        self.settings.throttled_base = Some(base);
        self.settings.given.throttled_base = true;
        self
    }

    /// Sets the base after the client ran out of a resource of its own (file descriptors, ports, the connection pool);
    /// from `base` to `cap`. Default: the larger of `base` and `min(10 · base, 1 s)`.
    pub const fn local_base(mut self, base: Duration) -> Self {
        self.settings.local_base = Some(base);
        self.settings.given.local_base = true;
        self
    }

    /// Sets how long a connection, or an attempt of a supervised program, must have lasted for the attempt count to
    /// restart. With zero it restarts as soon as the connection is open. Default: none.
    pub const fn stable_after(mut self, lived: Duration) -> Self {
        self.settings.stable_after = Some(lived);
        self
    }

    /// Removes `stable_after`: the attempt count never restarts, or, for
    /// [`ReconnectMachine`](crate::machine::ReconnectMachine), by that type's default.
    pub const fn never_stable(mut self) -> Self {
        self.settings.stable_after = None;
        self
    }

    /// Checks the settings and creates the policy.
    ///
    /// # Errors
    /// [`PolicyError`] names every problem at once, with its values and how to fix it.
    pub const fn build(self) -> Result<Policy, PolicyError> {
        let resolved = Self { settings: self.settings.resolved(), ..self };
        let error = PolicyError::of(&resolved);
        if error.is_none() { Ok(Policy::of_checked(resolved.settings)) } else { Err(error) }
    }

    /// Builds the policy in the constant of `policy!`, where a panic is a compiler error.
    #[doc(hidden)]
    #[must_use]
    pub const fn build_or_fail_to_compile(self) -> Policy {
        match self.build() {
            Ok(policy) => policy,
            Err(error) => panic!("{}", error.message().as_str()),
        }
    }
}
