use core::time::Duration;

use stagger_core::text::Compact;
use stagger_core::{Policy, Seed};
use stagger_sim::outage::{DefaultGuards, OutageFigures, OutageKind, OutageScenario};

use crate::analysis::{PolicyAnalysis, brief, thousands};
use crate::context::{Budgeted, DeploymentContext, Purpose};
use crate::rule::{Diagnosis, Rule, Severity};

pub(crate) static NO_BUDGET: Rule = Rule {
    code: "S016",
    name: "no-budget",
    severity: Severity::Warning,
    title: "no budget that suffices limits the retries of all calls together",
    rationale: "backoff spaces the retries of one call but does not reduce load: if the server is in trouble, every \
                call fails and every call retries",
    details: "Applies to more than 1,000 clients or 100 requests per second without a budget, and to a load that \
              exceeds the capacity if every attempt fails: a short stall can then sustain itself, because the server \
              is busy with retries, which fail because it is busy. If load and capacity are known, stalls of 2 s and \
              of a minute are simulated, without a budget and with each one, and the first with which the server \
              recovers from both is recommended; a budget that admits as many retries as none is not. The simulation \
              has as many processes as there are clients (10 if unknown), the queue that is given by `--backlog` (3 s \
              of work if unknown), the attempt timeout (1 s if unknown), and the hint of `--retry-after`; a small \
              system is simulated up to five times, and has to recover each time. Every process has the initial \
              allowance of its budget, which adds up in a large fleet. `--budget=NAME` checks whether the budget in \
              use suffices; `--budget` alone is accepted if every budget does. Does not apply to long-lived \
              connections, where a spread and reservations serve the same purpose. See N. Bronson et al., \"Metastable \
              Failures in Distributed Systems\", HotOS 2021, and the guide, \"Guards\".",
    check: no_budget,
};

/// Numbers of clients, and of requests per second, above which a budget is expected.
const CLIENTS: u64 = 1_000;
const REQUESTS: f64 = 100.0;

/// Returns the load and the capacity in requests per second, if both are known.
pub(super) fn rates(analysis: &PolicyAnalysis<'_>) -> Option<(f64, f64)> {
    Some((analysis.context.requests?.get(), analysis.context.capacity?.get()))
}

fn no_budget(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let known = analysis.context;
    let reconnects = known.purpose == Some(Purpose::Reconnecting);
    if !analysis.retries() || reconnects {
        return None;
    }
    let rates = rates(analysis);
    // The load if every attempt fails, should it exceed the capacity; without a limit of attempts, it always does.
    let mut is_exceeded = false;
    let mut if_all_fail = None;
    match (rates, analysis.attempts()) {
        // S021 reports a load above the capacity.
        (Some((load, capacity)), _) if load > capacity => return None,
        (Some(_), None) => is_exceeded = true,
        (Some((load, capacity)), Some(attempts)) => {
            let load = load * f64::from(attempts);
            if load > capacity {
                is_exceeded = true;
                if_all_fail = Some(format!("{load:.0}/s if every attempt fails; the capacity is {capacity}/s"));
            }
        }
        // Whether the guards suffice is known only by the simulation.
        (None, _) if !matches!(known.budget, None | Some(Budgeted::With(DefaultGuards::None))) => return None,
        (None, _) => {}
    }
    let load = match (known.requests, known.clients) {
        (Some(requests), _) if requests.get() > REQUESTS || is_exceeded => requests.to_string(),
        (_, Some(clients)) if clients.get() > CLIENTS => format!("{} clients", thousands(clients.get())),
        _ => return None,
    };
    let mut found = Diagnosis::new(format!("{load}; each call is sent {} while the server is down", analysis.times()));
    if let Some(fact) = if_all_fail {
        found = found.and(fact);
    }
    if rates.is_some() {
        found.simulation = Some(simulated);
    }
    Some(found.advise(
        "share one budget between all calls of a process; which one suffices depends on the load: pass --rps, \
         --capacity and --clients to simulate them, then --budget=NAME",
    ))
}

/// A budget that saves less than this share of the retries does not bind.
const BINDS: f64 = 0.1;

/// Simulates stalls without a budget, with the one in use, and with each other one until the finding is clear:
///
/// ```text
/// budget in use       finding
/// none                the first budget with which the server recovers, or that none suffices
/// one by its name     nothing if the server recovers with it; otherwise as without one
/// of unknown kind     nothing if the server recovers with every budget; otherwise the first with which it does
/// ```
fn simulated(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let (known, policy) = (analysis.context, analysis.policy);
    let found = no_budget(analysis)?;
    let processes = match known.clients {
        Some(clients) => u32::try_from(clients.get()).unwrap_or(u32::MAX),
        None => PROCESSES,
    };
    let Some(stalls) = Stalls::new(policy, rates(analysis)?, processes, known) else {
        return Some(found);
    };
    let without = stalls.run(policy, DefaultGuards::None);
    let retries = without.amplification - 1.0;
    let mut tried = vec![DefaultGuards::None];
    let mut outcomes = vec![without.describe("without a budget, the server")];
    let used = match known.budget {
        Some(Budgeted::Yes) if without.recovers() => return None,
        Some(Budgeted::Yes) => None,
        Some(Budgeted::With(guards)) => Some(guards),
        None => Some(DefaultGuards::None),
    };
    match used {
        None | Some(DefaultGuards::None) => {}
        Some(used) => {
            let outcome = stalls.run(policy, used);
            if outcome.recovers() {
                return None;
            }
            tried.push(used);
            outcomes.push(outcome.describe(used.name()));
        }
    }
    let mut recommended = None;
    let mut all_suffice = used.is_none();
    for guards in DefaultGuards::TRIED.into_iter().filter(|guards| Some(*guards) != used) {
        // Whether an unnamed budget suffices is known only if every budget does.
        if all_suffice && guards == DefaultGuards::Breaker {
            return None;
        }
        let outcome = stalls.run(policy, guards);
        let recovers = outcome.recovers();
        let binds = !without.recovers() || outcome.amplification - 1.0 < retries * (1.0 - BINDS);
        tried.push(guards);
        outcomes.push(outcome.describe(guards.name()));
        all_suffice &= recovers;
        if recommended.is_none() && recovers && binds {
            recommended = Some(guards);
        }
        if recommended.is_some() && !all_suffice {
            break;
        }
    }
    if recommended.is_none() && without.recovers() {
        // Nothing is wrong, and no budget would change anything.
        return None;
    }
    let lengths = STALLS_FOR.map(brief).join(" and ");
    let size = if stalls.is_scaled() { ", in proportion," } else { "" };
    let many = thousands(u64::from(stalls.processes()));
    let of_processes = if many == "1" { "1 process".to_owned() } else { format!("{many} processes") };
    let what = format!("after stalls of {lengths}, simulated{size} with {of_processes}: {}", outcomes.join("; "));
    let command = format!("simulated by: {}", stalls.command(policy, &tried));
    let advice = match (recommended, used) {
        (Some(guards), None) => format!(
            "whether this budget suffices depends on its kind: share {} between all calls of a process, then pass \
             --budget={}",
            guards.rust_code(),
            guards.name()
        ),
        (Some(guards), _) => format!(
            "share one guard between all calls of a process: {} on their Retrier; then pass --budget={}",
            guards.rust_code(),
            guards.name()
        ),
        (None, _) => "no budget or breaker with its default settings suffices at this load: fewer attempts, more \
                      capacity, or settings that you have simulated"
            .to_owned(),
    };
    let facts = found.facts.into_iter().chain([what, command]).collect();
    Some(Diagnosis { facts, ..Diagnosis::default() }.advise(advice))
}

/// Stalls of a server under the load of a deployment: the outages that `stagger simulate outage` runs by default.
#[derive(Clone, Copy, Debug)]
struct Stalls {
    scenarios: [OutageScenario; 2],
    rate: f64,
    capacity: f64,
    processes: u32,
    queue: u32,
    timeout: Option<Duration>,
    retry_after: Option<Duration>,
    scaled: bool,
    /// Runs with consecutive seeds: in a small system, chance decides whether one of them recovers.
    runs: u64,
}

/// How long the server stalls: briefly, so that a budget still has its allowance, and longer than most retries take.
const STALLS_FOR: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(60)];
const BEGINS_AT: Duration = Duration::from_secs(20);
const HORIZON: Duration = Duration::from_secs(200);
/// Number of processes if it is not known, as in `stagger simulate outage`.
const PROCESSES: u32 = 10;
/// The queue of the server, in seconds of work.
const QUEUE_SECONDS: f64 = 3.0;
/// Number of attempts that are fast enough for a lint.
const ATTEMPTS: f64 = 800_000.0;
/// Runs of each stall, if they make no more attempts than this together. In a larger system chance decides less.
const RUNS: u64 = 5;
const ATTEMPTS_OF_RUNS: f64 = 200_000.0;
/// Number of requests per second below which a smaller simulation says little.
const LEAST_RATE: f64 = 20.0;
/// Shortest time that an attempt takes: a round trip.
pub(super) const ROUND_TRIP: f64 = 0.01;

impl Stalls {
    /// Creates the stalls. A load that takes too long to simulate is represented by a smaller one in proportion;
    /// returns `None` if that would be too small.
    fn new(policy: &Policy, (rate, capacity): (f64, f64), processes: u32, known: &DeploymentContext) -> Option<Self> {
        let timeout = known.attempt_timeout;
        let wait = policy.mean(1)?.as_secs_f64() + ROUND_TRIP;
        let mut attempts_per_call = HORIZON.as_secs_f64() / wait;
        if let Some(most) = policy.max_attempts() {
            attempts_per_call = attempts_per_call.min(f64::from(most.get()));
        }
        let attempts = rate * HORIZON.as_secs_f64() * attempts_per_call;
        let scale = (attempts / ATTEMPTS).max(1.0);
        let (mut rate, mut capacity) = (rate, capacity);
        if scale > 1.0 {
            (rate, capacity) = (round(rate / scale), round(capacity / scale));
            if rate < LEAST_RATE {
                return None;
            }
        }
        let processes = ((f64::from(processes) / scale).round() as u32).max(1);
        let queue = match known.backlog {
            Some(most) => f64::from(most.get()) / scale,
            None => capacity * QUEUE_SECONDS,
        };
        let queue = queue.ceil().max(1.0) as u32;
        let mut builder =
            OutageScenario::builder(rate).capacity(capacity).queue(queue).processes(processes).horizon(HORIZON);
        if let Some(timeout) = timeout {
            builder = builder.timeout(timeout);
        }
        if let Some(hint) = known.retry_after {
            builder = builder.retry_after(hint);
        }
        let [brief, long] = STALLS_FOR.map(|down| builder.outage(OutageKind::Stall, BEGINS_AT, down).build());
        Some(Self {
            scenarios: [brief.ok()?, long.ok()?],
            rate,
            capacity,
            processes,
            queue,
            timeout,
            retry_after: known.retry_after,
            scaled: scale > 1.0,
            runs: ((ATTEMPTS_OF_RUNS / attempts) as u64).clamp(1, RUNS),
        })
    }

    /// Returns whether a smaller load represents the actual one.
    const fn is_scaled(&self) -> bool {
        self.scaled
    }

    const fn processes(&self) -> u32 {
        self.processes
    }

    /// Simulates the stalls with these guards in each process, up to the first from which the server does not recover.
    fn run(&self, policy: &Policy, guards: DefaultGuards) -> Outcome {
        let mut outcome = Outcome { amplification: 0.0, recoveries: Vec::new(), failed: None };
        for (nth, scenario) in self.scenarios.iter().enumerate() {
            let seeds = (1..=self.runs).map(Seed::new);
            let runs: Vec<_> = seeds.map(|seed| scenario.run(policy, |seed| guards.process(seed), seed)).collect();
            if nth == 0 {
                outcome.amplification = runs.iter().map(OutageFigures::amplification).sum::<f64>() / self.runs as f64;
            }
            let recoveries: Vec<Duration> = runs.iter().filter_map(OutageFigures::recovery).collect();
            if recoveries.len() < runs.len() {
                outcome.failed = Some((runs.len() - recoveries.len(), runs.len()));
                break;
            }
            outcome.recoveries.push(recoveries.iter().sum::<Duration>() / recoveries.len() as u32);
        }
        outcome
    }

    /// Returns the command that simulates the same.
    fn command(&self, policy: &Policy, guards: &[DefaultGuards]) -> String {
        let names = guards.iter().map(|guards| guards.name()).collect::<Vec<_>>().join(",");
        let mut command = format!(
            "stagger simulate outage --rate {}/s --capacity {}/s --backlog {} --processes {}",
            self.rate, self.capacity, self.queue, self.processes
        );
        if let Some(timeout) = self.timeout {
            command += &format!(" --timeout {}", Compact(timeout));
        }
        if let Some(hint) = self.retry_after {
            command += &format!(" --retry-after {}", Compact(hint));
        }
        let down = STALLS_FOR.map(|down| Compact(down).to_string()).join(",");
        command += &format!(" --sweep down={down} --horizon {}", Compact(HORIZON));
        if self.runs > 1 {
            command += &format!(" --seeds {}", self.runs);
        }
        command + &format!(" --guards {names} -p '{policy}'")
    }
}

/// What came of the stalls with the same guards.
#[derive(Clone, Debug, PartialEq)]
struct Outcome {
    /// Attempts per call in the first stall.
    amplification: f64,
    /// The mean recoveries from the first stalls, up to the first from which the server does not recover in each run.
    recoveries: Vec<Duration>,
    /// In how many of the runs of that stall the server does not recover.
    failed: Option<(usize, usize)>,
}

impl Outcome {
    /// Returns whether the server recovers from all stalls.
    fn recovers(&self) -> bool {
        self.recoveries.len() == STALLS_FOR.len()
    }

    /// Describes it: `tokens recovers after 18s and 31s`.
    fn describe(&self, name: &str) -> String {
        let fails = match self.failed {
            Some((failed, runs)) if failed < runs => format!("stays down in {failed} of {runs} runs"),
            _ => "never recovers".to_owned(),
        };
        match &self.recoveries[..] {
            [] => format!("{name} {fails}"),
            [first] => {
                format!("{name} recovers after {} from the first and {fails} from the second", brief(*first))
            }
            [first, second, ..] => format!("{name} recovers after {} and {}", brief(*first), brief(*second)),
        }
    }
}

/// Rounds to three digits.
fn round(number: f64) -> f64 {
    let unit = 10_f64.powi(number.log10().floor() as i32 - 2);
    ((number / unit).round() * unit * 1e6).round() / 1e6
}
