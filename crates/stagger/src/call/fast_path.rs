//! The first attempt of a call that nothing holds, rejects or limits: unless it fails or is pending, the call needs no
//! state.
//!
//! Only the start of the call is stored before the operation runs, and only if the output has the elapsed time. The
//! first failure makes up for what was skipped. A retrier knows its quiet period by its type, so that the question
//! whether it holds calls costs one load and no virtual call.

use stagger_core::Outcome;
use stagger_core::guard::{BudgetPermit, LimiterPermit, Permits};
use stagger_core::machine::RetryState;

use super::machine::{Call, NESTED, Phase};
use super::options::Options;
use super::output::{Ended, Finish};
use super::permits::PermitSlot as _;
use crate::retrier::event::Listen;
use crate::retrier::limits::IsLast;
use crate::time::Clock;

/// What the first attempt needs of a call on the fast path, besides its options.
#[derive(Debug)]
pub(crate) struct FastPath {
    /// Whether there is a limiter, which is told of the outcome.
    is_limited: bool,
    /// The permit of the quiet period, which need not be settled. An open pacer gives none that it needs.
    quiet: LimiterPermit,
}

impl FastPath {
    /// Nothing: the call has no guard.
    pub(crate) const UNGUARDED: Self = Self { is_limited: false, quiet: LimiterPermit::NONE };

    const fn limited(quiet: LimiterPermit) -> Self {
        Self { is_limited: true, quiet }
    }
}

impl<X: Options, C: Clock + Clone> Call<X, C> {
    /// Starts a call on the fast path: reads the clock if an option needs it. `None` if the first attempt cannot be
    /// made on it, because something could reject or limit the attempt, because a limiter holds calls, or because there
    /// is a listener. [`leave_fast_path`](Self::leave_fast_path) makes up for the skipped steps.
    #[inline]
    pub(crate) fn enter_fast_path<L: Listen>(&mut self) -> Option<FastPath> {
        if !self.policy().starts_immediately() {
            return None;
        }
        if X::PLAIN {
            return Some(FastPath::UNGUARDED);
        }
        if self.has_limit_or_listener::<L>() {
            return None;
        }
        let path = match self.options.lone_quiet() {
            Some(quiet) => FastPath::limited(quiet.admit_if_open()?),
            None if self.options.is_unguarded() => FastPath::UNGUARDED,
            None if self.options.guards().has_only_limiters() => self.limited_path()?,
            None => return None,
        };
        self.start_fast_path();
        Some(path)
    }

    /// Starts a call on the fast path like [`enter_fast_path`](Self::enter_fast_path) if it has no guards, and returns
    /// whether it did.
    #[inline]
    pub(crate) fn enter_unguarded_fast_path<L: Listen>(&mut self) -> bool {
        let enters =
            !self.has_limit_or_listener::<L>() && self.options.is_unguarded() && self.policy().starts_immediately();
        if enters {
            self.start_fast_path();
        }
        enters
    }

    #[inline]
    fn has_limit_or_listener<L: Listen>(&self) -> bool {
        L::LISTENS
            || self.options.deadline().is_some()
            || self.options.timeout(IsLast::No).is_some()
            || self.has_listeners()
    }

    /// Asks limiters of any type.
    #[inline(never)]
    fn limited_path(&self) -> Option<FastPath> {
        let (_, quiet) = self.options.guards().admit_if_open()?.into_waiting();
        Some(FastPath::limited(quiet))
    }

    #[inline]
    fn start_fast_path(&mut self) {
        if self.options.is_timed() {
            self.state = RetryState::started(self.clock.now());
        }
    }

    /// Ends a call that succeeded on the fast path.
    #[inline]
    pub(crate) fn fast_success<M: Finish<T, E>, T, E>(&mut self, path: FastPath, value: T) -> M::Output {
        self.phase = Phase::Ended;
        if !X::PLAIN && path.is_limited {
            match self.options.lone_quiet() {
                Some(quiet) => {
                    let clock = &self.clock;
                    quiet.record_success(path.quiet, self.state.start(), || clock.now());
                }
                None => self.tell_limiters(path),
            }
        }
        M::success(value, || Ended { attempts: 1, elapsed: self.elapsed() })
    }

    #[inline(never)]
    fn tell_limiters(&self, path: FastPath) {
        let guards = self.options.guards();
        let clock = &self.clock;
        guards.settle_after(path.into_permits(), &Outcome::Success, self.state.start(), || clock.now());
    }

    /// Catches up on the skipped start: the first attempt was made on the fast path, and is pending or has failed.
    pub(crate) fn leave_fast_path(&mut self, path: FastPath, is_nested: bool) {
        if is_nested {
            self.flags |= NESTED;
        }
        if path.is_limited {
            self.permits.add_turn(path.into_permits());
        }
        // There is no guard or deadline that could reject the attempt.
        let _ = self.begin();
    }
}

impl FastPath {
    fn into_permits(self) -> Permits {
        Permits::from_waiting(BudgetPermit::NONE, self.quiet)
    }
}
