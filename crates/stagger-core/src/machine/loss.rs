//! Decisions about the loss of an open connection.

use crate::guards::guard::{Guards, Unread};
use crate::machine::decision::Decision;
use crate::machine::retry::{RetryMachine, SpreadUse, retryable};
use crate::machine::state::AHEAD;
use crate::numbers::instant::Instant;
use crate::outcome::Outcome;

/// Whether a lost connection had been healthy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Health {
    /// It had been open for long enough: a new episode begins.
    Stable,
    /// It had not been open for long enough: the backoff continues.
    Flapping,
    /// Its server failed, however long it had been open: the backoff continues, after a spread, because all clients of
    /// that server lose their connections at once.
    Failed,
}

impl RetryMachine<'_> {
    /// Decides what to do after the loss of an open connection, as
    /// [`ReconnectMachine`](crate::machine::ReconnectMachine) does. Use it to keep no more than a
    /// [`RetryState`](crate::machine::RetryState) for each of many connections. Call [`begin`](Self::begin) next, as
    /// after [`decide`](Self::decide).
    ///
    /// If the connection was healthy, an episode begins: the first wait is the policy's spread, and the schedule begins
    /// with the first failure after it. Without a spread, the loss itself is the schedule's first failure. If the
    /// connection was not healthy, the loss is one more failure of the attempt that opened it; if its server
    /// [failed](Health::Failed), a spread is added to the delay. The guards have already recorded the success of that
    /// attempt.
    pub fn lost(
        &mut self,
        health: Health,
        outcome: Outcome,
        now: impl FnOnce() -> Instant,
        guards: &Guards<'_>,
    ) -> Decision {
        let now = Unread::new(now);
        // A connection that ended normally is still wanted.
        let outcome = if outcome == Outcome::Success { Outcome::TRANSIENT } else { outcome };
        let (kind, hint) = match retryable(outcome) {
            Ok(failure) => failure,
            Err(decision) => return decision,
        };
        let spread = match health {
            Health::Stable => {
                self.state.begin_episode();
                self.start_clock(&now);
                if self.policy.spread().is_zero() {
                    self.state.flags |= AHEAD;
                    SpreadUse::Unused
                } else {
                    SpreadUse::InsteadOfBackoff
                }
            }
            Health::Flapping => SpreadUse::Unused,
            Health::Failed => SpreadUse::BeforeBackoff,
        };
        self.retry_or_stop(kind, hint, spread, &now, guards)
    }
}
