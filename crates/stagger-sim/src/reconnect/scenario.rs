//! The settings of a mass disconnect.

use core::time::Duration;

use crate::engine::{CLIENT_BITS, MAX_TIME, micros};
use crate::environment::Network;
use crate::outage::StoreFaults;
use crate::scenario::{ScenarioError, ScenarioProblem, is_rate, setters};

/// A mass disconnect: the clients, the network and the server. Plain data; valid once built.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReconnectScenario {
    pub(super) clients: u64,
    rate: f64,
    pub(crate) backlog: u32,
    pub(crate) network: Network,
    /// In microseconds, like the following times.
    pub(crate) disconnect_window: u64,
    pub(crate) up_at: u64,
    pub(crate) horizon: u64,
    pub(crate) first_attempt: FirstAttempt,
    pub(crate) retry_after: RetryAfter,
    pub(crate) crash_loop: Option<CrashLoop>,
    /// Number of processes that the clients are grouped into; `None` if each is its own.
    pub(crate) processes: Option<u32>,
    pub(crate) store: StoreFaults,
    /// Number of clients whose attempts are recorded.
    pub(super) sample: u32,
}

/// Builds a [`ReconnectScenario`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[must_use = "a builder does nothing until `build`"]
pub struct ReconnectScenarioBuilder(ReconnectScenario);

/// When a client makes its first attempt after it has lost its connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FirstAttempt {
    /// After the policy's spread or, without one, the first delay of the schedule, like
    /// [`Reconnect`](stagger_core::machine::ReconnectMachine).
    #[default]
    AfterDelay,
    /// Immediately, or after the policy's spread; the schedule starts when that attempt fails. This is the behavior of
    /// a plain call, and of several WebSocket clients.
    Immediate,
}

/// The hint that the server sends to rejected clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RetryAfter {
    /// No hint.
    #[default]
    None,
    /// The same minimum delay for all clients ([`ServerHint::AtLeast`](stagger_core::ServerHint::AtLeast)).
    Fixed(Duration),
    /// The next free time, reserved for this client ([`ServerHint::Reserved`](stagger_core::ServerHint::Reserved)).
    /// Reserved times are 2 % further apart than handshakes. Clients without a reserved time are accepted if there is
    /// room.
    Staggered,
    /// Reservations with tokens by [`Admission`](stagger_core::admission::Admission), with the rate of the server and
    /// its backlog as burst. Clients without a reservation cannot overtake those that have one.
    Reservations,
}

/// A server that crashes again under the clients that return.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct CrashLoop {
    /// Maximum number of crashes.
    pub(crate) most: u32,
    /// The server crashes when more attempts than this arrive within a second.
    pub(crate) above: f64,
}

/// Length of the backlog of a fleet's server, in seconds of work.
const BACKLOG_SECONDS: f64 = 0.5;

/// The horizon of a fleet is this multiple of the minimum recovery time, plus an hour. Clients not back by then count
/// as lost.
const HORIZON_FACTOR: u32 = 10;
const AN_HOUR: Duration = Duration::from_secs(3_600);

pub(super) const MAX_HORIZON: Duration = Duration::from_secs(76 * 3_600);

impl ReconnectScenario {
    /// Starts a scenario with this number of clients, 1 to 67,108,864, and the defaults of all other settings.
    pub const fn builder(clients: u64) -> ReconnectScenarioBuilder {
        ReconnectScenarioBuilder(Self {
            clients,
            rate: 1_000.0,
            backlog: 500,
            network: Network::new(Duration::from_millis(10), Duration::from_millis(40)),
            disconnect_window: 300_000,
            up_at: 0,
            horizon: micros(Duration::from_secs(86_400)),
            first_attempt: FirstAttempt::AfterDelay,
            retry_after: RetryAfter::None,
            crash_loop: None,
            processes: None,
            store: StoreFaults::none(),
            sample: 0,
        })
    }

    /// Starts the scenario of a fleet that loses its connections to a server of this capacity per second, which is
    /// down for a while. It has a backlog of half a second, a horizon far beyond the shortest recovery, and at most
    /// `max_clients` clients: figures depend only on clients / rate and backlog / rate, so a larger fleet is
    /// represented by a smaller one in proportion.
    pub fn of_fleet(clients: u64, capacity: f64, outage: Duration, max_clients: u64) -> ReconnectScenarioBuilder {
        let min_recovery_time = Duration::try_from_secs_f64(clients as f64 / capacity).unwrap_or(Duration::MAX);
        let horizon = min_recovery_time.saturating_add(outage).saturating_mul(HORIZON_FACTOR).saturating_add(AN_HOUR);
        let simulated = clients.min(max_clients).min(1 << CLIENT_BITS);
        let rate = capacity * simulated as f64 / clients as f64;
        let backlog = (rate * BACKLOG_SECONDS).ceil().max(1.0) as u32;
        let builder = Self::builder(simulated).rate(rate).backlog(backlog);
        builder.down_for(outage).horizon(horizon.min(MAX_HORIZON))
    }

    /// Returns the scenario with another number of clients whose attempts are recorded
    /// ([`sample`](ReconnectScenarioBuilder::sample)). No other figure depends on it.
    #[must_use]
    pub const fn with_sample(self, clients: u32) -> Self {
        Self { sample: clients, ..self }
    }

    /// Returns the number of clients.
    #[must_use]
    pub const fn clients(&self) -> u64 {
        self.clients
    }

    /// Returns the number of handshakes per second that the server accepts.
    #[must_use]
    pub const fn rate(&self) -> f64 {
        self.rate
    }

    /// Returns the number of handshakes that may be pending.
    #[must_use]
    pub const fn backlog(&self) -> u32 {
        self.backlog
    }

    /// Returns how long the server is down, from the start.
    #[must_use]
    pub const fn down_time(&self) -> Duration {
        Duration::from_micros(self.up_at)
    }

    /// Returns the time at which the simulation ends at the latest.
    #[must_use]
    pub const fn horizon(&self) -> Duration {
        Duration::from_micros(self.horizon)
    }

    /// Returns the number of processes that the clients are grouped into, each with its own guards.
    #[must_use]
    pub const fn processes(&self) -> u32 {
        match self.processes {
            Some(processes) => processes,
            None => self.clients as u32,
        }
    }

    /// Returns when a client makes its first attempt.
    #[must_use]
    pub const fn first_attempt(&self) -> FirstAttempt {
        self.first_attempt
    }
}

impl ReconnectScenarioBuilder {
    setters! {
        in 0;
        /// Sets the number of handshakes per second that the server accepts. Default 1,000. Range: a billionth to a
        /// billion.
        rate: f64 = rate;
        /// Sets the number of handshakes that may be pending. Default 500. Range: 1 and up.
        backlog: u32 = backlog;
        /// Sets the time within which all connections are lost. Default 300 ms.
        disconnect_window: Duration = micros(disconnect_window);
        /// Sets the time at which the simulation ends at the latest. Default one day. Range: above 0, up to 76 hours.
        horizon: Duration = micros(horizon);
        /// Sets when a client makes its first attempt. Default [`FirstAttempt::AfterDelay`].
        first_attempt: FirstAttempt = first_attempt;
        /// Sets the hint for rejected clients. Default [`RetryAfter::None`].
        retry_after: RetryAfter = retry_after;
        /// Groups the clients into this number of processes, which share guards. Default: each client is a process of
        /// its own. Range: 1 to the number of clients.
        processes: u32 = Some(processes);
        /// Sets what happens to the store of a [`FleetBudget`](crate::outage::FleetBudget). Default
        /// [`StoreFaults::none`]. Range: up to the horizon.
        store: StoreFaults = store;
        /// Sets the number of clients whose attempts are recorded in
        /// [`ReconnectFigures::sample`](super::ReconnectFigures::sample), at most 10,000 of each client. These are the
        /// first clients, which are a random sample because all clients are statistically equal. Default 0.
        sample: u32 = sample;
    }

    /// Sets the bounds of the one-way delay of messages, which is uniform between them. Default 10 and 40 ms. Range: up
    /// to an hour. Delays below a millisecond make the simulation noticeably slower.
    pub const fn one_way(mut self, least: Duration, most: Duration) -> Self {
        self.0.network = Network::new(least, most);
        self
    }

    /// Sets how long the server is down, from the start. Default 0: it is available at once.
    pub const fn down_for(mut self, time: Duration) -> Self {
        self.0.up_at = micros(time);
        self
    }

    /// Lets the server crash again under the clients that return: each time more than `above` attempts arrive within a
    /// second, all connections and pending handshakes are lost, and the server is down for as long as the first time
    /// ([`down_for`](Self::down_for)). It crashes at most `most` times. Default: never. Range of `above`: as of
    /// [`rate`](Self::rate). The fluid model has no such crashes.
    pub const fn crash_loop(mut self, most: u32, above: f64) -> Self {
        self.0.crash_loop = if most > 0 { Some(CrashLoop { most, above }) } else { None };
        self
    }

    /// Builds the scenario.
    ///
    /// # Errors
    /// Returns all [`ScenarioProblem`]s at once.
    pub fn build(self) -> Result<ReconnectScenario, ScenarioError> {
        let ReconnectScenario { clients, rate, horizon, disconnect_window, up_at, retry_after, .. } = self.0;
        let slow = is_rate(rate) && rate < 1.0;
        let crash_rate_fits = match self.0.crash_loop {
            Some(crash_loop) => is_rate(crash_loop.above),
            None => true,
        };
        ScenarioError::check([
            (ScenarioProblem::Clients, clients == 0 || clients > 1 << CLIENT_BITS),
            (ScenarioProblem::Processes, self.0.processes.is_some_and(|some| some == 0 || u64::from(some) > clients)),
            (ScenarioProblem::Rate, !is_rate(rate) || !crash_rate_fits),
            (ScenarioProblem::Backlog, self.0.backlog == 0),
            (ScenarioProblem::Network, !self.0.network.is_valid()),
            // A horizon of 0 is a problem of its own.
            (ScenarioProblem::BeyondHorizon, horizon > 0 && disconnect_window.max(up_at) > horizon),
            (ScenarioProblem::Horizon, horizon == 0 || horizon > MAX_TIME),
            (ScenarioProblem::Store, !self.0.store.are_within(horizon)),
            (ScenarioProblem::ReservationRate, slow && retry_after == RetryAfter::Reservations),
        ])?;
        Ok(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fleet_has_ten_times_the_minimum_and_an_hour_to_recover() {
        let scenario =
            |clients| ReconnectScenario::of_fleet(clients, 100.0, Duration::from_secs(60), u64::MAX).build().unwrap();
        assert_eq!(scenario(180_000).horizon, micros(Duration::from_secs(10 * (1_800 + 60) + 3_600)));
        assert_eq!(scenario(60_000_000).horizon, micros(MAX_HORIZON));
    }
}
