use core::time::Duration;

use stagger_core::{
    Guards, NestedRetries, Outcome, Policy, Seed, guard::Permits, machine::Decision, machine::Health,
    machine::RetryMachine, machine::RetryState,
};

use crate::engine::time::instant;

/// The policy of all clients, with a seed for each client.
#[derive(Clone, Copy)]
pub(crate) struct ClientPolicy<'a> {
    policy: &'a Policy,
    seeds: Seed,
}

impl<'a> ClientPolicy<'a> {
    pub(crate) const fn new(policy: &'a Policy, seed: Seed) -> Self {
        Self { policy, seeds: seed.for_call(0) }
    }

    /// Handles the loss of a connection, at `now` in microseconds. Returns the delay before the first attempt; `None`
    /// if there is none.
    ///
    /// This and the following methods make the decisions of [`stagger_core::machine::ReconnectMachine`] with a fifth of
    /// its memory; the test below compares them, delay by delay.
    pub(crate) fn on_disconnect(&self, id: u32, state: &mut RetryState, now: u64) -> Option<Duration> {
        *state = RetryState::new();
        let mut retry = self.retry(id, state);
        // Draws are numbered by episode; episode 0 was the connection that is lost now.
        retry.reset();
        delay(&retry.lost(Health::Stable, Outcome::TRANSIENT, || instant(now), &Guards::none()))
    }

    /// Handles the start of a call, at `now` in microseconds. Returns the delay before its first attempt.
    pub(crate) fn on_call(&self, id: u32, state: &mut RetryState, now: u64) -> Duration {
        *state = RetryState::new();
        self.retry(id, state).spread(|| instant(now))
    }

    /// Handles the start of an attempt, at `now` in microseconds.
    #[inline(always)]
    pub(crate) fn on_attempt(&self, id: u32, state: &mut RetryState, now: u64) {
        // Without guards, the attempt is never rejected and holds no permit.
        let _ = self.retry(id, state).begin(Permits::NONE, || instant(now), &Guards::none());
    }

    /// Handles a failed attempt, at `now` in microseconds. Returns the delay before the next attempt; `None` if the
    /// client gives up.
    #[inline(always)]
    pub(crate) fn on_failure(&self, id: u32, state: &mut RetryState, outcome: Outcome, now: u64) -> Option<Duration> {
        delay(&self.retry(id, state).decide_unguarded(outcome, NestedRetries::Allow, || instant(now)))
    }

    pub(crate) fn seed_of_client(run: Seed, id: u32) -> Seed {
        nth(run.for_call(0), id)
    }

    #[inline(always)]
    fn retry<'s>(&'s self, id: u32, state: &'s mut RetryState) -> RetryMachine<'s> {
        RetryMachine::new(self.policy, state, nth(self.seeds, id))
    }
}

#[inline(always)]
fn nth(seeds: Seed, id: u32) -> Seed {
    // `for_call` takes three times as long, because it guarantees distinct seeds.
    Seed::new(seeds.draw(u64::from(id)))
}

#[inline(always)]
fn delay(decision: &Decision) -> Option<Duration> {
    match decision {
        Decision::Retry { after, .. } => Some(*after),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use stagger_core::{machine::ReconnectMachine, machine::ReconnectStep, profile::Profile};

    use super::*;

    /// Returns the delays of the library's state machine for a connection that is lost and then rejected eleven times.
    fn in_production(policy: &Policy, seed: Seed, lost: u64) -> Vec<Duration> {
        let (mut link, guards) = (ReconnectMachine::new(seed), Guards::none());
        let ReconnectStep::Connect { mut generation } = link.reconnect_now(policy, || instant(0), &guards) else {
            panic!()
        };
        let _ = link.opened(generation, || instant(0), &guards);
        let (mut now, mut delays) = (lost, Vec::new());
        while delays.len() < 12 {
            let ReconnectStep::Wait { after, until, .. } =
                link.ended(generation, Outcome::TRANSIENT, instant(now), policy, &guards)
            else {
                break;
            };
            delays.push(after);
            let ReconnectStep::Connect { generation: next } = link.due(policy, until, &guards) else { panic!() };
            (generation, now) = (next, until.as_nanos() / 1_000);
        }
        delays
    }

    fn simulated(policy: &Policy, run: Seed, lost: u64) -> Vec<Duration> {
        let clients = ClientPolicy::new(policy, run);
        let (mut state, mut now, mut delays) = (RetryState::new(), lost, Vec::new());
        let mut next = clients.on_disconnect(7, &mut state, now);
        while let (Some(after), true) = (next, delays.len() < 12) {
            delays.push(after);
            now += crate::engine::time::micros(after);
            clients.on_attempt(7, &mut state, now);
            next = clients.on_failure(7, &mut state, Outcome::TRANSIENT, now);
        }
        delays
    }

    #[test]
    fn a_simulated_client_draws_the_delays_of_a_real_client_with_its_seed() {
        for profile in Profile::all() {
            let (policy, run) = (profile.policy(), Seed::new(3));
            // Long after the start, so that the connection was stable.
            let lost = 100_000_000;
            let got = simulated(&policy, run, lost);
            assert_eq!(got, in_production(&policy, ClientPolicy::seed_of_client(run, 7), lost), "{}", profile.name());
            assert_eq!(got.is_empty(), policy.max_attempts().is_some_and(|most| most.get() == 0), "{}", profile.name());
        }
    }
}
