//! The scenarios, chosen before any controller had run in them. What the pacer does in [`TRIED`] has shaped it, so
//! [`HELD_OUT`] was written down when its form was settled, and has changed nothing since.

use super::Nanos;
use super::server::{Limit, SECOND, Server, Shape};

/// What the tasks want.
#[derive(Clone, Copy, Debug)]
pub enum Demand {
    /// Each task makes its next call when the last has ended.
    Saturating,
    /// So many calls per second of all tasks, at random times.
    Rate(f64),
    /// Saturating for a time, then nothing for a time.
    Bursts {
        /// How long the demand lasts.
        on: Nanos,
        /// How long there is none.
        off: Nanos,
    },
    /// A sine between 0.2 and 1.8 of the mean.
    Diurnal {
        /// The calls per second in the mean.
        mean: f64,
        /// The length of a day.
        period: Nanos,
    },
}

/// The client processes.
#[derive(Clone, Copy, Debug)]
pub enum Clients {
    /// So many processes with so many tasks each, from the start.
    Equal(usize, usize),
    /// The same, one joining so long after the other.
    Joining(usize, usize, Nanos),
    /// Processes with these numbers of tasks.
    Unequal(&'static [usize]),
}

/// A client process.
#[derive(Clone, Copy, Debug)]
pub struct ClientProcess {
    pub(super) tasks: usize,
    pub(super) joins: Nanos,
}

/// A server, its clients, and how long they are observed.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name in the table.
    pub name: &'static str,
    /// The server.
    pub server: Server,
    /// The clients.
    pub clients: Clients,
    /// What they want.
    pub demand: Demand,
    /// From when on goodput and refusals are measured.
    pub measured_from: Nanos,
    /// How long the run lasts.
    pub length: Nanos,
}

impl Scenario {
    pub(super) fn processes(&self) -> impl Iterator<Item = ClientProcess> {
        let (count, clients) = match self.clients {
            Clients::Equal(count, _) | Clients::Joining(count, ..) => (count, self.clients),
            Clients::Unequal(tasks) => (tasks.len(), self.clients),
        };
        (0..count).map(move |n| match clients {
            Clients::Equal(_, tasks) => ClientProcess { tasks, joins: 0 },
            Clients::Joining(_, tasks, apart) => ClientProcess { tasks, joins: n as u64 * apart },
            Clients::Unequal(tasks) => ClientProcess { tasks: tasks[n], joins: 0 },
        })
    }
}

const MS: Nanos = 1_000_000;

const fn bucket(rate: f64, burst: f64) -> Limit {
    Limit::Bucket { rate, burst }
}

const fn window(length: Nanos, rate: f64) -> Limit {
    Limit::Window { length, rate }
}

const fn scenario(name: &'static str, limit: Limit, service: Nanos, clients: Clients) -> Scenario {
    let server = Server { limit, shape: Shape::Constant, service, errors: 0.0, timeouts: 0.0, hints: false };
    let (measured_from, length) = (10 * SECOND, 60 * SECOND);
    Scenario { name, server, clients, demand: Demand::Saturating, measured_from, length }
}

impl Scenario {
    const fn shape(mut self, shape: Shape) -> Self {
        self.server.shape = shape;
        self
    }

    const fn demand(mut self, demand: Demand) -> Self {
        self.demand = demand;
        self
    }

    const fn hints(mut self) -> Self {
        self.server.hints = true;
        self
    }

    const fn noise(mut self, errors: f64, timeouts: f64) -> Self {
        (self.server.errors, self.server.timeouts) = (errors, timeouts);
        self
    }

    /// Returns the scenario, measured between these times.
    #[must_use]
    pub const fn between(mut self, from: Nanos, length: Nanos) -> Self {
        (self.measured_from, self.length) = (from, length);
        self
    }
}

/// The case P1: 50 tasks of 8 ms before a limit of 3,500/s.
pub const STEADY: Scenario =
    scenario("3,500/s, 50 tasks of 8 ms", bucket(3_500.0, 350.0), 6 * MS, Clients::Equal(1, 50));
/// The case P2: a limit of 350/s that is raised to 3,500/s.
pub const RAISED: Scenario = scenario("350/s raised to 3,500/s", bucket(350.0, 350.0), 6 * MS, Clients::Equal(1, 50))
    .shape(Shape::Step(30 * SECOND, 10.0))
    .between(10 * SECOND, 90 * SECOND);
/// The case P3: a server without a limit.
pub const UNLIMITED: Scenario = scenario("no limit", Limit::None, 6 * MS, Clients::Equal(1, 50)).noise(0.05, 0.01);

/// The acceptance cases.
pub const KNOWN: &[Scenario] = &[STEADY, RAISED, UNLIMITED];

/// What the pacer's form was compared on, and changed after.
pub const TRIED: &[Scenario] = &[
    scenario("2/s, 2 tasks of 30 ms", bucket(2.0, 2.0), 30 * MS, Clients::Equal(1, 2)),
    scenario("10/s, 5 tasks of 100 ms", bucket(10.0, 10.0), 100 * MS, Clients::Equal(1, 5)),
    scenario("120/s, 20 tasks of 50 ms", bucket(120.0, 12.0), 50 * MS, Clients::Equal(1, 20)),
    scenario("10,000/s, 100 tasks of 5 ms", bucket(10_000.0, 1_000.0), 5 * MS, Clients::Equal(1, 100)),
    scenario("300/s, 500 tasks of 100 ms", bucket(300.0, 30.0), 100 * MS, Clients::Equal(1, 500)),
    scenario("100/s with a burst of 3,000", bucket(100.0, 3_000.0), 20 * MS, Clients::Equal(1, 50)),
    scenario("500/s by windows of 1 s", window(SECOND, 500.0), 20 * MS, Clients::Equal(1, 100)),
    scenario("500/s by windows of 10 s", window(10 * SECOND, 500.0), 20 * MS, Clients::Equal(1, 100)),
    scenario("500/s by windows of 10 s, hints", window(10 * SECOND, 500.0), 20 * MS, Clients::Equal(1, 100)).hints(),
    scenario("500/s, hints of 1 s", bucket(500.0, 50.0), 20 * MS, Clients::Equal(1, 50)).hints(),
    scenario("20 at a time, 200 ms, 100 tasks", Limit::Concurrent { most: 20 }, 200 * MS, Clients::Equal(1, 100)),
    scenario("100 at a time, 1 s, 500 tasks", Limit::Concurrent { most: 100 }, SECOND, Clients::Equal(1, 500)),
    scenario("200/s raised to 2,000/s, 20 ms", bucket(200.0, 20.0), 20 * MS, Clients::Equal(1, 100))
        .shape(Shape::Step(30 * SECOND, 10.0))
        .between(10 * SECOND, 90 * SECOND),
    scenario("2,000/s lowered to 200/s, 20 ms", bucket(2_000.0, 200.0), 20 * MS, Clients::Equal(1, 100))
        .shape(Shape::Step(30 * SECOND, 0.1))
        .between(10 * SECOND, 90 * SECOND),
    scenario("900/s and 300/s by turns of 15 s", bucket(900.0, 90.0), 20 * MS, Clients::Equal(1, 50))
        .shape(Shape::Pulses(15 * SECOND, 1.0 / 3.0))
        .between(15 * SECOND, 105 * SECOND),
    scenario("1,000/s, by day 200/s", bucket(1_000.0, 100.0), 20 * MS, Clients::Equal(1, 100))
        .shape(Shape::Diurnal(60 * SECOND, 0.8))
        .between(10 * SECOND, 130 * SECOND),
    scenario("500/s, demand of 90 to 810/s by day", bucket(500.0, 50.0), 20 * MS, Clients::Equal(1, 200))
        .demand(Demand::Diurnal { mean: 450.0, period: 60 * SECOND })
        .between(10 * SECOND, 130 * SECOND),
    scenario("500/s, bursts of 5 s every 15 s", bucket(500.0, 50.0), 20 * MS, Clients::Equal(1, 50))
        .demand(Demand::Bursts { on: 5 * SECOND, off: 10 * SECOND })
        .between(15 * SECOND, 105 * SECOND),
    scenario("1,000/s, demand of 900/s", bucket(1_000.0, 20.0), 20 * MS, Clients::Equal(1, 100))
        .demand(Demand::Rate(900.0)),
    scenario("500/s, 5 % errors, 1 % timeouts", bucket(500.0, 50.0), 20 * MS, Clients::Equal(1, 100)).noise(0.05, 0.01),
    scenario("1,000/s, 8 processes", bucket(1_000.0, 100.0), 20 * MS, Clients::Equal(8, 25)),
    scenario("1,000/s by windows of 1 s, 8 processes", window(SECOND, 1_000.0), 20 * MS, Clients::Equal(8, 25)),
    scenario(
        "1,000/s, 8 processes join every 5 s",
        bucket(1_000.0, 100.0),
        20 * MS,
        Clients::Joining(8, 25, 5 * SECOND),
    )
    .between(45 * SECOND, 105 * SECOND),
    scenario(
        "1,000/s, processes of 5, 25 and 125 tasks",
        bucket(1_000.0, 100.0),
        20 * MS,
        Clients::Unequal(&[5, 25, 125]),
    ),
    scenario("50/s, 20 processes of 2 tasks", bucket(50.0, 5.0), 50 * MS, Clients::Equal(20, 2)),
];

/// What it was never changed after.
pub const HELD_OUT: &[Scenario] = &[
    scenario("35/s, 10 tasks of 70 ms", bucket(35.0, 5.0), 70 * MS, Clients::Equal(1, 10)),
    scenario("1,400/s, 60 tasks of 12 ms", bucket(1_400.0, 1_400.0), 12 * MS, Clients::Equal(1, 60)),
    scenario("6,000/s, 300 tasks of 30 ms, errors", bucket(6_000.0, 60.0), 30 * MS, Clients::Equal(1, 300))
        .noise(0.1, 0.0),
    scenario("200/s by windows of 5 s", window(5 * SECOND, 200.0), 40 * MS, Clients::Equal(1, 30)),
    scenario("40/s by windows of 30 s", window(30 * SECOND, 40.0), 40 * MS, Clients::Equal(1, 10))
        .between(60 * SECOND, 240 * SECOND),
    scenario("2,500/s by windows of 1 s, 3 processes", window(SECOND, 2_500.0), 10 * MS, Clients::Equal(3, 40)),
    scenario("50 at a time, 60 ms, 120 tasks", Limit::Concurrent { most: 50 }, 60 * MS, Clients::Equal(1, 120)),
    scenario("60/s raised to 240/s, 40 ms", bucket(60.0, 12.0), 40 * MS, Clients::Equal(1, 40))
        .shape(Shape::Step(30 * SECOND, 4.0))
        .between(10 * SECOND, 90 * SECOND),
    scenario("4,000/s lowered to 1,500/s, 8 ms", bucket(4_000.0, 100.0), 8 * MS, Clients::Equal(1, 80))
        .shape(Shape::Step(30 * SECOND, 0.375))
        .between(10 * SECOND, 90 * SECOND),
    scenario("800/s, bursts of 2 s every 8 s", bucket(800.0, 200.0), 15 * MS, Clients::Equal(1, 80))
        .demand(Demand::Bursts { on: 2 * SECOND, off: 6 * SECOND })
        .between(16 * SECOND, 96 * SECOND),
    scenario("600/s, demand of 660/s", bucket(600.0, 60.0), 25 * MS, Clients::Equal(1, 150))
        .demand(Demand::Rate(660.0)),
    scenario("400/s, 4 processes join every 10 s", bucket(400.0, 40.0), 30 * MS, Clients::Joining(4, 20, 10 * SECOND))
        .between(60 * SECOND, 120 * SECOND),
    scenario(
        "3,000/s, processes of 10 to 160 tasks",
        bucket(3_000.0, 300.0),
        10 * MS,
        Clients::Unequal(&[10, 20, 40, 80, 160]),
    ),
    scenario("150/s, hints of 1 s, 2 processes", bucket(150.0, 15.0), 30 * MS, Clients::Equal(2, 40)).hints(),
];
