//! The decisions of many clients with one policy, in 24 bytes per client.

use core::time::Duration;

use stagger_core::machine::{Decision, Health, RetryMachine, RetryState};
use stagger_core::{Guards, NestedRetries, Outcome, Policy, Seed};

use crate::engine::instant;

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

    /// Handles the loss of a later connection, at `now` in microseconds, that was open for `lived`; `last_wait` is the
    /// wait before it was opened. Returns the delay before the next attempt; `None` if there is none.
    pub(crate) fn on_loss(
        &self,
        id: u32,
        state: &mut RetryState,
        outcome: Outcome,
        [lived, last_wait]: [Duration; 2],
        now: u64,
    ) -> Option<Duration> {
        let health = Health::after(self.policy, lived, last_wait);
        delay(&self.retry(id, state).lost(health, outcome, || instant(now), &Guards::none()))
    }

    /// Returns the policy with other seeds for all clients.
    pub(crate) const fn reseeded(self, nth: u32) -> Self {
        Self { seeds: self.seeds.for_call(nth as u64), ..self }
    }

    /// Handles the start of a call, at `now` in microseconds. Returns the delay before its first attempt.
    pub(crate) fn on_call(&self, id: u32, state: &mut RetryState, now: u64) -> Duration {
        *state = RetryState::new();
        self.retry(id, state).spread(|| instant(now))
    }

    /// Handles the start of an attempt, at `now` in microseconds.
    #[inline(always)]
    pub(crate) fn on_attempt(&self, id: u32, state: &mut RetryState, now: u64) {
        // Without a deadline, the attempt is never rejected.
        let _ = self.retry(id, state).begin_unguarded(|| instant(now));
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
    use stagger_core::ServerHint;
    use stagger_core::machine::{ReconnectMachine, ReconnectStep};
    use stagger_core::profile::Profile;

    use crate::engine::micros;

    use super::*;

    /// What happens to a client: its connection is lost after a life of so many seconds, or the attempt to connect
    /// fails.
    #[derive(Clone, Copy, Debug)]
    enum Ending {
        Lost { lived: u64, outcome: Outcome },
        Failed(Outcome),
    }

    const HINTED: Outcome = Outcome::throttled(Some(ServerHint::AtLeast(Duration::from_secs(3))));
    const RESERVED: Outcome = Outcome::throttled(Some(ServerHint::Reserved(Duration::from_secs(7))));

    /// A crash loop: stable and young connections are lost, with and without hints, and attempts fail in between.
    const SCRIPT: [Ending; 14] = [
        Ending::Lost { lived: 1000, outcome: Outcome::TRANSIENT },
        Ending::Failed(Outcome::TRANSIENT),
        Ending::Failed(HINTED),
        Ending::Lost { lived: 1, outcome: Outcome::TRANSIENT },
        Ending::Lost { lived: 0, outcome: HINTED },
        Ending::Failed(Outcome::throttled(None)),
        Ending::Failed(RESERVED),
        Ending::Lost { lived: 100, outcome: HINTED },
        Ending::Lost { lived: 2, outcome: RESERVED },
        Ending::Lost { lived: 3, outcome: Outcome::TRANSIENT },
        Ending::Failed(Outcome::TRANSIENT),
        Ending::Failed(Outcome::TRANSIENT),
        Ending::Lost { lived: 40, outcome: Outcome::TRANSIENT },
        Ending::Lost { lived: 9, outcome: Outcome::TRANSIENT },
    ];

    const SECOND: u64 = 1_000_000;

    /// Returns the delays of the library's state machine for this script.
    fn in_production(policy: &Policy, seed: Seed, script: &[Ending]) -> Vec<Duration> {
        let (mut link, guards, mut now) = (ReconnectMachine::new(seed), Guards::none(), 0);
        let ReconnectStep::Connect { mut generation } = link.reconnect_now(policy, || instant(0), &guards) else {
            panic!()
        };
        let mut delays = Vec::new();
        for ending in script {
            let outcome = match *ending {
                Ending::Lost { lived, outcome } => {
                    let _ = link.opened(generation, || instant(now), &guards);
                    now += lived * SECOND;
                    outcome
                }
                Ending::Failed(outcome) => outcome,
            };
            let ReconnectStep::Wait { after, .. } = link.ended(generation, outcome, instant(now), policy, &guards)
            else {
                break;
            };
            delays.push(after);
            now += micros(after);
            // The simulation's clock has microseconds, so the machine's wait may end within one.
            let due = instant(now).saturating_add(Duration::from_micros(1));
            let ReconnectStep::Connect { generation: next } = link.due(policy, due, &guards) else { panic!() };
            generation = next;
        }
        delays
    }

    fn simulated(policy: &Policy, run: Seed, script: &[Ending]) -> Vec<Duration> {
        let clients = ClientPolicy::new(policy, run);
        let (mut state, mut now, mut delays) = (RetryState::new(), 0, Vec::new());
        for (at, ending) in script.iter().enumerate() {
            let next = match *ending {
                Ending::Lost { lived, outcome } if at == 0 => {
                    assert!(lived >= 1000 && outcome == Outcome::TRANSIENT, "the first connection was stable");
                    now += lived * SECOND;
                    clients.on_disconnect(7, &mut state, now)
                }
                Ending::Lost { lived, outcome } => {
                    now += lived * SECOND;
                    let last_wait = delays.last().copied().unwrap_or_default();
                    clients.on_loss(7, &mut state, outcome, [Duration::from_secs(lived), last_wait], now)
                }
                Ending::Failed(outcome) => clients.on_failure(7, &mut state, outcome, now),
            };
            let Some(after) = next else { break };
            delays.push(after);
            now += micros(after);
            clients.on_attempt(7, &mut state, now);
        }
        delays
    }

    /// All profiles, each also with a spread that is longer than most of its delays.
    fn policies() -> impl Iterator<Item = Policy> {
        Profile::all().flat_map(|profile| {
            let spread = profile.policy().to_builder().spread(Duration::from_secs(20)).build();
            [Some(profile.policy()), spread.ok()].into_iter().flatten()
        })
    }

    #[test]
    fn a_simulated_client_draws_the_delays_of_a_real_client_with_its_seed() {
        let failures = [Ending::Failed(Outcome::TRANSIENT); 12];
        let loss = [Ending::Lost { lived: 1000, outcome: Outcome::TRANSIENT }];
        let outage = [&loss[..], &failures].concat();
        for policy in policies() {
            let run = Seed::new(3);
            let got = simulated(&policy, run, &outage);
            assert_eq!(got, in_production(&policy, ClientPolicy::seed_of_client(run, 7), &outage), "{policy}");
            assert_eq!(got.is_empty(), policy.max_attempts().is_some_and(|most| most.get() == 0), "{policy}");
        }
    }

    #[test]
    fn repeated_losses_and_hints_are_simulated_as_they_happen_to_a_real_client() {
        let mut ended_late = 0;
        for policy in policies() {
            let run = Seed::new(5);
            let got = simulated(&policy, run, &SCRIPT);
            assert_eq!(got, in_production(&policy, ClientPolicy::seed_of_client(run, 7), &SCRIPT), "{policy}");
            ended_late += usize::from(got.len() == SCRIPT.len());
        }
        assert!(ended_late > 20, "{ended_late} policies reached the end of the script");
    }
}
