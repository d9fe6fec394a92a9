//! The builder: the settings of a policy before they are checked, the rules by which they yield, and the checks.

use core::time::Duration;

use super::PolicyProblem::{
    CapBelowBase, Decorrelated, ElapsedBelowBase, FloorAboveCap, FloorUnused, HintSpreadUnused, LocalBase, Misplaced,
    Multiplier, NoAttempt, NothingToCap, NothingToJitter, ProfileJitter, Range, RatioAboveOne, SpreadAboveElapsed,
    ThrottledBase, ZeroBase,
};
use super::settings::{DEFAULT_MAX_ATTEMPTS, DEFAULT_MAX_HINT, Given, PolicySettings, longer, shorter};
use super::{Backoff, DelayList, HintMode, Jitter, Policy, PolicyError, PolicyProblem};
use crate::numbers::instant::nanos;
use crate::numbers::ratio::Ratio;

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
    pub(crate) settings: PolicySettings,
    /// A setting that the backoff does not have was set, which the settings themselves cannot show.
    pub(super) misplaced: bool,
}

impl Policy {
    /// The default policy: `exponential base=100ms cap=30s multiplier=2 jitter=full max-attempts=4 max-hint=30s`.
    ///
    /// A server's hint above 30 s stops the call: the policy waits for at most 30 s between attempts, and a caller
    /// should not wait longer for the result because the server says so. With the limit of other policies, 5 minutes, a
    /// server that answers `Retry-After: 299` would keep a call for a quarter of an hour.
    ///
    /// It is for calls whose result a user or another call waits for. To outlast the restart of a service, set a base
    /// of a second and more attempts. The policy language and the program `stagger` have the same defaults, but for the
    /// limit of hints.
    pub const DEFAULT: Self = Self::exponential(Duration::from_millis(100), Duration::from_secs(30))
        .max_hint(Duration::from_secs(30))
        .as_defaults()
        .build_or_fail_to_compile();

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
    /// ([`throttled_base`](PolicyBuilder::throttled_base)), the upper end is that base. As text:
    /// `uniform range=1s..5s`, or `1s..5s`.
    pub const fn uniform(a: Duration, b: Duration) -> PolicyBuilder {
        PolicyBuilder::new(Backoff::Uniform { min: a, max: b })
    }

    /// Creates exponential backoff with decorrelated jitter, which depends on base and cap only; see
    /// [`Jitter::Decorrelated`].
    pub const fn decorrelated(base: Duration, cap: Duration) -> PolicyBuilder {
        Self::exponential(base, cap).jitter(Jitter::Decorrelated)
    }

    /// Creates a policy with delays of `d/2..=d` for each `d` of a list, of which the last one repeats: a list with
    /// equal jitter.
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
}

impl Default for Policy {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl PolicyBuilder {
    /// Creates a builder for a backoff without a cap, with every other setting at its default.
    pub const fn new(backoff: Backoff) -> Self {
        Self::of_settings(PolicySettings {
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

    pub(crate) const fn of_settings(settings: PolicySettings) -> Self {
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
        let error = resolved.check();
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

    /// Returns every problem of the settings, in the order of [`PolicyProblem`]: for the compiler and the program
    /// alike.
    const fn check(&self) -> PolicyError {
        let settings = &self.settings;
        let jitter = settings.jitter();
        let cap = settings.longest_delay();
        let mut error = self.described();
        let base = error.base;
        let grows = matches!(settings.backoff, Backoff::Linear { .. } | Backoff::Exponential { .. });
        let has_base = grows || matches!(settings.backoff, Backoff::Constant { .. });
        let is_exponential = error.is_exponential;
        let is_uniform = matches!(settings.backoff, Backoff::Uniform { .. });
        let has_delays = !matches!(settings.backoff, Backoff::Zero | Backoff::Stop);
        let multiplier = self.multiplier_or_one();
        // A multiplier that was set to its default cannot be told from one that was not set.
        let decorrelates = is_exponential && multiplier.to_bits() == 2.0_f64.to_bits() && error.floor == 0;
        let jitter_is_wrong = match jitter {
            Jitter::None => is_uniform,
            Jitter::Full => !has_delays,
            _ => is_uniform || !has_delays,
        };
        let needs_growth = matches!(jitter, Jitter::Profile(jitter) if jitter.0.needs_exponential);
        let ignores_floor = is_exponential && matches!(jitter, Jitter::Profile(jitter) if jitter.0.has_own_delays());
        let retries = !matches!(settings.max_attempts, Some(1));
        let least = match jitter {
            Jitter::None | Jitter::Decorrelated | Jitter::Added(_) => base,
            Jitter::Equal => base / 2,
            Jitter::Full | Jitter::Factor(_) | Jitter::Profile(_) => 0,
        };
        let spreads_hints = matches!(settings.hint_mode, HintMode::AtLeast);
        let takes_bases = has_base || is_uniform;
        let throttled_fits = takes_bases && base <= error.throttled_base && error.throttled_base <= cap;
        let local_fits = takes_bases && base <= error.local_base && error.local_base <= cap;
        let found = [
            (NoAttempt, matches!(settings.max_attempts, Some(0))),
            (ZeroBase, has_base && base == 0),
            (CapBelowBase, grows && cap < base),
            (FloorAboveCap, grows && error.floor > cap),
            (FloorUnused, ignores_floor && error.floor > 0),
            (NothingToCap, !grows && (settings.cap.is_some() || !settings.floor.is_zero())),
            (Misplaced, self.misplaced),
            // Written so that NaN fails it.
            (Multiplier, !(multiplier >= 1.0 && multiplier <= f64::MAX)),
            (RatioAboveOne, error.share.is_above_one()),
            (PolicyProblem::List, matches!(settings.backoff, Backoff::List(list) if list.is_empty())),
            (Range, is_uniform && (base == 0 || error.floor > base)),
            (Decorrelated, matches!(jitter, Jitter::Decorrelated) && !decorrelates),
            (ProfileJitter, needs_growth && !is_exponential && has_delays),
            (NothingToJitter, jitter_is_wrong),
            (SpreadAboveElapsed, error.spread > error.max_elapsed),
            (ElapsedBelowBase, retries && (least > error.max_elapsed || error.floor > error.max_elapsed)),
            (HintSpreadUnused, settings.hint_spread.is_some() && !spreads_hints),
            (ThrottledBase, settings.throttled_base.is_some() && !throttled_fits),
            (LocalBase, settings.local_base.is_some() && !local_fits),
        ];
        let mut at = 0;
        while at < found.len() {
            if found[at].1 {
                error.problems |= 1 << found[at].0 as u8;
            }
            at += 1;
        }
        error
    }

    /// Returns the values that messages name, without a problem.
    const fn described(&self) -> PolicyError {
        let settings = &self.settings;
        let jitter = settings.jitter();
        PolicyError {
            problems: 0,
            base: nanos(settings.base()),
            cap: settings.longest_delay(),
            floor: match settings.backoff {
                Backoff::Uniform { min, .. } => nanos(min),
                _ => nanos(settings.floor),
            },
            spread: nanos(settings.spread),
            max_elapsed: match settings.max_elapsed {
                Some(limit) => nanos(limit),
                None => u64::MAX,
            },
            throttled_base: nanos(settings.throttled_base()),
            local_base: nanos(settings.local_base()),
            multiplier: rounded_multiplier(self.multiplier_or_one()),
            share: match (jitter, settings.hint_spread) {
                (Jitter::Factor(share), _) if share.is_above_one() => share,
                (_, Some(share)) => share,
                _ => Ratio::ZERO,
            },
            is_jitter_share: matches!(jitter, Jitter::Factor(share) if share.is_above_one()),
            is_exponential: matches!(settings.backoff, Backoff::Exponential { .. }),
        }
    }

    /// Returns the multiplier; 1 for a backoff that has none.
    const fn multiplier_or_one(&self) -> f64 {
        match self.settings.backoff {
            Backoff::Exponential { multiplier, .. } => multiplier,
            _ => 1.0,
        }
    }
}

/// Returns the multiplier as messages name it. It is below 1 if the setting is.
const fn rounded_multiplier(multiplier: f64) -> f32 {
    let rounded = multiplier as f32;
    if multiplier.is_nan() {
        // Not NaN, so that the derived comparison finds equal errors equal.
        f32::NEG_INFINITY
    } else if multiplier < 1.0 && rounded >= 1.0 {
        BELOW_ONE
    } else {
        rounded
    }
}

/// The largest `f32` below 1.
const BELOW_ONE: f32 = f32::from_bits(0x3f7f_ffff);

impl PolicySettings {
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

    /// Sets the base; returns whether the backoff has one.
    const fn set_base(&mut self, new: Duration) -> bool {
        match &mut self.backoff {
            Backoff::Constant { delay } => *delay = new,
            Backoff::Linear { base, .. } | Backoff::Exponential { base, .. } => *base = new,
            Backoff::Zero | Backoff::Uniform { .. } | Backoff::List(_) | Backoff::Stop => return false,
        }
        true
    }
}

/// The names that the argument of [`policy!`](crate::policy) may use.
#[doc(hidden)]
pub mod units {
    use core::time::Duration;

    /// Creates a length of `n` milliseconds.
    #[must_use]
    pub const fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// Creates a length of `n` seconds.
    #[must_use]
    pub const fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    /// Creates a length of `n` minutes.
    #[must_use]
    pub const fn mins(n: u64) -> Duration {
        Duration::from_secs(n.saturating_mul(60))
    }

    pub use crate::numbers::ratio::Ratio;
    pub use crate::policy::HintMode;
    pub use crate::policy::Jitter;
}

/// Creates a [`Policy`](crate::Policy) at compile time. An invalid policy does not compile, and the compiler's message
/// is that of [`PolicyError`](crate::PolicyError).
///
/// It takes a constructor of [`Policy`](crate::Policy) and setters of [`PolicyBuilder`](crate::PolicyBuilder). Inside
/// it, `ms`, `secs` and `mins` create durations, and `Jitter`, `HintMode` and `Ratio` are in scope.
///
/// ```
/// use stagger_core::{Policy, policy};
///
/// const POLICY: Policy = policy!(exponential(ms(100), secs(10)).jitter(Jitter::Equal).max_attempts(4));
/// ```
///
/// ```compile_fail
/// use stagger_core::{Policy, policy};
///
/// // error: cap 50ms is below base 100ms: raise cap or lower base
/// const POLICY: Policy = policy!(exponential(ms(100), ms(50)));
/// ```
#[macro_export]
macro_rules! policy {
    ($backoff:ident ( $($argument:tt)* ) $($setters:tt)*) => {
        const {
            #[allow(unused_imports)] // Which of them are used is the caller's choice.
            use $crate::units::*;
            $crate::Policy::$backoff($($argument)*) $($setters)* .build_or_fail_to_compile()
        }
    };
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
