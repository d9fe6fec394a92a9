use core::time::Duration;

use stagger_core::machine::{Decision, Generation, ReconnectMachine, ReconnectStep, RetryMachine, RetryState};
use stagger_core::{Guards, Instant, Outcome, Policy, Seed, guard::Permits};

use super::FirstAttempt;
use crate::engine::time::{instant, micros, micros_up};
use crate::scenario::client_policy::ClientPolicy;

/// A client with guards: the machine of the library that decides when it connects. Times are in microseconds.
pub(super) enum Link {
    /// A connection that is kept up.
    Kept { machine: ReconnectMachine, generation: Generation, until: Instant },
    /// A call that makes its first attempt at once.
    Called { state: RetryState, seed: Seed, permits: Permits },
}

/// When an attempt that is due may start.
pub(super) enum Due {
    Now,
    /// It waits for its turn and asks again at this time.
    At(u64),
    Never,
}

/// The connections that are lost have been open for a year: longer than any policy asks of a stable connection.
const ORIGIN: u64 = 365 * 86_400 * 1_000_000;

fn clock(at: u64) -> Instant {
    instant(ORIGIN + at)
}

impl Link {
    pub(super) fn new(first: FirstAttempt, policy: &Policy, run: Seed, id: u32) -> Self {
        let seed = ClientPolicy::seed_of_client(run, id);
        if first == FirstAttempt::Immediate {
            return Self::Called { state: RetryState::new(), seed, permits: Permits::NONE };
        }
        let (mut machine, now) = (ReconnectMachine::new(seed), Instant::ZERO);
        // The guards have forgotten this connection.
        let _ = machine.reconnect_now(policy, || now, &Guards::none());
        let generation = machine.generation();
        let _ = machine.opened(generation, || now, &Guards::none());
        Self::Kept { machine, generation, until: now }
    }

    /// Returns the number of attempts so far.
    pub(super) const fn attempts(&self) -> u32 {
        match self {
            Self::Kept { machine, .. } => machine.attempt(),
            Self::Called { state, .. } => state.attempt(),
        }
    }

    /// Handles the loss of the connection. Returns when the first attempt is due; `None` if there is none.
    pub(super) fn lose(&mut self, policy: &Policy, now: u64, guards: &Guards<'_>) -> Option<u64> {
        match self {
            Self::Kept { .. } => self.fail(policy, Outcome::TRANSIENT, now, guards),
            Self::Called { state, seed, .. } => {
                let spread = RetryMachine::new(policy, state, *seed).spread(|| clock(now));
                Some(now.saturating_add(micros(spread)))
            }
        }
    }

    /// Starts an attempt that is due, unless a guard rejects it or lets it wait.
    pub(super) fn connect(&mut self, policy: &Policy, now: u64, guards: &Guards<'_>) -> Due {
        match self {
            Self::Kept { machine, generation, until } => {
                // A wait may end within this microsecond.
                match machine.due(policy, clock(now).max(*until), guards) {
                    ReconnectStep::Connect { generation: next } => {
                        *generation = next;
                        Due::Now
                    }
                    ReconnectStep::Wait { until: next, .. } => {
                        *until = next;
                        Due::At(now.saturating_add(micros_up(next.saturating_since(clock(now)))))
                    }
                    _ => Due::Never,
                }
            }
            Self::Called { state, seed, permits } => {
                let mut retry = RetryMachine::new(policy, state, *seed);
                match retry.turn(permits, || clock(now), guards) {
                    Ok(Duration::ZERO) => {}
                    Ok(wait) => return Due::At(now.saturating_add(micros_up(wait))),
                    Err(_) => return Due::Never,
                }
                match retry.begin(Permits::take(permits), || clock(now), guards) {
                    Ok(given) => {
                        *permits = given;
                        Due::Now
                    }
                    Err(_) => Due::Never,
                }
            }
        }
    }

    /// Handles a failed attempt. Returns when the next one is due; `None` if there is none.
    pub(super) fn fail(&mut self, policy: &Policy, outcome: Outcome, now: u64, guards: &Guards<'_>) -> Option<u64> {
        match self {
            Self::Kept { machine, generation, until } => {
                let step = machine.ended(*generation, outcome, clock(now), policy, guards);
                let ReconnectStep::Wait { after, until: next, .. } = step else { return None };
                *until = next;
                Some(now.saturating_add(micros(after)))
            }
            Self::Called { state, seed, permits } => {
                let permit = Permits::take(permits);
                let decision = RetryMachine::new(policy, state, *seed).decide(outcome, permit, || clock(now), guards);
                let Decision::Retry { after, permit, .. } = decision else { return None };
                *permits = permit;
                Some(now.saturating_add(micros(after)))
            }
        }
    }

    /// Handles the success of an attempt.
    pub(super) fn open(&mut self, policy: &Policy, now: u64, guards: &Guards<'_>) {
        match self {
            Self::Kept { machine, generation, .. } => {
                let _ = machine.opened(*generation, || clock(now), guards);
            }
            Self::Called { state, seed, permits } => {
                let permit = Permits::take(permits);
                let _ = RetryMachine::new(policy, state, *seed).decide(Outcome::Success, permit, || clock(now), guards);
            }
        }
    }
}
