use core::time::Duration;

use stagger_core::{Generation, Guards, Outcome, Phase, Policy, Reconnect, Seed, Source, Step, Stop};

use crate::laws::support::{at, secs};

/// The machine with a clock, and a driver that does what it says.
pub(super) struct Link<'a> {
    pub(super) machine: Reconnect,
    pub(super) policy: Policy,
    pub(super) guards: Guards<'a>,
    pub(super) now: Duration,
}

impl<'a> Link<'a> {
    pub(super) fn new(policy: Policy) -> Self {
        Self::guarded(policy, Guards::none())
    }

    pub(super) fn guarded(policy: Policy, guards: Guards<'a>) -> Self {
        Self { machine: Reconnect::new(Seed::new(1)), policy, guards, now: secs(1000) }
    }

    pub(super) fn seed(mut self, seed: u64) -> Self {
        self.machine = Reconnect::new(Seed::new(seed));
        self
    }

    pub(super) fn reconnect_now(&mut self) -> Step {
        let now = at(self.now);
        self.machine.reconnect_now(&self.policy, || now, &self.guards)
    }

    /// Connects for the first time, successfully.
    pub(super) fn up(mut self) -> Self {
        let generation = connects(self.reconnect_now());
        assert_eq!(self.opened(generation), Step::Rest);
        self
    }

    pub(super) fn opened(&mut self, generation: Generation) -> Step {
        let now = at(self.now);
        self.machine.opened(generation, || now, &self.guards)
    }

    /// A report about the present generation.
    pub(super) fn ended(&mut self, outcome: Outcome) -> Step {
        self.ended_as(self.machine.generation(), outcome)
    }

    pub(super) fn ended_as(&mut self, generation: Generation, outcome: Outcome) -> Step {
        self.machine.ended(generation, outcome, at(self.now), &self.policy, &self.guards)
    }

    pub(super) fn due(&mut self) -> Step {
        self.machine.due(&self.policy, at(self.now), &self.guards)
    }

    pub(super) fn close(&mut self) {
        let now = at(self.now);
        self.machine.close(|| now, &self.guards);
    }

    pub(super) fn pass(&mut self, length: Duration) {
        self.now += length;
    }

    /// The connection is lost after it has lived so long; the wait that follows.
    pub(super) fn lose_after(&mut self, lived: Duration) -> Duration {
        self.pass(lived);
        waits(self.ended(Outcome::TRANSIENT)).0
    }

    /// Waits for as long as it must, connects, and opens.
    pub(super) fn reopen(&mut self) {
        let generation = self.retry();
        assert_eq!(self.opened(generation), Step::Rest);
    }

    /// Waits for as long as it must, and connects.
    pub(super) fn retry(&mut self) -> Generation {
        let Phase::Waiting { until } = self.machine.phase() else { panic!("{:?}", self.machine) };
        self.now = Duration::from_nanos(until.as_nanos());
        connects(self.due())
    }

    /// Attempts to connect fail until it gives up; the waits between them and the reason.
    pub(super) fn fail_on(&mut self) -> (Vec<Duration>, Stop) {
        let mut all = Vec::new();
        loop {
            assert!(all.len() < 1_000, "an outage that does not end");
            match self.ended(Outcome::TRANSIENT) {
                Step::Wait { after, .. } => all.push(after),
                Step::GiveUp(stop) => return (all, stop),
                other => panic!("{other:?}"),
            }
            self.retry();
        }
    }
}

pub(super) fn connects(step: Step) -> Generation {
    match step {
        Step::Connect { generation } => generation,
        other => panic!("{other:?} is no Connect"),
    }
}

pub(super) fn waits(step: Step) -> (Duration, Source) {
    match step {
        Step::Wait { after, source, .. } => (after, source),
        other => panic!("{other:?} is no Wait"),
    }
}
