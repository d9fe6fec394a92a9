//! Benchmark of the simulator, and of a bare loop for comparison.
//!
//! ```text
//! cargo bench -p stagger-sim                        # ten million clients: a minute
//! cargo bench -p stagger-sim -- --clients 1000000   # a tenth
//! ```
//!
//! Times are CPU times where the system reports them (Linux), so that other load on the machine matters less. They
//! still vary; the ratio of two rows is reliable.

mod bare;

use core::error::Error;
use core::time::Duration;
use std::fs;
use std::time::Instant;

use stagger_core::{Jitter, Policy, Seed, profile};
use stagger_sim::reconnect::ReconnectScenario;
use stagger_sim::testing::StormTest;
use stagger_sim::{fluid, occ};

type Result<T = ()> = core::result::Result<T, Box<dyn Error>>;

/// Number of runs, of which the best counts; benchmarks of minutes run once.
const ROUNDS: u32 = 3;

fn main() -> Result {
    let clients = clients()?;
    println!("{:<44} {:>12} {:>9} {:>12}", "", "attempts", "seconds", "millions/s");
    storms(clients)?;
    println!("peak memory: {}", memory(clients));
    bare_loop(clients)?;
    contention()?;
    assertions()?;
    fluid_model(clients)
}

/// Returns the number of clients from the command line, to which cargo adds an argument.
fn clients() -> Result<u64> {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    match (arguments.next().as_deref(), arguments.next()) {
        (None, _) => Ok(10_000_000),
        (Some("--clients"), Some(clients)) => Ok(clients.parse()?),
        (Some(unknown), _) => Err(format!("unexpected argument {unknown}; expected --clients N").into()),
    }
}

const fn exponential() -> stagger_core::PolicyBuilder {
    Policy::exponential(Duration::from_millis(500), Duration::from_secs(30)).unlimited_attempts()
}

/// Runs all policies.
fn storms(clients: u64) -> Result {
    let decorrelated = profile::AWS_BLOG.policy().to_builder().base(Duration::from_millis(500));
    storm("full jitter", clients, exponential().build()?, ROUNDS)?;
    for (name, policy) in [
        ("equal jitter", exponential().jitter(Jitter::Equal)),
        ("decorrelated jitter", decorrelated.cap(Duration::from_secs(30))),
        ("no jitter, constant second", Policy::constant(Duration::from_secs(1)).jitter(Jitter::None)),
    ] {
        storm(name, clients, policy.unlimited_attempts().build()?, 1)?;
    }
    Ok(())
}

/// Returns a scenario with 50 s of work for the server, and a backlog of half a second.
fn scenario(clients: u64) -> Result<ReconnectScenario> {
    Ok(ReconnectScenario::builder(clients).rate(clients as f64 / 50.0).backlog(backlog(clients)?).build()?)
}

fn backlog(clients: u64) -> Result<u32> {
    Ok(u32::try_from(clients / 100)?.max(1))
}

fn storm(name: &str, clients: u64, policy: Policy, rounds: u32) -> Result {
    let scenario = scenario(clients)?;
    let mut best = f64::INFINITY;
    let mut attempts = 0;
    for _ in 0..rounds {
        let stopwatch = Stopwatch::start();
        attempts = scenario.run(&policy, Seed::new(1)).attempts;
        best = best.min(stopwatch.seconds());
    }
    print(name, attempts, best);
    Ok(())
}

/// Runs the same scenario in a specialized loop, as an upper bound.
fn bare_loop(clients: u64) -> Result {
    let (scenario, mut best, mut attempts) = (scenario(clients)?, f64::INFINITY, 0);
    for _ in 0..ROUNDS {
        let stopwatch = Stopwatch::start();
        attempts = bare::attempts(clients, scenario.rate(), f64::from(backlog(clients)?));
        best = best.min(stopwatch.seconds());
    }
    print("full jitter, a bare loop", attempts, best);
    Ok(())
}

/// Runs optimistic concurrency control a thousand times with a hundred clients; an attempt is four events.
fn contention() -> Result {
    let scenario = occ::OccScenario::builder(100).build()?;
    let policy = Policy::exponential(Duration::from_millis(10), Duration::from_secs(2)).unlimited_attempts().build()?;
    let stopwatch = Stopwatch::start();
    let calls: u64 = (0..1_000).map(|seed| scenario.run(&policy, Seed::new(seed)).calls).sum();
    print("optimistic concurrency, events", 4 * calls, stopwatch.seconds());
    Ok(())
}

/// Measures the cost of a user's test: a storm of a hundred thousand clients with all assertions.
fn assertions() -> Result {
    let (scenario, policy) = (scenario(100_000)?, exponential().build()?);
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let stopwatch = Stopwatch::start();
        StormTest::run(&scenario, &policy)
            .all_clients_recover()
            .peak_at_most(30_000)
            .peak_second_at_most(200_000)
            .attempts_per_client_at_most(7.0)
            .recovered_p99_within(Duration::from_secs(60));
        best = best.min(stopwatch.seconds());
    }
    println!("test with 100,000 clients: {:.1} ms", 1e3 * best);
    Ok(())
}

fn fluid_model(clients: u64) -> Result {
    let (scenario, policy) = (scenario(clients)?, exponential().build()?);
    let stopwatch = Stopwatch::start();
    let figures = fluid::run(&scenario, &policy)?;
    println!(
        "fluid model: {:.1} ms, {:.4} attempts per client",
        1e3 * stopwatch.seconds(),
        figures.attempts_per_client
    );
    Ok(())
}

fn print(name: &str, attempts: u64, seconds: f64) {
    println!("{name:<44} {attempts:>12} {seconds:>9.3} {:>12.1}", attempts as f64 / seconds / 1e6);
}

/// A stopwatch for CPU time, or for elapsed time if CPU time is not available.
struct Stopwatch {
    processor: Option<u64>,
    clock: Instant,
}

impl Stopwatch {
    fn start() -> Self {
        Self { processor: processor(), clock: Instant::now() }
    }

    fn seconds(&self) -> f64 {
        match (self.processor, processor()) {
            (Some(begin), Some(end)) => (end - begin) as f64 / 1e9,
            _ => self.clock.elapsed().as_secs_f64(),
        }
    }
}

/// Returns the CPU time of this process, in nanoseconds.
fn processor() -> Option<u64> {
    fs::read_to_string("/proc/self/schedstat").ok()?.split_whitespace().next()?.parse().ok()
}

/// Formats the peak memory of this process, in total and per client.
fn memory(clients: u64) -> String {
    let most = || {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().strip_suffix(" kB")?.parse::<u64>().ok()
    };
    most().map_or_else(
        || "unknown".to_owned(),
        |kb| format!("{:.0} MB, {:.1} bytes per client", kb as f64 / 1e3, kb as f64 * 1_024.0 / clients as f64),
    )
}
