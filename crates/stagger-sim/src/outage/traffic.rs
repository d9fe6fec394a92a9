use stagger_core::{
    Outcome, Policy, Seed, StopReason, guard::Permits, machine::Decision, machine::RetryMachine, machine::RetryState,
};

use super::server::{Fate, Server};
use super::{Figures, Process, Scenario};
use crate::Series;
use crate::chance::exponential;
use crate::engine::World;
use crate::time::{instant, micros};

/// All requests, all processes and one server.
pub(super) struct Traffic<'a> {
    scenario: &'a Scenario,
    policy: &'a Policy,
    /// What the requests draw, as far as the policy lets them.
    seeds: Seed,
    processes: Vec<Process>,
    server: Server,
    /// When each request comes, and at which process.
    requests: Vec<(u64, u32)>,
    /// What the guards have lent each of them.
    permits: Vec<Permits>,
    tally: Tally,
}

#[derive(Default)]
struct Tally {
    attempts: Series,
    requests: Series,
    successes: Series,
    /// By the time at which the request had come.
    served: Series,
    refused: u64,
    through: u64,
}

/// What is kept of a request.
#[derive(Clone, Copy)]
pub(super) struct Request {
    state: RetryState,
    next: Next,
}

/// What happens next to a request.
#[derive(Clone, Copy)]
enum Next {
    Send,
    Arrive,
    Hear(Answer),
}

#[derive(Clone, Copy)]
enum Answer {
    Success,
    Failure,
    /// The queue was full.
    Throttled,
}

impl<'a> Traffic<'a> {
    pub(super) fn new(scenario: &'a Scenario, policy: &'a Policy, processes: Vec<Process>, seed: Seed) -> Self {
        let requests = requests(scenario, seed);
        let outage = (scenario.begins, scenario.begins + scenario.lasts);
        Self {
            scenario,
            policy,
            seeds: seed.for_call(0),
            server: Server::new(scenario.capacity, scenario.queue, scenario.outage, outage.0, outage.1),
            permits: requests.iter().map(|_| Permits::NONE).collect(),
            processes,
            requests,
            tally: Tally::default(),
        }
    }

    pub(super) fn figures(self) -> Figures {
        let Tally { attempts, requests, successes, served, refused, .. } = self.tally;
        Figures {
            rate: self.scenario.rate,
            outage_began: core::time::Duration::from_micros(self.scenario.begins),
            outage_ended: core::time::Duration::from_micros(self.scenario.begins + self.scenario.lasts),
            horizon: core::time::Duration::from_micros(self.scenario.horizon),
            attempts,
            requests,
            successes,
            served,
            refused,
        }
    }

    /// The next event of a request, if it is not after the end.
    fn within_horizon(&mut self, next: u64) -> Option<u64> {
        let is_within = next < self.scenario.horizon;
        self.tally.through += u64::from(!is_within);
        is_within.then_some(next)
    }

    /// The request sends an attempt now, if its breaker lets it. Says when that arrives.
    fn send(&mut self, now: u64, id: u32, request: &mut Request) -> Option<u64> {
        let process = &self.processes[self.requests[id as usize].1 as usize];
        let mut retry = RetryMachine::new(self.policy, &mut request.state, self.seeds.for_call(u64::from(id)));
        let permit = Permits::take(&mut self.permits[id as usize]);
        match retry.begin(permit, || instant(now), &process.guards()) {
            Ok(permit) => {
                self.permits[id as usize] = permit;
                self.tally.attempts.add(now);
                request.next = Next::Arrive;
                Some(now + self.scenario.one_way)
            }
            Err(_) => {
                self.tally.refused += 1;
                None
            }
        }
    }

    /// The attempt has arrived. Says when the client hears what becomes of it.
    fn arrive(&mut self, now: u64, request: &mut Request) -> u64 {
        let Scenario { one_way, timeout, .. } = *self.scenario;
        // A client waits for a round trip at least, so who is turned away at once always hears of it.
        let (gives_up, soon) = (now - one_way + timeout, now + one_way);
        let (answer, heard) = match self.server.arrive(now) {
            Fate::Done(done) if done + one_way as f64 <= gives_up as f64 => (Answer::Success, done as u64 + one_way),
            Fate::Done(_) => (Answer::Failure, gives_up),
            Fate::Full => (Answer::Throttled, soon),
            Fate::Down => (Answer::Failure, soon),
        };
        request.next = Next::Hear(answer);
        heard
    }

    /// The client hears what became of its attempt. Says when it sends the next one.
    fn hear(&mut self, now: u64, id: u32, request: &mut Request, answer: Answer) -> Option<u64> {
        let (born, process) = self.requests[id as usize];
        let outcome = match answer {
            Answer::Success => Outcome::Success,
            Answer::Failure => Outcome::TRANSIENT,
            Answer::Throttled => Outcome::throttled(None),
        };
        let mut retry = RetryMachine::new(self.policy, &mut request.state, self.seeds.for_call(u64::from(id)));
        let permit = Permits::take(&mut self.permits[id as usize]);
        let guards = self.processes[process as usize].guards();
        match retry.decide(outcome, permit, || instant(now), &guards) {
            Decision::Retry { after, permit, .. } => {
                self.permits[id as usize] = permit;
                match micros(after) {
                    0 => self.send(now, id, request),
                    after => {
                        request.next = Next::Send;
                        Some(now.saturating_add(after))
                    }
                }
            }
            decision => {
                self.tally.refused += u64::from(decision == Decision::Stop(StopReason::Breaker));
                if decision == Decision::Done {
                    self.tally.successes.add(now);
                    self.tally.served.add(born);
                }
                None
            }
        }
    }
}

/// A Poisson stream up to the horizon.
fn requests(scenario: &Scenario, seed: Seed) -> Vec<(u64, u32)> {
    let (gaps, places) = (seed.for_call(1), seed.for_call(2));
    let (mean, processes) = (1e6 / scenario.rate, u128::from(scenario.processes));
    let mut at = 0.0;
    (0..)
        .map(|n| {
            at += mean * exponential(gaps.draw(n));
            (at as u64, ((u128::from(places.draw(n)) * processes) >> 64) as u32)
        })
        .take_while(|&(at, _)| at < scenario.horizon)
        .take(Scenario::MOST_REQUESTS)
        .collect()
}

impl World for Traffic<'_> {
    type Client = Request;

    fn shortest(&self) -> u64 {
        // Delays can be as short as they like.
        1
    }

    fn count(&self) -> u32 {
        self.requests.len() as u32
    }

    fn client(&self) -> Self::Client {
        Request { state: RetryState::new(), next: Next::Send }
    }

    fn begin(&mut self, id: u32, request: &mut Request) -> Option<u64> {
        let (born, _) = self.requests[id as usize];
        self.tally.requests.add(born);
        let mut retry = RetryMachine::new(self.policy, &mut request.state, self.seeds.for_call(u64::from(id)));
        let first = born.saturating_add(micros(retry.spread(|| instant(born))));
        self.within_horizon(first)
    }

    fn event(&mut self, at: u64, id: u32, request: &mut Request) -> Option<u64> {
        let next = match request.next {
            Next::Send => self.send(at, id, request),
            Next::Arrive => Some(self.arrive(at, request)),
            Next::Hear(answer) => self.hear(at, id, request, answer),
        };
        // The engine is promised a time that passes.
        match next {
            Some(next) => self.within_horizon(next.max(at + 1)),
            None => {
                self.tally.through += 1;
                None
            }
        }
    }

    fn through(&self) -> u64 {
        self.tally.through
    }
}
