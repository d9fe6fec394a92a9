use core::time::Duration;

use super::{Policy, PolicyError};
use crate::backoff::DelayList;
use crate::instant::nanos;
use crate::{HintMode, Jitter, Ratio, schedule::Backoff};

/// The settings of a policy before they are checked.
///
/// Every setter takes the builder and gives it back, and none can fail, so that a policy can be a `const`;
/// [`build`](Self::build) reports everything that is wrong at once.
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use = "a builder does nothing until `build`"]
pub struct PolicyBuilder {
    pub(super) settings: Settings,
    /// A setting that the backoff has not was set: what the settings themselves cannot show any more.
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

/// What `max_hint` is unless it is set.
pub(crate) const DEFAULT_MAX_HINT: Duration = Duration::from_secs(300);
/// What `max_attempts` is unless it is set.
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
    /// The form that equal policies have in common: the jitter is told, and no length is longer than the core computes
    /// with, so that what is printed and read again is the same policy.
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

/// The length that the core computes with.
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
    /// A backoff without a cap, with every other setting at its default.
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
            // What does not fit is as wrong as nothing, and one problem says so of both.
            None => Self::new(Backoff::List(DelayList::EMPTY)),
        }
    }

    /// The ceiling of the first retry, for exponential, linear and constant backoff.
    pub const fn base(mut self, new: Duration) -> Self {
        match &mut self.settings.backoff {
            Backoff::Constant { delay } => *delay = new,
            Backoff::Linear { base, .. } | Backoff::Exponential { base, .. } => *base = new,
            Backoff::Zero | Backoff::List(_) | Backoff::Stop => self.misplaced = true,
        }
        self
    }

    /// The limit of every computed delay. Hints and spread are not computed delays.
    pub const fn cap(mut self, cap: Duration) -> Self {
        self.settings.cap = Some(cap);
        self
    }

    /// No limit to the computed delays. With base 100 ms and multiplier 2 the tenth retry then waits up to 51 s, the
    /// twentieth up to 15 hours.
    pub const fn uncapped(mut self) -> Self {
        self.settings.cap = None;
        self
    }

    /// The least delay that is drawn: the interval of a draw is raised to it, and collapses to it where its upper end
    /// is lower. Default 0.
    pub const fn floor(mut self, floor: Duration) -> Self {
        self.settings.floor = floor;
        self
    }

    /// What each further retry multiplies the ceiling by, for exponential backoff. Finite, at least 1; default 2.
    pub const fn multiplier(mut self, new: f64) -> Self {
        match &mut self.settings.backoff {
            Backoff::Exponential { multiplier, .. } => *multiplier = new,
            _ => self.misplaced = true,
        }
        self
    }

    /// What each further retry adds to the ceiling, for linear backoff.
    pub const fn step(mut self, new: Duration) -> Self {
        match &mut self.settings.backoff {
            Backoff::Linear { step, .. } => *step = new,
            _ => self.misplaced = true,
        }
        self
    }

    /// How a delay is drawn from its ceiling. Default: full for exponential and linear, equal for constant and lists.
    pub const fn jitter(mut self, jitter: Jitter) -> Self {
        self.settings.jitter = Some(jitter);
        self
    }

    /// The longest wait before the first action of an episode: attempt 1 of a call, the first reconnect after a drop;
    /// uniform on `[0, spread]`. Default 0. It counts in elapsed.
    ///
    /// Backoff cannot do this job: clients that all lose their connection in the same instant come back within one
    /// base, however well it is jittered. A fleet of N clients before a server that takes C a second wants N / C.
    pub const fn spread(mut self, spread: Duration) -> Self {
        self.settings.spread = spread;
        self
    }

    /// How many attempts are made at most, the first included. At least 1, which means no retry; default 4.
    pub const fn max_attempts(mut self, attempts: u32) -> Self {
        self.settings.max_attempts = Some(attempts);
        self
    }

    /// No limit to the number of attempts.
    pub const fn unlimited_attempts(mut self) -> Self {
        self.settings.max_attempts = None;
        self
    }

    /// No retry starts later than this after the start of the call, on a monotonic clock, the attempts' own time and
    /// the coming delay included: the call stops when `elapsed + delay > max_elapsed`. It interrupts no attempt.
    /// Default: no limit. Zero is not "no limit": it allows only what takes no time.
    pub const fn max_elapsed(mut self, limit: Duration) -> Self {
        self.settings.max_elapsed = Some(limit);
        self
    }

    /// No limit of time.
    pub const fn unlimited_elapsed(mut self) -> Self {
        self.settings.max_elapsed = None;
        self
    }

    /// The longest hint of a server that is followed; a longer one stops the call. Default 5 minutes.
    pub const fn max_hint(mut self, longest: Duration) -> Self {
        self.settings.max_hint = Some(longest);
        self
    }

    /// Every hint is followed, however long.
    pub const fn unlimited_hint(mut self) -> Self {
        self.settings.max_hint = None;
        self
    }

    /// What a hint does to the delay. Default [`HintMode::AtLeast`].
    pub const fn hint_mode(mut self, mode: HintMode) -> Self {
        self.settings.hint_mode = mode;
        self
    }

    /// The share of a hint over which callers are spread at least, with [`HintMode::AtLeast`]. Default 50 %.
    pub const fn hint_spread(mut self, share: Ratio) -> Self {
        self.settings.hint_spread = Some(share);
        self
    }

    /// The base after the server said that it has too much to do; from `base` to `cap`. Default: `base`.
    pub const fn throttled_base(mut self, base: Duration) -> Self {
        self.settings.throttled_base = Some(base);
        self
    }

    /// The base after our own exhaustion (file descriptors, ports, the connection pool); from `base` to `cap`.
    /// Default: the larger of `base` and `min(10 · base, 1 s)`.
    pub const fn local_base(mut self, base: Duration) -> Self {
        self.settings.local_base = Some(base);
        self
    }

    /// What a connection, or an attempt of a supervised program, must have lived for the count of attempts to start
    /// again. Zero starts again as soon as it is open. Default: none.
    pub const fn stable_after(mut self, lived: Duration) -> Self {
        self.settings.stable_after = Some(lived);
        self
    }

    /// The count of attempts never starts again; for [`ReconnectMachine`](crate::machine::ReconnectMachine): after its own default.
    pub const fn never_stable(mut self) -> Self {
        self.settings.stable_after = None;
        self
    }

    /// Checks the settings and makes the policy.
    ///
    /// # Errors
    /// [`PolicyError`] names every problem at once, with its numbers and how to mend it.
    pub const fn build(self) -> Result<Policy, PolicyError> {
        let error = PolicyError::of(&self);
        if error.is_none() { Ok(Policy::of_checked(self.settings)) } else { Err(error) }
    }

    /// What `policy!` calls in a constant, where a panic is a compiler's message.
    #[doc(hidden)]
    #[must_use]
    pub const fn build_or_fail_to_compile(self) -> Policy {
        match self.build() {
            Ok(policy) => policy,
            Err(error) => panic!("{}", error.message().as_str()),
        }
    }
}
