use core::time::Duration;

use stagger_core::text::Compact;
use stagger_core::{Policy, Seed};

use crate::analysis::brief;
use crate::context::{DeploymentContext, as_word};
use stagger_sim::outage::{DefaultGuards, OutageFigures, OutageKind, OutageScenario, OutageScenarioBuilder};

/// Whether guards limit the retries of all calls of a process together, and which.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Budgeted {
    /// A budget is used. Whether it suffices is known only if every budget suffices.
    Yes,
    /// These guards are used.
    With(DefaultGuards),
}

const WORDS: [(&str, Budgeted); 7] = [
    ("yes", Budgeted::Yes),
    ("no", Budgeted::With(DefaultGuards::None)),
    named(DefaultGuards::Tokens),
    named(DefaultGuards::Window),
    named(DefaultGuards::Throttle),
    named(DefaultGuards::SuccessRate),
    named(DefaultGuards::Breaker),
];

const fn named(guards: DefaultGuards) -> (&'static str, Budgeted) {
    (guards.name(), Budgeted::With(guards))
}

as_word!(Budgeted, WORDS, "yes, no, tokens, window, throttle, success-rate or breaker");

/// Stalls of a server under the load of a deployment: the outages that `stagger simulate outage` runs by default.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stalls {
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
pub(super) const STALLS_FOR: [Duration; 2] = [Duration::from_secs(2), Duration::from_secs(60)];
const BEGINS_AT: Duration = Duration::from_secs(20);
const HORIZON: Duration = Duration::from_secs(200);
/// Number of processes if it is not known, as in `stagger simulate outage`.
pub(super) const PROCESSES: u32 = 10;
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
    pub(super) fn new(
        policy: &Policy,
        (rate, capacity): (f64, f64),
        processes: u32,
        known: &DeploymentContext,
    ) -> Option<Self> {
        let timeout = known.attempt_timeout;
        let wait = policy.mean(1)?.as_secs_f64() + ROUND_TRIP;
        let most = policy.max_attempts().map_or(f64::INFINITY, |attempts| f64::from(attempts.get()));
        let attempts = rate * HORIZON.as_secs_f64() * most.min(HORIZON.as_secs_f64() / wait);
        let scale = (attempts / ATTEMPTS).max(1.0);
        let (rate, capacity) =
            if scale > 1.0 { (round(rate / scale), round(capacity / scale)) } else { (rate, capacity) };
        if scale > 1.0 && rate < LEAST_RATE {
            return None;
        }
        let processes = ((f64::from(processes) / scale).round() as u32).max(1);
        let queue = known.backlog.map_or(capacity * QUEUE_SECONDS, |most| f64::from(most.get()) / scale);
        let queue = queue.ceil().max(1.0) as u32;
        let builder = OutageScenario::builder(rate).capacity(capacity).queue(queue).processes(processes);
        let builder = timeout.into_iter().fold(builder, |builder, timeout| builder.timeout(timeout)).horizon(HORIZON);
        let builder = known.retry_after.into_iter().fold(builder, OutageScenarioBuilder::retry_after);
        let of = |down| builder.outage(OutageKind::Stall, BEGINS_AT, down).build();
        let [brief, long] = STALLS_FOR.map(of);
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
    pub(super) const fn is_scaled(&self) -> bool {
        self.scaled
    }

    pub(super) const fn processes(&self) -> u32 {
        self.processes
    }

    /// Simulates the stalls with these guards in each process, up to the first from which the server does not recover.
    pub(super) fn run(&self, policy: &Policy, guards: DefaultGuards) -> Outcome {
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
    pub(super) fn command(&self, policy: &Policy, guards: &[DefaultGuards]) -> String {
        let names = guards.iter().map(|guards| guards.name()).collect::<Vec<_>>().join(",");
        let timeout = self.timeout.map_or(String::new(), |timeout| format!(" --timeout {}", Compact(timeout)));
        let hint = self.retry_after.map_or(String::new(), |hint| format!(" --retry-after {}", Compact(hint)));
        let seeds = if self.runs > 1 { format!(" --seeds {}", self.runs) } else { String::new() };
        let down = STALLS_FOR.map(|down| Compact(down).to_string()).join(",");
        format!(
            "stagger simulate outage --rate {}/s --capacity {}/s --backlog {} --processes {}{timeout}{hint} --sweep \
             down={down} --horizon {}{seeds} --guards {names} -p '{policy}'",
            self.rate,
            self.capacity,
            self.queue,
            self.processes,
            Compact(HORIZON)
        )
    }
}

/// What came of the stalls with the same guards.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Outcome {
    /// Attempts per call in the first stall.
    pub(super) amplification: f64,
    /// The mean recoveries from the first stalls, up to the first from which the server does not recover in each run.
    recoveries: Vec<Duration>,
    /// In how many of the runs of that stall the server does not recover.
    failed: Option<(usize, usize)>,
}

impl Outcome {
    /// Returns whether the server recovers from all stalls.
    pub(super) fn recovers(&self) -> bool {
        self.recoveries.len() == STALLS_FOR.len()
    }

    /// Describes it: `tokens recovers after 18s and 31s`.
    pub(super) fn describe(&self, name: &str) -> String {
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
