//! Decisions about the loss of an open connection.

use core::time::Duration;

use crate::guards::guard::Guards;
use crate::guards::now::Unread;
use crate::machine::decision::Decision;
use crate::machine::retry::{RetryMachine, SpreadUse, retryable};
use crate::machine::state::AHEAD;
use crate::numbers::instant::Instant;
use crate::outcome::Outcome;
use crate::policy::Policy;

/// Whether a lost connection had been healthy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Health {
    /// It had been open for long enough: a new episode begins.
    Stable,
    /// It had not been open for long enough: the count and the backoff go on.
    Flapping,
    /// Its server failed, however long it had been open: the count and the backoff go on.
    Failed,
}

impl Health {
    /// How long a connection must have been open to count as stable, if the policy does not set it.
    const STABLE_AFTER: Duration = Duration::from_secs(10);

    /// Returns whether a connection is stable that was open for `lived`: for at least the policy's `stable_after`; if
    /// that is not set, for the larger of 10 s and `last_wait`, the wait before the attempt that opened it.
    #[must_use]
    pub fn after(policy: &Policy, lived: Duration, last_wait: Duration) -> Self {
        let enough = policy.stable_after().unwrap_or_else(|| last_wait.max(Self::STABLE_AFTER));
        if lived >= enough { Self::Stable } else { Self::Flapping }
    }
}

impl RetryMachine<'_> {
    /// Decides what to do after the loss of an open connection, as
    /// [`ReconnectMachine`](crate::machine::ReconnectMachine) does. Use it to keep no more than a
    /// [`RetryState`](crate::machine::RetryState) for each of many connections. Call [`begin`](Self::begin) next, as
    /// after [`decide`](Self::decide).
    ///
    /// Every loss is spread, because whatever ended the connection may have ended all of them. `health` decides only
    /// whether the count starts again:
    ///
    /// - After the loss of a stable connection an episode begins: the first wait is a draw from the policy's spread, and
    ///   the schedule begins with the first failure after it. Without a spread, the loss itself is the schedule's first
    ///   failure, and the first of the `max_attempts`.
    /// - Any other loss is one more failure of the attempt that opened the connection. The wait is the larger of a draw
    ///   from the spread and the schedule's delay, and its [source](crate::DelaySource) says which one it is.
    ///
    /// A server's hint is a minimum below the spread as below a delay. The guards have already recorded the success of
    /// the attempt that opened the connection.
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
            Health::Flapping | Health::Failed if self.policy.spread().is_zero() => SpreadUse::Unused,
            Health::Flapping | Health::Failed => SpreadUse::BesideBackoff,
        };
        self.retry_or_stop(kind, hint, spread, &now, guards)
    }
}
