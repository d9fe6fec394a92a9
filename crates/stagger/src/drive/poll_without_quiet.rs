//! The interface of quiet periods by key, on targets without 64-bit atomics, which have none.

use core::borrow::Borrow;
use core::task::{Context, Poll};

use stagger_core::Outcome;

use super::poll_retry::PollRetry;
use crate::call::attempt::Attempt;
use crate::error::rejected::Rejected;
use crate::retrier::handle::Retrier;
use crate::time::Sleep;

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
        !self.is_stateless && self.call.call.postpone()
    }

    /// Does nothing.
    pub fn answered_at(&mut self, _: &Outcome, _: &Outcome, _: impl FnOnce(&R) -> u64) {}

    pub(super) const fn leave_quiet(&mut self) {}
}
