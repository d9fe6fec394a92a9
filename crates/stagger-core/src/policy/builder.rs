use core::time::Duration;

use super::{Policy, PolicyError};
use crate::backoff::DelayList;
use crate::instant::nanos;
use crate::{HintMode, Jitter, Ratio, schedule::Backoff};

/// Builds a [`Policy`]: its settings before they are checked.
///
/// Every setter takes and returns the builder, and none can fail, so that a policy can be a `const`;
/// [`build`](Self::build) reports every problem at once.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use = "a builder does nothing until `build`"]
pub struct PolicyBuilder {
    pub(super) settings: Settings,
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
}

/// The default of `max_hint`.
pub(crate) const DEFAULT_MAX_HINT: Duration = Duration::from_secs(300);
/// The default of `max_attempts`.
pub(crate) const DEFAULT_MAX_ATTEMPTS: u32 = 4;

impl Settings {
    pub(crate) const fn base(&self) -> Duration {
        match self.backoff {
            Backoff::Constant { delay } => delay,
            Backoff::Linear { base, .. } | Backoff::Exponential { base, .. } => base,
            Backoff::List(list) => Duration::from_nanos(list.nanos(1)),
            Backoff::Zero | Backoff::Stop => Duration::ZERO,
        }
    }

    pub(crate) const fn jitter(&self) -> Jitter {
        match (self.jitter, &self.backoff) {
            (Some(jitter), _) => jitter,
            (None, Backoff::Zero | Backoff::Stop) => Jitter::None,
            (None, Backoff::Constant { .. } | Backoff::List(_)) => Jitter::Equal,
            (None, Backoff::Linear { .. } | Backoff::Exponential { .. }) => Jitter::Full,
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
                let longer = if base < SECOND / 10 { base * 10 } else { SECOND };
                Duration::from_nanos(if longer > base { longer } else { base })
            }
        }
    }
}

impl Settings {
    /// Returns the form that equal policies share: the jitter is explicit, and no length is longer than the core
    /// computes with. So a policy that is printed and parsed is equal to itself.
    pub(super) const fn canonical(mut self) -> Self {
        self.jitter = Some(match self.jitter() {
            Jitter::Added(length) => Jitter::Added(computable(length)),
            jitter => jitter,
        });
        self.backoff = match self.backoff {
            Backoff::Constant { delay } => Backoff::Constant { delay: computable(delay) },
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
        })
    }

    pub(super) const fn of_settings(settings: Settings) -> Self {
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
    pub const fn base(mut self, new: Duration) -> Self {
        match &mut self.settings.backoff {
            Backoff::Constant { delay } => *delay = new,
            Backoff::Linear { base, .. } | Backoff::Exponential { base, .. } => *base = new,
            Backoff::Zero | Backoff::List(_) | Backoff::Stop => self.misplaced = true,
        }
        self
    }

    /// Sets the limit of every computed delay. Hints and spread are not computed delays.
    pub const fn cap(mut self, cap: Duration) -> Self {
        self.settings.cap = Some(cap);
        self
    }

    /// Removes the limit of computed delays. With base 100 ms and multiplier 2 the tenth retry then waits up to 51 s,
    /// the twentieth up to 15 hours.
    pub const fn uncapped(mut self) -> Self {
        self.settings.cap = None;
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

    /// Sets the amount that each further retry adds to the ceiling, for linear backoff.
    pub const fn step(mut self, new: Duration) -> Self {
        match &mut self.settings.backoff {
            Backoff::Linear { step, .. } => *step = new,
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

    /// Sets the maximum number of attempts, the first included. At least 1, which means no retry; default 4.
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
        self
    }

    /// Sets the base after the client ran out of a resource of its own (file descriptors, ports, the connection pool);
    /// from `base` to `cap`. Default: the larger of `base` and `min(10 · base, 1 s)`.
    pub const fn local_base(mut self, base: Duration) -> Self {
        self.settings.local_base = Some(base);
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
        let error = PolicyError::of(&self);
        if error.is_none() { Ok(Policy::of_checked(self.settings)) } else { Err(error) }
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
