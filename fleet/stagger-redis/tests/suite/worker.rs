//! A process of a fleet, and what its retries add up to.

use core::time::Duration;
use std::env;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use stagger::guard::{Ask, End, Guard, Permit};
use stagger::{FailureKind, Outcome};
use stagger_kit::{Finished, Port, Program, Ready, Running, Server, Signal, User};
use stagger_redis::{Fleet, FleetEvent};

use super::sharing::until;

/// The bucket of all tests: 500 tokens, 50 per second, 5 for a retry.
pub(crate) const CAPACITY: u32 = 500;
pub(crate) const REFILL: u32 = 50;
pub(crate) const COST: u32 = 5;

/// A real server without data.
pub(crate) struct Redis {
    // Drop order: the server is killed before its directory is removed and its port is released.
    pub(crate) server: Server,
    _data: tempfile::TempDir,
    pub(crate) port: Port,
}

impl Redis {
    pub(crate) fn start(options: &[&str]) -> Self {
        let (port, data) = (Port::reserve().unwrap(), User::current().directory().unwrap());
        let number = port.number().to_string();
        let program = Program::find("redis-server").unwrap().directory(data.path());
        let program = program.args(["--bind", "127.0.0.1", "--save", "", "--tcp-backlog", "1024", "--port", &number]);
        let server =
            Server::start(program.args(options), Ready::Port(port.address()), Duration::from_secs(10)).unwrap();
        Self { server, _data: data, port }
    }

    /// Starts two nodes of a cluster that know each other. Each has these slots.
    pub(crate) async fn cluster(slots: [&str; 2]) -> [Self; 2] {
        let buses = [(); 2].map(|()| Port::reserve().unwrap());
        let nodes = [0, 1].map(|index: usize| {
            let bus = buses[index].number().to_string();
            Self::start(&["--cluster-enabled", "yes", "--cluster-port", &bus])
        });
        for (node, slots) in nodes.iter().zip(slots) {
            if !slots.is_empty() {
                node.run(&format!("CLUSTER ADDSLOTSRANGE {slots}"));
            }
        }
        nodes[0].run(&format!("CLUSTER MEET 127.0.0.1 {} {}", nodes[1].port.number(), buses[1].number()));
        let is_up = |node: &Self| format!("{:?}", node.run("CLUSTER INFO")).contains("cluster_state:ok");
        until(|| nodes.iter().all(is_up)).await;
        nodes
    }

    pub(crate) fn url(&self) -> String {
        format!("redis://{}", self.port.address())
    }

    /// Runs a command, given as its words.
    pub(crate) fn run(&self, words: &str) -> redis::Value {
        self.try_run(words).unwrap()
    }

    /// Runs a command on a server that may close connections: a sentinel lets a new primary do so.
    pub(crate) fn try_run(&self, words: &str) -> redis::RedisResult<redis::Value> {
        let mut connection = redis::Client::open(self.url())?.get_connection()?;
        let mut words = words.split(' ');
        let mut command = redis::cmd(words.next().unwrap());
        words.fold(&mut command, |command, word| command.arg(word)).query(&mut connection)
    }
}

/// Creates a user of the store who may run the commands that the crate's documentation names after `words`, and no
/// others, and returns the user's address.
pub(crate) fn documented_user(redis: &Redis, words: &str) -> String {
    const DOCUMENTATION: &str = include_str!("../../src/store.md");
    let (_, list) = DOCUMENTATION.split_once(words).unwrap();
    let (list, _) = list.split_once('.').unwrap();
    let commands = list.split('`').skip(1).step_by(2);
    let commands: Vec<_> = commands.map(|name| format!("+{}", name.to_lowercase().replace(' ', "|"))).collect();
    redis.run(&format!("ACL SETUSER shop on >secret ~{{stagger:shop}}* {}", commands.join(" ")));
    format!("redis://shop:secret@{}", redis.port.address())
}

/// What the calls of a process end with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Calls {
    Fail,
    Succeed,
}

/// Processes of a fleet that run the ignored test below.
pub(crate) struct Workers {
    program: Program,
    calls: Vec<Calls>,
    running: Vec<Running>,
    /// What those did that were replaced.
    replaced: Vec<Log>,
    seconds: f64,
}

/// What the processes did.
#[derive(Debug)]
pub(crate) struct Log {
    /// The times of all retries in microseconds, in order.
    pub(crate) retries: Vec<u64>,
    pub(crate) reports: Vec<u64>,
    pub(crate) losses: Vec<u64>,
    /// The slowest request for a retry, in microseconds, of 99 of 100.
    pub(crate) slowest: Vec<u64>,
}

impl Workers {
    pub(crate) fn start(url: &str, seconds: f64, calls: &[Calls]) -> Self {
        Self::start_with(url, seconds, calls, &[])
    }

    pub(crate) fn start_with(url: &str, seconds: f64, calls: &[Calls], variables: &[(&str, &str)]) -> Self {
        let program = Program::this_test("suite::worker::works").unwrap();
        let program = program.env("FLEET_URL", url).env("FLEET_SECONDS", seconds.to_string());
        let program = program.env("FLEET_PROCESSES", calls.len().to_string());
        let program = variables.iter().fold(program, |program, (name, value)| program.env(name, value));
        let mut workers = Self { program, calls: calls.to_vec(), running: Vec::new(), replaced: Vec::new(), seconds };
        workers.running = (0..calls.len()).map(|index| workers.spawn(index)).collect();
        workers
    }

    fn spawn(&self, index: usize) -> Running {
        self.program.clone().env("FLEET_CALLS", format!("{:?}", self.calls[index])).spawn().unwrap()
    }

    /// Kills a process, and starts another in its place.
    pub(crate) fn replace(&mut self, index: usize) {
        self.running[index].signal(Signal::KILL).unwrap();
        let next = self.spawn(index);
        let killed = core::mem::replace(&mut self.running[index], next);
        self.replaced.push(Log::read(&killed.wait(Duration::from_secs(10)).unwrap()));
    }

    pub(crate) fn process(&mut self, index: usize) -> &mut Running {
        &mut self.running[index]
    }

    /// Waits for the end of all processes; those that were killed count with what they wrote, after the others.
    pub(crate) fn finish(self) -> Vec<Log> {
        let limit = Duration::from_secs_f64(self.seconds + 30.0);
        let logs = self.running.into_iter().map(|running| Log::read(&running.wait(limit).unwrap()));
        logs.chain(self.replaced).collect()
    }
}

impl Log {
    fn read(finished: &Finished) -> Self {
        let text = String::from_utf8_lossy(&finished.stdout);
        let numbers = |word: &str| -> Vec<u64> {
            // The test harness writes on the same line.
            let after = |line: &str| line.split_once(word).and_then(|(_, number)| number.trim().parse().ok());
            text.lines().filter_map(after).collect()
        };
        Self {
            retries: numbers("fleet-retry "),
            reports: numbers("fleet-reports "),
            losses: numbers("fleet-losses "),
            slowest: numbers("fleet-slowest "),
        }
    }

    /// Adds up the logs of several processes.
    pub(crate) fn sum(logs: &[Self]) -> Self {
        let all = |of: fn(&Self) -> &Vec<u64>| logs.iter().flat_map(|log| of(log).iter().copied()).collect();
        let mut retries: Vec<_> = all(|log| &log.retries);
        retries.sort_unstable();
        Self {
            retries,
            reports: all(|log| &log.reports),
            losses: all(|log| &log.losses),
            slowest: all(|log| &log.slowest),
        }
    }

    /// Returns how far a single bucket that pays for all retries falls below zero, in tokens.
    pub(crate) fn overshoot(&self, refill: u32) -> f64 {
        let (mut level, mut lowest, mut last) = (f64::from(CAPACITY), 0.0_f64, None);
        for &at in &self.retries {
            let elapsed = at.saturating_sub(last.unwrap_or(at)) as f64 / 1e6;
            level = (level + elapsed * f64::from(refill)).min(f64::from(CAPACITY)) - f64::from(COST);
            lowest = lowest.min(level);
            last = Some(at);
        }
        -lowest
    }

    /// Prints what was measured.
    pub(crate) fn print(&self) {
        let (retries, overshoot) = (self.retries.len(), self.overshoot(REFILL) / f64::from(CAPACITY) * 100.0);
        let (most, slowest) = (self.reports.iter().max(), self.slowest.iter().max());
        println!(
            "{retries} retries, overshoot {overshoot:.1} %, at most {most:?} reports, p99 of a request {slowest:?} µs"
        );
    }

    /// Returns the retries between two times after the first, in seconds.
    pub(crate) fn between(&self, from: f64, to: f64) -> usize {
        let first = self.retries.first().copied().unwrap_or(0);
        let at = |retry: &&u64| (**retry - first) as f64 / 1e6;
        self.retries.iter().filter(|retry| at(retry) >= from && at(retry) < to).count()
    }
}

pub(crate) fn micros() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_micros()).unwrap()
}

#[test]
#[ignore = "is a process of a fleet; the other tests start it"]
fn works() {
    let Ok(url) = env::var("FLEET_URL") else { return };
    let number = |name: &str| env::var(name).unwrap().parse::<f64>().unwrap();
    let calls = if env::var("FLEET_CALLS").unwrap() == "Fail" { Calls::Fail } else { Calls::Succeed };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(work(&url, number("FLEET_SECONDS"), number("FLEET_PROCESSES") as u32, calls));
}

/// Makes 200 calls per second, or as many as the test says, each with up to three retries.
async fn work(url: &str, seconds: f64, processes: u32, calls: Calls) {
    let begun = Instant::now();
    let fleet = Fleet::builder(url, processes).namespace("test").on_event(|event| match event {
        FleetEvent::StoreLost { .. } => println!("\nfleet-lost {}", micros()),
        _ => println!("\nfleet-restored {}", micros()),
    });
    let fleet = fleet.build().unwrap();
    let budget: Box<dyn Guard> = if env::var_os("FLEET_WINDOW").is_some() {
        Box::new(fleet.window("payments").build().unwrap())
    } else {
        let tokens =
            fleet.tokens("payments").capacity(CAPACITY).cost(COST).reward(0).refill(REFILL, Duration::from_secs(1));
        Box::new(tokens.build().unwrap())
    };
    assert!(begun.elapsed() < Duration::from_secs(1), "the constructor does not wait");
    let now = stagger::Instant::ZERO;
    let mut took = Vec::new();
    let rate = env::var("FLEET_RATE").map_or(200.0, |rate| rate.parse::<f64>().unwrap());
    let mut tick = tokio::time::interval(Duration::from_secs_f64(1.0 / rate));
    while begun.elapsed().as_secs_f64() < seconds {
        tick.tick().await;
        let _ = budget.ask(Ask::FIRST, Permit::NONE, &now);
        if matches!(calls, Calls::Succeed) {
            budget.settle(Permit::NONE, End::Made(&Outcome::Success), &now);
            continue;
        }
        for _ in 0..3 {
            let asked = Instant::now();
            let granted = budget.reserve(FailureKind::Transient, &now);
            took.push(u64::try_from(asked.elapsed().as_micros()).unwrap());
            let Some(permit) = granted else { break };
            println!("\nfleet-retry {}", micros());
            budget.settle(permit, End::Made(&Outcome::TRANSIENT), &now);
        }
    }
    took.sort_unstable();
    let snapshot = fleet.snapshot();
    println!("\nfleet-reports {}\nfleet-losses {}", snapshot.reports, snapshot.losses);
    println!("fleet-slowest {}", took.get(took.len() * 99 / 100).copied().unwrap_or(0));
}
