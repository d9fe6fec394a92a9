//! Quiet periods by key of a [`PollRetry`].

use core::borrow::Borrow;
use core::task::{Context, Poll};
#[cfg(target_has_atomic = "64")]
use std::sync::Arc;

use stagger_core::Outcome;
#[cfg(target_has_atomic = "64")]
use stagger_core::ServerHint;
#[cfg(target_has_atomic = "64")]
use stagger_core::guard::LimiterPermit;

use super::poll_retry::PollRetry;
use crate::call::machine::Attempt;
#[cfg(target_has_atomic = "64")]
use crate::call::machine::Phase;
use crate::error::rejected::Rejected;
use crate::retrier::handle::Retrier;
#[cfg(target_has_atomic = "64")]
use crate::retrier::quiet_keys::{KeyQuiet, QuietKeys};
#[cfg(target_has_atomic = "64")]
use crate::retrier::target::QuietTarget;
use crate::time::Sleep;

/// Quiet periods by key, for clients of several targets.
#[cfg(target_has_atomic = "64")]
impl<T: Sleep + Clone, R: Borrow<Retrier> + Clone> PollRetry<T, R> {
    /// Uses a [quiet period](crate::guard::QuietPeriod) for each key, such as one for each server and credential: when
    /// a server asks one call to wait, the calls with the same key wait, and no others. They have the settings of
    /// [`Retrier::quiet_period`]; if the retrier has none, no call waits for another. A
    /// [shared](Retrier::shared_quiet_period) quiet period serves all keys. Call it before the first poll.
    ///
    /// A key has a quiet period from the first hint or counted refusal on, until it is at rest. The call then begins
    /// with [`poll_begin_at`](Self::poll_begin_at), and reports with [`answered_at`](Self::answered_at). While no
    /// server asks for quiet, it never needs its key, apart from about one success in 256, and `poll_begin_at` costs
    /// one load more.
    ///
    /// At most 1,000 keys have one at a time. While all of those hold calls, further keys have none: their calls follow
    /// the hints that they receive themselves. So a server that asks for quiet for many keys cannot stop the calls of
    /// others.
    pub fn quiet_by_key(mut self) -> Self {
        let source = &mut self.driver.call.options.source;
        let shared = source.retrier.borrow().shared();
        if let Some(keys) = &shared.quiet_keys {
            keys.prepare();
            source.quiet = QuietTarget::Unasked;
        }
        self
    }

    /// Waits until the next attempt is due, and for its turn if the server has asked for quiet for this key; otherwise
    /// like [`poll_begin`](Self::poll_begin). `key`, which receives what the retrier was passed as, is called only if
    /// there is a quiet period of any key.
    ///
    /// # Errors
    /// Returns [`Rejected`] like `poll_begin`: [`Rejected::Quiet`], with the remaining time, if the call may not wait
    /// for its turn.
    #[inline]
    pub fn poll_begin_at(
        &mut self,
        key: impl FnOnce(&R) -> u64,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Attempt, Rejected>> {
        self.find_quiet(key);
        self.poll_begin(cx)
    }

    /// Takes back an attempt that was begun and not made, if the server has asked for quiet since: for integrations
    /// that prepare an attempt for a while, such as to wait for a connection. If it returns true, let go of what was
    /// prepared and call [`poll_begin_at`](Self::poll_begin_at) again. The attempt keeps its number, and is not charged
    /// again.
    #[inline]
    #[must_use = "an attempt that was taken back must not be made"]
    pub fn postponed_at(&mut self, key: impl FnOnce(&R) -> u64) -> bool {
        self.find_quiet(key);
        match &self.source().quiet {
            QuietTarget::Unasked => false,
            QuietTarget::Key(_) | QuietTarget::Retrier => self.postpone(),
        }
    }

    fn postpone(&mut self) -> bool {
        if !self.is_stateless {
            return self.driver.call.postpone();
        }
        let is_postponed = self.driver.call.may_not_begin_unasked();
        if is_postponed {
            self.is_stateless = false;
            self.driver.call.phase = Phase::Due;
        }
        is_postponed
    }

    /// Reports what the server answered to an attempt, before [`succeeded`](Self::succeeded) or
    /// [`failed`](Self::failed): `answer` is the outcome whether or not the request can be repeated, and `decided` the
    /// one that `failed` will be told. `key` is called for a [throttled](crate::FailureKind::Throttled) failure with a
    /// hint for everybody ([`ServerHint::AtLeast`](crate::ServerHint::AtLeast)), or without one if refusals
    /// [begin a pause](crate::guard::QuietTrigger), and for one success in a while.
    #[inline]
    pub fn answered_at(&mut self, answer: &Outcome, decided: &Outcome, key: impl FnOnce(&R) -> u64) {
        match (answer, &self.source().quiet) {
            (Outcome::Success, QuietTarget::Retrier) => {}
            (_, QuietTarget::Retrier) => self.note_lost_hint(answer, decided),
            (Outcome::Success, _) => {
                if let Some(keys) = self.quiet_keys() {
                    keys.count_success(|| key(self.retrier()), || self.driver.call.clock.now());
                }
            }
            _ => self.note_hint(answer, key),
        }
    }

    /// Tells the retrier's quiet period of a hint that the decision does not carry, because the request is not
    /// repeated.
    #[cold]
    fn note_lost_hint(&self, answer: &Outcome, decided: &Outcome) {
        let shared = self.retrier().borrow().shared();
        let hint = |outcome| QuietKeys::hint_for_everybody(outcome, &shared.policy);
        if let (Some(quiet), Some(length), None) = (&shared.quiet, hint(answer), hint(decided)) {
            let told = Outcome::throttled(Some(ServerHint::AtLeast(length)));
            quiet.record(LimiterPermit::NONE, &told, &self.driver.call.clock.now());
        }
    }

    #[cold]
    fn note_hint(&mut self, outcome: &Outcome, key: impl FnOnce(&R) -> u64) {
        let length = QuietKeys::hint_for_everybody(outcome, &self.retrier().borrow().shared().policy);
        let Some(keys) = self.quiet_keys().filter(|keys| length.is_some() || keys.counts(outcome)) else { return };
        let now = self.driver.call.clock.now();
        let pause = |quiet: &KeyQuiet| length.iter().for_each(|length| quiet.pause(*length, &now));
        if let QuietTarget::Key(quiet) = &self.source().quiet {
            pause(quiet);
        } else if let Some(quiet) = keys.asked_for(key(self.retrier()), now) {
            pause(&quiet);
            self.ask(quiet);
        }
    }

    fn quiet_keys(&self) -> Option<&QuietKeys> {
        self.retrier().borrow().shared().quiet_keys.as_deref()
    }

    /// Uses the quiet period of the key if there is one by now.
    #[inline]
    fn find_quiet(&mut self, key: impl FnOnce(&R) -> u64) {
        if matches!(self.source().quiet, QuietTarget::Unasked) {
            let clock = &self.driver.call.clock;
            if let Some(quiet) = self.quiet_keys().and_then(|keys| keys.known(|| key(self.retrier()), || clock.now())) {
                self.ask(quiet);
            }
        }
    }

    #[cold]
    fn ask(&mut self, quiet: Arc<KeyQuiet>) {
        self.driver.call.options.source.quiet = QuietTarget::Key(quiet);
        self.driver.call.replace_guard_source();
    }

    /// Removes the quiet period of the key after the call if it is at rest and no other call holds it.
    #[inline]
    pub(super) fn leave_quiet(&mut self) {
        if matches!(self.source().quiet, QuietTarget::Key(_)) {
            self.leave_known_quiet();
        }
    }

    #[cold]
    fn leave_known_quiet(&mut self) {
        let call = &mut self.driver.call;
        call.release_guards();
        let quiet = core::mem::replace(&mut call.options.source.quiet, QuietTarget::Unasked);
        let now = call.clock.now();
        // The table and this call; if others hold it, the last one to leave removes it.
        let is_last =
            matches!(&quiet, QuietTarget::Key(quiet) if Arc::strong_count(quiet) <= 2 && quiet.is_unneeded(now));
        drop(quiet);
        if let (true, Some(keys)) = (is_last, self.quiet_keys()) {
            keys.sweep(now);
        }
    }
}

/// The same interface on targets without 64-bit atomics, which have no quiet periods.
#[cfg(not(target_has_atomic = "64"))]
impl<T: Sleep + Clone, R: Borrow<Retrier> + Clone> PollRetry<T, R> {
    /// Returns `self`: quiet periods by key need 64-bit atomics.
    pub const fn quiet_by_key(self) -> Self {
        self
    }

    /// Waits like [`poll_begin`](Self::poll_begin).
    ///
    /// # Errors
    /// Returns [`Rejected`] like `poll_begin`.
    pub fn poll_begin_at(
        &mut self,
        _: impl FnOnce(&R) -> u64,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Attempt, Rejected>> {
        self.poll_begin(cx)
    }

    /// Takes back an attempt that was begun and not made, if a quiet period holds it by now.
    #[must_use = "an attempt that was taken back must not be made"]
    pub fn postponed_at(&mut self, _: impl FnOnce(&R) -> u64) -> bool {
        !self.is_stateless && self.driver.call.postpone()
    }

    /// Does nothing.
    pub fn answered_at(&mut self, _: &Outcome, _: &Outcome, _: impl FnOnce(&R) -> u64) {}

    pub(super) const fn leave_quiet(&mut self) {}
}
