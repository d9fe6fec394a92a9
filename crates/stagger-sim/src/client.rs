use core::time::Duration;

use stagger_core::{
    Guards, Outcome, Policy, Seed, guard::Permits, machine::Decision, machine::Health, machine::RetryMachine,
    machine::RetryState,
};

use crate::time::instant;

/// What every client goes by: one policy, and a seed for each.
#[derive(Clone, Copy)]
pub(crate) struct Rule<'a> {
    policy: &'a Policy,
    seeds: Seed,
}

impl<'a> Rule<'a> {
    /// For a run with this seed.
    pub(crate) const fn new(policy: &'a Policy, seed: Seed) -> Self {
        Self { policy, seeds: seed.for_call(0) }
    }

    /// The connection is lost, at `now` in microseconds. Says after what time the first attempt is sent; `None` if there
    /// is none.
    ///
    /// From here on these are the decisions of [`stagger_core::machine::ReconnectMachine`], on a fifth of its memory; the test below holds
    /// them to it, delay by delay.
    pub(crate) fn lost(&self, id: u32, state: &mut RetryState, now: u64) -> Option<Duration> {
        *state = RetryState::new();
        let mut retry = self.retry(id, state);
        // Draws are numbered by episode, and the first one was the connection that is lost now.
        retry.reset();
        delay(&retry.lost(Health::Stable, Outcome::TRANSIENT, || instant(now), &Guards::none()))
    }

    /// A call is made, at `now` in microseconds. Says after what time its first attempt is sent.
    pub(crate) fn called(&self, id: u32, state: &mut RetryState, now: u64) -> Duration {
        *state = RetryState::new();
        self.retry(id, state).spread(|| instant(now))
    }

    /// An attempt is sent, at `now` in microseconds.
    #[inline(always)]
    pub(crate) fn sends(&self, id: u32, state: &mut RetryState, now: u64) {
        // Without a breaker nothing refuses, and without a budget nothing is lent.
        let _ = self.retry(id, state).begin(Permits::NONE, || instant(now), &Guards::none());
    }

    /// The client hears that its attempt failed, at `now` in microseconds. Says after what time it sends the next one;
    /// `None` if it gives up.
    #[inline(always)]
    pub(crate) fn failed(&self, id: u32, state: &mut RetryState, outcome: Outcome, now: u64) -> Option<Duration> {
        delay(&self.retry(id, state).decide_unguarded(outcome, || instant(now)))
    }

    /// The seed of this client, in a run with this seed.
    pub(crate) fn seed_of(run: Seed, id: u32) -> Seed {
        Self::nth(run.for_call(0), id)
    }

    /// The seed of this client.
    #[inline(always)]
    fn seed(&self, id: u32) -> Seed {
        Self::nth(self.seeds, id)
    }

    #[inline(always)]
    fn nth(seeds: Seed, id: u32) -> Seed {
        // Not `for_call`, which takes three times as long to promise that no two of them are the same.
        Seed::new(seeds.draw(u64::from(id)))
    }

    #[inline(always)]
    fn retry<'s>(&'s self, id: u32, state: &'s mut RetryState) -> RetryMachine<'s> {
        RetryMachine::new(self.policy, state, self.seed(id))
    }
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

    /// The delays of a connection that is lost and then refused eleven times, in the library's own machine.
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
        let rule = Rule::new(policy, run);
        let (mut state, mut now, mut delays) = (RetryState::new(), lost, Vec::new());
        let mut next = rule.lost(7, &mut state, now);
        while let (Some(after), true) = (next, delays.len() < 12) {
            delays.push(after);
            now += crate::time::micros(after);
            rule.sends(7, &mut state, now);
            next = rule.failed(7, &mut state, Outcome::TRANSIENT, now);
        }
        delays
    }

    #[test]
    fn a_client_waits_as_long_as_a_program_with_its_seed_would() {
        for profile in Profile::all() {
            let (policy, run) = (profile.policy(), Seed::new(3));
            // Long after the beginning, so that the connection was healthy.
            let lost = 100_000_000;
            let got = simulated(&policy, run, lost);
            assert_eq!(got, in_production(&policy, Rule::seed_of(run, 7), lost), "{}", profile.name());
            assert_eq!(got.is_empty(), policy.max_attempts().is_some_and(|most| most.get() == 0), "{}", profile.name());
        }
    }
}
