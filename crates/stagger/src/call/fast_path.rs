//! The first attempt of a call that nothing limits and nobody listens to: unless a guard holds it, or it fails or is
//! pending, the call needs no state. Its permits are kept beside the attempt.
//!
//! Only the start of the call is stored before the operation runs, and only if the output has the elapsed time. The
//! first failure makes up for what was skipped.

use core::ops::Deref;

use stagger_core::guard::{Guard, Permits};
use stagger_core::machine::{RetryMachine, RetryState};
use stagger_core::{Guards, Instant, NestedRetries, Outcome, StopReason};

use super::machine::{Call, NESTED, Phase};
use super::options::Options;
use super::output::{Ended, Finish};
use super::permits::{GuardSource, PermitSlot, PermitStage};
use super::scope;
use crate::retrier::event::Listen;
use crate::retrier::limits::IsLast;
use crate::time::Clock;

/// The permits of a first attempt on the fast path. Dropping them settles an attempt that does not complete.
pub(crate) struct FirstPermits<'a, G: Deref<Target: Guard>, C: Clock> {
    guards: Guards<'a, G>,
    clock: &'a C,
    /// When the call started, if that was read.
    start: Option<Instant>,
    permits: Permits,
    is_settled: bool,
}

impl<G: Deref<Target: Guard>, C: Clock> FirstPermits<'_, G, C> {
    /// Asks the guards whether the attempt may start. Returns whether it starts on the fast path: not if it has to
    /// wait, nor if it is nested and guarded.
    ///
    /// # Errors
    /// The reason to stop, if a guard rejects it.
    #[inline]
    pub(crate) fn ask(&mut self) -> Result<bool, StopReason> {
        if self.guards.is_unguarded() {
            return Ok(true);
        }
        // What a nested call asks depends on more than its guards.
        if scope::depth() > 0 {
            return Ok(false);
        }
        let (start, clock) = (self.start, self.clock);
        let wait = self.guards.ask_first(&mut self.permits, || match start {
            Some(start) => start,
            None => clock.now(),
        })?;
        self.is_settled = false;
        Ok(wait.is_zero())
    }

    /// Takes the permits out, for the state of the call.
    #[inline]
    pub(crate) fn into_permits(mut self) -> Permits {
        self.is_settled = true;
        Permits::take(&mut self.permits)
    }

    /// Settles the permits of an attempt that succeeded.
    #[inline]
    pub(crate) fn succeeded(mut self) {
        if !self.is_settled {
            self.is_settled = true;
            let clock = self.clock;
            self.guards.settle_after(Permits::take(&mut self.permits), &Outcome::Success, self.start, || clock.now());
        }
    }
}

impl<G: Deref<Target: Guard>, C: Clock> Drop for FirstPermits<'_, G, C> {
    #[inline]
    fn drop(&mut self) {
        if !self.is_settled {
            self.guards.abandon(Permits::take(&mut self.permits), || self.clock.now());
        }
    }
}

/// The permits of a first attempt by the options of its call.
type FirstOf<'a, X, C> = FirstPermits<'a, <<X as Options>::GuardSource as GuardSource>::Guard, C>;

impl<X: Options, C: Clock + Clone> Call<X, C> {
    /// Returns whether the first attempt may be made on the fast path, if no guard objects. Reads the clock if an
    /// option needs it.
    #[inline]
    pub(crate) fn starts_fast<L: Listen>(&mut self) -> bool {
        if !self.policy().starts_immediately() {
            return false;
        }
        if X::PLAIN {
            return true;
        }
        let has_limit_or_listener = L::LISTENS
            || self.options.deadline().is_some()
            || self.options.timeout(IsLast::No).is_some()
            || self.has_listeners();
        if has_limit_or_listener {
            return false;
        }
        if self.options.is_timed() {
            self.state = RetryState::started(self.clock.now());
        }
        true
    }

    /// Returns the permits of the first attempt, none yet: [ask](FirstPermits::ask) for them.
    /// [`leave_fast_path`](Self::leave_fast_path) makes up for the steps that a call on the fast path skips.
    #[inline]
    pub(crate) fn first_permits(&self) -> FirstOf<'_, X, C> {
        let guards = self.options.guards().nested(NestedRetries::Allow);
        let start = if X::PLAIN { None } else { self.state.start() };
        FirstPermits { guards, clock: &self.clock, start, permits: Permits::NONE, is_settled: true }
    }

    /// Keeps the place of a first attempt that a guard lets wait; the call then starts as any other.
    pub(crate) fn keep_place(&mut self, permits: Permits) {
        if permits != Permits::NONE {
            self.permits.put(permits, PermitStage::Waiting, NestedRetries::Allow, &self.options, &self.clock);
        }
    }

    /// Ends a call that succeeded on the fast path.
    #[inline]
    pub(crate) fn fast_success<M: Finish<T, E>, T, E>(&mut self, value: T) -> M::Output {
        self.phase = Phase::Ended;
        M::success(value, || Ended { attempts: 1, elapsed: self.elapsed() })
    }

    /// Catches up on the skipped start: the first attempt was made on the fast path with these permits, and is pending
    /// or has failed.
    pub(crate) fn leave_fast_path(&mut self, is_nested: bool, permits: Permits) {
        if is_nested {
            self.flags |= NESTED;
        }
        let clock = &self.clock;
        // Without guards and a deadline, nothing rejects the attempt, which is made already.
        let _ = RetryMachine::new(self.options.policy(), &mut self.state, self.seed).begin(
            Permits::NONE,
            || clock.now(),
            &Guards::none(),
        );
        self.permits.put(permits, PermitStage::Attempting, NestedRetries::Allow, &self.options, &self.clock);
        self.phase = Phase::Attempting;
    }
}
