use core::time::Duration;

use stagger_core::{Policy, Seed, ServerHint, admission::Admission};

use super::Figures;
use super::herd::Herd;
use super::server::{Acceptor, Appointments, Plain, Server, Slots};
use crate::client::Rule;
use crate::engine::{CLIENT_BITS, LAST};
use crate::error::is_rate;
use crate::network::Network;
use crate::time::micros;
use crate::{Engine, ScenarioError, ScenarioFault, Watch, random};

/// A mass disconnect: how many lose their connection, and before which server. Plain data; what is built makes sense.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scenario {
    pub(super) clients: u32,
    rate: f64,
    backlog: u32,
    pub(super) network: Network,
    /// The rest is in microseconds.
    pub(crate) hits_within: u64,
    pub(crate) up_at: u64,
    pub(crate) horizon: u64,
    pub(crate) first: First,
    hints: Hints,
    /// Clients of whom every attempt is kept.
    pub(super) sample: u32,
}

/// The settings of a [`Scenario`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use = "a builder does nothing until `build`"]
pub struct ScenarioBuilder {
    clients: u64,
    rate: f64,
    backlog: u32,
    one_way: (Duration, Duration),
    hits_within: Duration,
    down_for: Duration,
    horizon: Duration,
    first: First,
    hints: Hints,
    sample: u32,
}

/// What a client does when its connection is lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum First {
    /// It waits for the policy's spread or, without one, for the schedule's first delay: what
    /// [`ReconnectMachine`](stagger_core::machine::ReconnectMachine) does.
    #[default]
    AfterDelay,
    /// It makes an attempt at once, or after the policy's spread, and the schedule begins with the failure of that: what a
    /// plain call does, and several WebSocket clients.
    AtOnce,
}

/// What the server tells those whom it refuses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Hints {
    /// Nothing.
    #[default]
    Silent,
    /// "Not before": the same to everyone ([`ServerHint::AtLeast`]).
    After(Duration),
    /// "Come then": the next free slot, reserved for this client alone ([`ServerHint::Reserved`]). Slots are 2 % further apart than
    /// handshakes. Who comes without one is let in if there is room.
    Slots,
    /// What [`Admission`] says, at the rate of the server and with its backlog as burst: appointments with tickets, and
    /// nobody overtakes those who have one.
    Appointments,
}

impl Scenario {
    /// So many clients, 1 to 67,108,864. The other settings are at their defaults.
    pub const fn builder(clients: u64) -> ScenarioBuilder {
        ScenarioBuilder {
            clients,
            rate: 1_000.0,
            backlog: 500,
            one_way: (Duration::from_millis(10), Duration::from_millis(40)),
            hits_within: Duration::from_millis(300),
            down_for: Duration::ZERO,
            horizon: Duration::from_secs(86_400),
            first: First::AfterDelay,
            hints: Hints::Silent,
            sample: 0,
        }
    }

    /// How many clients there are.
    #[must_use]
    pub const fn clients(&self) -> u64 {
        self.clients as u64
    }

    /// How many the server lets in a second.
    #[must_use]
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    pub(crate) const fn backlog(&self) -> u32 {
        self.backlog
    }

    pub(crate) const fn hints(&self) -> Hints {
        self.hints
    }

    /// The shortest and the longest time that a message is underway.
    pub(crate) const fn one_way(&self) -> (Duration, Duration) {
        self.network.bounds()
    }

    /// What happens with this policy. The seed is that of the whole run; each client has its own.
    #[must_use]
    pub fn run(&self, policy: &Policy, seed: Seed) -> Figures {
        self.run_on(Engine::Calendar, policy, seed)
    }

    /// [`run`](Self::run) on an engine of your choice; the figures are the same.
    #[must_use]
    pub fn run_on(&self, engine: Engine, policy: &Policy, seed: Seed) -> Figures {
        // A watch that nobody else has is never cancelled.
        self.watched_on(engine, policy, seed, &Watch::new()).unwrap_or_default()
    }

    /// [`run`](Self::run), watched; `None` if it was cancelled before its end.
    #[must_use]
    pub fn watched(&self, policy: &Policy, seed: Seed, watch: &Watch) -> Option<Figures> {
        self.watched_on(Engine::Calendar, policy, seed, watch)
    }

    fn watched_on(&self, engine: Engine, policy: &Policy, seed: Seed, watch: &Watch) -> Option<Figures> {
        let rule = Rule::new(policy, seed);
        let acceptor = Acceptor::new(self.rate, self.backlog);
        match (self.hints, self.admission()) {
            (Hints::Appointments, Some(admission)) => {
                self.drive(engine, rule, seed, Appointments { acceptor, admission }, watch)
            }
            (Hints::Slots, _) => self.drive(engine, rule, seed, Slots { acceptor, last: 0.0 }, watch),
            (Hints::After(after), _) => {
                self.drive(engine, rule, seed, Plain { acceptor, hint: Some(ServerHint::AtLeast(after)) }, watch)
            }
            _ => self.drive(engine, rule, seed, Plain { acceptor, hint: None }, watch),
        }
    }

    fn drive(&self, engine: Engine, rule: Rule<'_>, seed: Seed, server: impl Server, watch: &Watch) -> Option<Figures> {
        let mut herd = Herd::new(self, rule, random::World::new(seed), server);
        engine.run(&mut herd, watch).ok()?;
        Some(herd.figures())
    }

    /// `None` where the rate is too small for appointments, which a scenario that has them was checked for.
    fn admission(&self) -> Option<Admission> {
        Admission::per_second(self.rate as u32).burst(self.backlog).build().ok()
    }
}

impl ScenarioBuilder {
    /// How many handshakes the server makes a second. Default 1,000. Range: a billionth to a billion.
    pub const fn rate(self, rate: f64) -> Self {
        Self { rate, ..self }
    }

    /// How many may wait for their handshake. Default 500. Range: 1 and up.
    pub const fn backlog(self, backlog: u32) -> Self {
        Self { backlog, ..self }
    }

    /// How long a message is underway, one way: uniform between these. Default 10 and 40 ms. Range: up to an
    /// hour. With less than a millisecond it runs noticeably slower.
    pub const fn one_way(self, least: Duration, most: Duration) -> Self {
        Self { one_way: (least, most), ..self }
    }

    /// Within what time the connections are lost. Default 300 ms.
    pub const fn hits_within(self, time: Duration) -> Self {
        Self { hits_within: time, ..self }
    }

    /// How long the server is down, from the beginning. Default 0: it is there again at once.
    pub const fn down_for(self, time: Duration) -> Self {
        Self { down_for: time, ..self }
    }

    /// When the simulation ends at the latest. Default a day. Range: above 0, up to 76 hours.
    pub const fn horizon(self, horizon: Duration) -> Self {
        Self { horizon, ..self }
    }

    /// What a client does when its connection is lost. Default [`First::AfterDelay`].
    pub const fn first(self, first: First) -> Self {
        Self { first, ..self }
    }

    /// What the server tells those whom it refuses. Default [`Hints::Silent`].
    pub const fn hints(self, hints: Hints) -> Self {
        Self { hints, ..self }
    }

    /// Of how many clients every attempt is kept, for a picture. Which of them does not matter: chance makes no difference
    /// between clients. Default 0.
    pub const fn sample(self, clients: u32) -> Self {
        Self { sample: clients, ..self }
    }

    /// Checks the settings.
    ///
    /// # Errors
    /// Every [`ScenarioFault`] at once.
    pub fn build(self) -> Result<Scenario, ScenarioError> {
        let (horizon, hits_within, up_at) = (micros(self.horizon), micros(self.hits_within), micros(self.down_for));
        let rate_fits = is_rate(self.rate);
        ScenarioError::check([
            (ScenarioFault::Clients, self.clients == 0 || self.clients > 1 << CLIENT_BITS),
            (ScenarioFault::Rate, !rate_fits),
            (ScenarioFault::Backlog, self.backlog == 0),
            (ScenarioFault::Network, self.one_way.0 > self.one_way.1 || self.one_way.1 > Network::LONGEST),
            (ScenarioFault::BeyondHorizon, hits_within.max(up_at) > horizon),
            (ScenarioFault::Horizon, horizon == 0 || horizon > LAST),
            (ScenarioFault::AppointmentRate, rate_fits && self.rate < 1.0 && self.hints == Hints::Appointments),
        ])?;
        Ok(Scenario {
            clients: self.clients as u32,
            rate: self.rate,
            backlog: self.backlog,
            network: Network::new(self.one_way.0, self.one_way.1),
            hits_within,
            up_at,
            horizon,
            first: self.first,
            hints: self.hints,
            sample: self.sample,
        })
    }
}
