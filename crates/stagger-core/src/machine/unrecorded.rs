//! Attempts that were not made with the machine that decides about them.

use crate::guards::guard::Guards;
use crate::guards::now::Unread;
use crate::machine::decision::Decision;
use crate::machine::retry::{RetryMachine, SpreadUse, retryable};
use crate::machine::state::{BEGUN, IN_FLIGHT, REPEATS};
use crate::numbers::instant::Instant;
use crate::outcome::Outcome;

impl RetryMachine<'_> {
    /// Decides about an attempt of which the guards receive no report, because its permits are gone: the process that
    /// made it was [killed](crate::machine::Paused::is_in_flight), or another layer made it and settled them. Steps 2 to
    /// 12 of [the order](Self#the-order-inside-decide), without an immediate repeat.
    #[cold]
    pub fn decide_unrecorded(
        &mut self,
        outcome: Outcome,
        now: impl FnOnce() -> Instant,
        guards: &Guards<'_>,
    ) -> Decision {
        let (kind, hint) = match retryable(outcome) {
            Ok(failure) => failure,
            Err(decision) => return decision,
        };
        if self.state.flags & BEGUN == 0 {
            // Attempts that another layer made have not advanced the schedule.
            self.seek(self.state.retry_number());
        }
        let decision = self.retry_or_stop(kind, hint, SpreadUse::Unused, &Unread::new(now), guards);
        if matches!(decision, Decision::Retry { .. }) {
            self.state.flags &= !(IN_FLIGHT | REPEATS);
        }
        decision
    }

    /// Sets the schedule to where it stands before retry `number`, for attempts that another layer made. A strategy keeps
    /// its own place.
    #[cold]
    pub fn seek(&mut self, number: u32) {
        // A stored number of attempts is not trusted to be small.
        let number = number.min(65_536);
        let carry = self.policy.carry_before(number, self.seed, u32::from(self.state.episode));
        if let (Some(carry), None) = (carry, self.strategy) {
            self.state.carry = carry;
            self.state.flags |= BEGUN;
        }
    }
}
