use core::time::Duration;

use stagger_core::machine::{Generation, ReconnectMachine, ReconnectPhase, ReconnectStep};
use stagger_core::{DelaySource, Guards, Outcome, Policy, Seed, StopReason};

use crate::laws::support::{at, secs};

/// A reconnect machine with a virtual clock and a minimal driver.
pub(crate) struct Link<'a> {
    pub(crate) machine: ReconnectMachine,
    pub(crate) policy: Policy,
    pub(crate) guards: Guards<'a>,
    pub(crate) now: Duration,
}

impl<'a> Link<'a> {
    pub(crate) fn new(policy: Policy) -> Self {
        Self::guarded(policy, Guards::none())
    }

    pub(crate) fn guarded(policy: Policy, guards: Guards<'a>) -> Self {
        Self { machine: ReconnectMachine::new(Seed::new(1)), policy, guards, now: secs(1000) }
    }

    pub(crate) fn seed(mut self, seed: u64) -> Self {
        self.machine = ReconnectMachine::new(Seed::new(seed));
        self
    }

    pub(crate) fn reconnect_now(&mut self) -> ReconnectStep {
        let now = at(self.now);
        self.machine.reconnect_now(&self.policy, || now, &self.guards)
    }

    /// Opens the first connection.
    pub(crate) fn up(mut self) -> Self {
        let generation = connects(self.reconnect_now());
        assert_eq!(self.opened(generation), ReconnectStep::Rest);
        self
    }

    pub(crate) fn opened(&mut self, generation: Generation) -> ReconnectStep {
        let now = at(self.now);
        self.machine.opened(generation, || now, &self.guards)
    }

    /// Reports the end of the current generation.
    pub(crate) fn ended(&mut self, outcome: Outcome) -> ReconnectStep {
        self.ended_as(self.machine.generation(), outcome)
    }

    pub(crate) fn ended_as(&mut self, generation: Generation, outcome: Outcome) -> ReconnectStep {
        self.machine.ended(generation, outcome, at(self.now), &self.policy, &self.guards)
    }

    pub(crate) fn due(&mut self) -> ReconnectStep {
        self.machine.due(&self.policy, at(self.now), &self.guards)
    }

    pub(crate) fn close(&mut self) {
        let now = at(self.now);
        self.machine.close(|| now, &self.guards);
    }

    pub(crate) fn advance(&mut self, by: Duration) {
        self.now += by;
    }

    /// Loses the connection after `uptime` and returns the wait that follows.
    pub(crate) fn lose_after(&mut self, uptime: Duration) -> Duration {
        self.advance(uptime);
        waits(self.ended(Outcome::TRANSIENT)).0
    }

    /// Waits until due, connects and opens.
    pub(crate) fn reopen(&mut self) {
        let generation = self.retry();
        assert_eq!(self.opened(generation), ReconnectStep::Rest);
    }

    /// Waits until due and connects.
    pub(crate) fn retry(&mut self) -> Generation {
        let ReconnectPhase::Waiting { until } = self.machine.phase() else { panic!("{:?}", self.machine) };
        self.now = Duration::from_nanos(until.as_nanos());
        connects(self.due())
    }

    /// Fails every attempt to connect until the machine gives up; returns the waits between them and the reason.
    pub(crate) fn fail_on(&mut self) -> (Vec<Duration>, StopReason) {
        let mut all = Vec::new();
        loop {
            assert!(all.len() < 1_000, "the outage does not end");
            match self.ended(Outcome::TRANSIENT) {
                ReconnectStep::Wait { after, .. } => all.push(after),
                ReconnectStep::GiveUp(stop) => return (all, stop),
                other => panic!("{other:?}"),
            }
            self.retry();
        }
    }
}

pub(crate) fn connects(step: ReconnectStep) -> Generation {
    match step {
        ReconnectStep::Connect { generation } => generation,
        other => panic!("expected Connect, got {other:?}"),
    }
}

pub(crate) fn waits(step: ReconnectStep) -> (Duration, DelaySource) {
    match step {
        ReconnectStep::Wait { after, source, .. } => (after, source),
        other => panic!("expected Wait, got {other:?}"),
    }
}
