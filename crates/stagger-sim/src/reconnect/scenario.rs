use core::time::Duration;

use stagger_core::admission::{Admission, Secret};
use stagger_core::{Policy, Seed, ServerHint};

use super::ReconnectFigures;
use super::crash_loop::CrashLoop;
use super::guarded::GuardedSimulation;
use super::server::{FixedHint, Server, Staggered};
use super::simulation::ReconnectSimulation;
use crate::engine::{CLIENT_BITS, Engine, MAX_TIME, Progress, micros};
use crate::environment::Network;
use crate::outage::{ProcessGuards, StoreFaults};
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
    /// The same minimum delay for all clients ([`ServerHint::AtLeast`]).
    Fixed(Duration),
    /// The next free time, reserved for this client ([`ServerHint::Reserved`]). Reserved times are 2 % further apart
    /// than handshakes. Clients without a reserved time are accepted if there is room.
    Staggered,
    /// Reservations with tokens by [`Admission`], with the rate of the server and its backlog as burst. Clients without
    /// a reservation cannot overtake those that have one.
    Reservations,
}

/// Creates the guards of a process, if clients have any.
type MakeGuards<'a> = Option<&'a dyn Fn(Seed) -> ProcessGuards>;

/// Length of the backlog of a fleet's server, in seconds of work.
const BACKLOG_SECONDS: f64 = 0.5;

/// The horizon of a fleet is this multiple of the minimum recovery time, plus an hour. Clients not back by then count
/// as lost.
const HORIZON_FACTOR: u32 = 10;
const AN_HOUR: Duration = Duration::from_secs(3_600);

const MAX_HORIZON: Duration = Duration::from_secs(76 * 3_600);

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

    /// Runs the scenario with this policy. Each client derives its own seed from `seed`.
    #[must_use]
    pub fn run(&self, policy: &Policy, seed: Seed) -> ReconnectFigures {
        // This progress is not shared, so it is never cancelled.
        self.run_with_progress(policy, seed, &Progress::new()).unwrap_or_default()
    }

    /// Runs the scenario like [`run`](Self::run) and reports its progress; returns `None` if it was cancelled.
    #[must_use]
    pub fn run_with_progress(&self, policy: &Policy, seed: Seed, progress: &Progress) -> Option<ReconnectFigures> {
        let min_event_interval = self.network.min_round_trip().max(1);
        self.run_with_engine(Engine::Calendar { min_event_interval }, policy, None, seed, progress)
    }

    /// Runs the scenario like [`run_with_progress`](Self::run_with_progress) with clients that have guards. `guards` is
    /// called once per process, with a seed for guards that use randomness.
    ///
    /// # Errors
    /// [`ScenarioProblem::GuardedCrashLoop`] if the server of the scenario is in a crash loop.
    pub fn run_with_guards(
        &self,
        policy: &Policy,
        guards: impl Fn(Seed) -> ProcessGuards,
        seed: Seed,
        progress: &Progress,
    ) -> Result<Option<ReconnectFigures>, ScenarioError> {
        ScenarioError::check([(ScenarioProblem::GuardedCrashLoop, self.crash_loop.is_some())])?;
        // Calls that wait for their turn ask again at any time.
        Ok(self.run_with_engine(Engine::Heap, policy, Some(&guards), seed, progress))
    }

    fn run_with_engine(
        &self,
        engine: Engine,
        policy: &Policy,
        guards: MakeGuards<'_>,
        seed: Seed,
        progress: &Progress,
    ) -> Option<ReconnectFigures> {
        // Fixed, so that runs can be repeated: nobody makes up reservations here.
        const SECRET: Secret = Secret::new([1; 16]);
        // `build` has ruled out rates that are too low for reservations.
        let admission = Admission::per_second(self.rate as u32).burst(self.backlog).build(SECRET);
        match (self.retry_after, admission) {
            (RetryAfter::Reservations, Ok(admission)) => {
                self.simulate(engine, policy, guards, seed, admission, progress)
            }
            (RetryAfter::Staggered, _) => self.simulate(engine, policy, guards, seed, Staggered::default(), progress),
            (RetryAfter::Fixed(after), _) => {
                self.simulate(engine, policy, guards, seed, FixedHint(Some(ServerHint::AtLeast(after))), progress)
            }
            _ => self.simulate(engine, policy, guards, seed, FixedHint(None), progress),
        }
    }

    fn simulate(
        &self,
        engine: Engine,
        policy: &Policy,
        guards: MakeGuards<'_>,
        seed: Seed,
        server: impl Server,
        progress: &Progress,
    ) -> Option<ReconnectFigures> {
        if let Some(guards) = guards {
            let mut simulation = GuardedSimulation::new(self, policy, guards, seed, server);
            engine.run(&mut simulation, progress).ok()?;
            return Some(simulation.figures());
        }
        let mut simulation = ReconnectSimulation::new(self, policy, seed, server);
        engine.run(&mut simulation, progress).ok()?;
        // After a crash of the server, the run continues with the events that are left.
        while simulation.restart() {
            engine.run(&mut simulation, progress).ok()?;
        }
        Some(simulation.figures())
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
        /// Sets the number of clients whose attempts are recorded in [`ReconnectFigures::sample`], at most 10,000 of
        /// each client. These are the first clients, which are a random sample because all clients are statistically
        /// equal. Default 0.
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
        let crash_rate_fits = self.0.crash_loop.is_none_or(|crash_loop| is_rate(crash_loop.above));
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
    use proptest::prelude::*;
    use stagger_core::profile::Profile;
    use stagger_core::{Jitter, Ratio};

    use super::*;

    /// Asserts that the reference engine gives the figures of the scenario's own.
    fn assert_engines_agree(scenario: &ReconnectScenario, policy: &Policy, seed: Seed) {
        let heap = scenario.run_with_engine(Engine::Heap, policy, None, seed, &Progress::new());
        assert!(Some(scenario.run(policy, seed)) == heap, "the engines differ: {scenario:?}, {policy}");
    }

    #[test]
    fn a_fleet_has_ten_times_the_minimum_and_an_hour_to_recover() {
        let scenario =
            |clients| ReconnectScenario::of_fleet(clients, 100.0, Duration::from_secs(60), u64::MAX).build().unwrap();
        assert_eq!(scenario(180_000).horizon, micros(Duration::from_secs(10 * (1_800 + 60) + 3_600)));
        assert_eq!(scenario(60_000_000).horizon, micros(MAX_HORIZON));
    }

    fn policies() -> impl Strategy<Value = Policy> {
        let jitters = prop_oneof![
            Just(Jitter::None),
            Just(Jitter::Full),
            Just(Jitter::Equal),
            Just(Jitter::Decorrelated),
            Just(Jitter::Factor(Ratio::percent(30))),
        ];
        let made =
            (1_u64..2_000, 1_u64..50, jitters, 0_u64..3_000, prop_oneof![Just(None), (1_u32..12).prop_map(Some)])
                .prop_map(|(base, grows, jitter, spread, most)| {
                    let base = Duration::from_millis(base);
                    let builder = Policy::exponential(base, base * u32::try_from(grows).unwrap())
                        .jitter(jitter)
                        .spread(Duration::from_millis(spread));
                    most.map_or(builder.unlimited_attempts(), |most| builder.max_attempts(most)).build().unwrap()
                });
        let named = (0..Profile::all().count()).prop_map(|n| Profile::all().nth(n).unwrap().policy());
        prop_oneof![3 => made, 1 => named]
    }

    fn hints() -> impl Strategy<Value = RetryAfter> {
        prop_oneof![
            Just(RetryAfter::None),
            (0_u64..5_000).prop_map(|millis| RetryAfter::Fixed(Duration::from_millis(millis))),
            Just(RetryAfter::Staggered),
            Just(RetryAfter::Reservations),
        ]
    }

    fn scenarios() -> impl Strategy<Value = ReconnectScenario> {
        let micros = |most: u64| (0..most).prop_map(Duration::from_micros);
        let first = prop_oneof![Just(FirstAttempt::AfterDelay), Just(FirstAttempt::Immediate)];
        let ways = prop_oneof![Just((0_u64, 0_u64)), (0_u64..50, 0_u64..50), (0_u64..60_000, 0_u64..60_000)];
        let crashes = prop_oneof![Just(0_u32), 0_u32..5];
        let size = prop_oneof![1_u64..50, 1_u64..3_000];
        (size, 1.0..5_000.0_f64, 1_u32..300, ways, micros(2_000_000), micros(3_000_000), first, hints(), crashes)
            .prop_map(|(clients, rate, backlog, (least, more), window, down, first, hints, crashes)| {
                ReconnectScenario::builder(clients)
                    .rate(rate)
                    .backlog(backlog)
                    .one_way(Duration::from_micros(least), Duration::from_micros(least + more))
                    .disconnect_window(window)
                    .down_for(down)
                    .horizon(Duration::from_secs(100))
                    .first_attempt(first)
                    .retry_after(hints)
                    .crash_loop(crashes, rate * 0.8)
                    .sample(3)
                    .build()
                    .unwrap()
            })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        #[test]
        fn both_engines_give_the_same_figures(scenario in scenarios(), policy in policies(), seed: u64) {
            assert_engines_agree(&scenario, &policy, Seed::new(seed));
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]

        #[test]
        fn clients_that_have_no_guards_do_the_same_in_a_run_with_guards(
            scenario in scenarios(), policy in policies(), seed: u64,
        ) {
            // Of what happens in the same microsecond, the order may differ.
            let apart = scenario.network.min_round_trip() > 200 && scenario.disconnect_window > 200_000;
            if let (true, Ok(guarded)) =
                (apart, scenario.run_with_guards(&policy, |_| ProcessGuards::none(), Seed::new(seed), &Progress::new()))
            {
                prop_assert_eq!(guarded, Some(scenario.run(&policy, Seed::new(seed))), "{:?}, {}", scenario, policy);
            }
        }
    }

    /// Uses so many clients that bins are sorted by counting, with many events per microsecond, and delays of hours.
    #[test]
    fn both_engines_give_the_same_figures_at_the_limits() {
        let many = ReconnectScenario::builder(200_000).rate(4_000.0).backlog(2_000).horizon(Duration::from_secs(5));
        let long = ReconnectScenario::builder(500).rate(0.002).backlog(3).horizon(MAX_HORIZON);
        for (builder, policy) in [
            (many, "exponential base=500ms cap=30s max-attempts=inf"),
            (many, "decorrelated base=500ms cap=30s max-attempts=inf"),
            (many, "exponential base=500ms cap=30s max-attempts=inf jitter=none"),
            (long, "list delays=1h,20h,50h jitter=full"),
            (long, "exponential base=10m cap=30h max-attempts=9 jitter=none"),
        ] {
            assert_engines_agree(&builder.build().unwrap(), &policy.parse().unwrap(), Seed::new(5));
        }
    }
}
