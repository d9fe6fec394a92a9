use core::time::Duration;

use stagger_sim::outage::DefaultGuards;

use crate::analysis::{PolicyAnalysis, brief, thousands};
use crate::context::{Budgeted, Purpose};
use crate::rule::{Diagnosis, Rule, Severity};
use crate::stalls::{Effort, Stall, Stalls};

pub(crate) static NO_BUDGET: Rule = Rule {
    code: "S016",
    name: "no-budget",
    severity: Severity::Warning,
    title: "no budget that suffices limits the retries of all calls together",
    rationale: "backoff spaces the retries of one call but does not reduce load: if the server is in trouble, every \
                call fails and every call retries",
    details: "Applies to more than 1,000 clients or 100 requests per second without a budget, and to a load that \
              exceeds the capacity if every attempt fails: a short stall can then sustain itself, because the server \
              is busy with retries, which fail because it is busy. If load and capacity are known, stalls of 2 s, 15 s \
              and a minute (or of the lengths around `--down`) are simulated without retries, without a budget and \
              with each one. The rule then applies if the server stays down, or if the retries cost too much: it takes \
              more than twice as long plus 5 s to recover as without retries, or more than 2 points more of the \
              requests are lost, and some guard at least halves this excess. Of those guards, the one that loses the \
              fewest requests is recommended. The simulation has as many processes as there are clients (10 if \
              unknown), the queue that is given by `--backlog` (3 s of work if unknown), the attempt timeout (1 s if \
              unknown), and the hint of `--retry-after`; a small system is simulated up to five times, and has to \
              recover each time. Every process has the initial allowance of its budget, and they add up: with \
              `Tokens::new()`, 200 processes may make 20,000 retries before the first is refused. `--budget=NAME` \
              checks whether the budget in use suffices; `--budget` alone is accepted if every budget does. Does not \
              apply to long-lived connections, where a spread and reservations serve the same purpose. See N. Bronson \
              et al., \"Metastable Failures in Distributed Systems\", HotOS 2021, and the guide, \"Guards\".",
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

/// What is fast enough for a lint.
const EFFORT: Effort = Effort { most_attempts: 800_000.0, afterward: Duration::from_secs(120), runs: 5 };

/// How much longer than without retries a recovery may take, as a multiple and in seconds, and how many more of the
/// requests may be lost.
const RECOVERY_TIMES: f64 = 2.0;
const RECOVERY_PLUS: f64 = 5.0;
const MORE_LOST: f64 = 0.02;
/// The part of the excess that a guard may leave to be recommended.
const LEFT: f64 = 0.5;

/// What the stalls cost with some guards, beyond what they cost without retries.
#[derive(Clone, Debug)]
struct Cost {
    guards: DefaultGuards,
    stalls: Vec<Stall>,
    /// The excess in multiples of what is tolerated, the largest of all stalls; infinite if the server stays down.
    excess: f64,
    /// The mean share of the requests that are lost.
    lost: f64,
}

impl Cost {
    fn new(guards: DefaultGuards, stalls: Vec<Stall>, without_retries: &[Stall]) -> Self {
        let lost = stalls.iter().map(|stall| stall.lost).sum::<f64>() / stalls.len().max(1) as f64;
        let mut excess = 0.0_f64;
        for (stall, without) in stalls.iter().zip(without_retries) {
            let [took, takes] = [stall, without].map(|stall| stall.recovery.as_secs_f64());
            let tolerated = (RECOVERY_TIMES - 1.0) * takes + RECOVERY_PLUS;
            excess = excess.max((took - takes) / tolerated).max((stall.lost - without.lost) / MORE_LOST);
        }
        if stalls.iter().any(|stall| stall.down > 0) {
            excess = f64::INFINITY;
        }
        Self { guards, stalls, excess, lost }
    }

    fn is_down(&self) -> bool {
        self.excess.is_infinite()
    }

    fn is_tolerated(&self) -> bool {
        self.excess <= 1.0
    }

    /// Returns whether these guards leave at most half of the excess.
    fn improves(&self, used: &Self) -> bool {
        !self.is_down() && self.excess <= LEFT * used.excess
    }

    /// Returns the guards that improve on the ones in use, those that lose least first.
    fn better<'a>(used: &Self, others: &'a [Self]) -> Vec<&'a Self> {
        let mut improving: Vec<_> = others.iter().filter(|cost| cost.improves(used)).collect();
        improving.sort_by(|one, other| one.lost.total_cmp(&other.lost).then(one.excess.total_cmp(&other.excess)));
        improving
    }

    /// Describes it: `tokens recovers after 18s, 9s and 31s, 4.2% lost`.
    fn describe(&self, name: &str) -> String {
        let recovered: Vec<String> =
            self.stalls.iter().filter(|stall| stall.down == 0).map(|stall| brief(stall.recovery)).collect();
        let fails = match self.stalls.last() {
            Some(last) if last.down > 0 && last.down < last.runs => {
                format!("stays down in {} of {} runs", last.down, last.runs)
            }
            Some(last) if last.down > 0 => "never recovers".to_owned(),
            _ => return format!("{name} recovers after {}, {} lost", listed(&recovered), of_requests(self.lost)),
        };
        match recovered.len() {
            0 => format!("{name} {fails}"),
            1 => format!("{name} recovers after {} from the first and {fails} from the second", recovered[0]),
            _ => format!("{name} recovers after {} from the first two and {fails} from the third", listed(&recovered)),
        }
    }
}

fn of_requests(share: f64) -> String {
    format!("{:.1}%", 100.0 * share.max(0.0))
}

fn listed(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [most @ .., last] => format!("{} and {last}", most.join(", ")),
    }
}

/// Simulates stalls without retries, without a budget, with the one in use, and with each other one if that costs too
/// much:
///
/// ```text
/// budget in use       finding
/// none                what the retries cost, and the budget that loses least; nothing if it is tolerated
/// one by its name     the same, of the retries that it lets through
/// of unknown kind     nothing if every budget is tolerated; otherwise the one that loses least
/// ```
fn simulated(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let (known, policy) = (analysis.context, analysis.policy);
    let found = no_budget(analysis)?;
    let Some(stalls) = Stalls::new(policy, known, EFFORT) else {
        return Some(found);
    };
    let once = policy.to_builder().max_attempts(1).build().ok()?;
    let without_retries = stalls.run(&once, DefaultGuards::None);
    let cost = |guards| Cost::new(guards, stalls.run(policy, guards), &without_retries);
    let (unguarded, used) = match known.budget {
        None | Some(Budgeted::With(DefaultGuards::None) | Budgeted::Yes) => (cost(DefaultGuards::None), None),
        Some(Budgeted::With(guards)) => {
            let used = cost(guards);
            if used.is_tolerated() {
                return None;
            }
            (cost(DefaultGuards::None), Some(used))
        }
    };
    let is_unknown = known.budget == Some(Budgeted::Yes);
    if used.is_none() && unguarded.is_tolerated() {
        return None;
    }
    let in_use = used.as_ref().map(|used| used.guards);
    let others = DefaultGuards::TRIED.into_iter().filter(|guards| Some(*guards) != in_use);
    let others: Vec<Cost> = others.map(cost).collect();
    let is_costly = |used: &Cost| !used.is_tolerated() && (used.is_down() || !Cost::better(used, &others).is_empty());
    let applies = match &used {
        Some(used) => is_costly(used),
        // Whether an unnamed budget suffices is known only if every budget does.
        None if is_unknown => others.iter().any(|cost| cost.guards != DefaultGuards::Breaker && is_costly(cost)),
        None => is_costly(&unguarded),
    };
    if !applies {
        return None;
    }
    let better = Cost::better(used.as_ref().unwrap_or(&unguarded), &others);
    let recommended = better.into_iter().find(|cost| stalls.are_survived(policy, cost.guards));
    let baseline = Cost::new(DefaultGuards::None, without_retries.clone(), &without_retries);
    let mut outcomes =
        vec![baseline.describe("without retries, the server"), unguarded.describe("without a budget, it")];
    let shown: Vec<&Cost> = used.iter().chain(&others).collect();
    outcomes.extend(shown.iter().map(|cost| cost.describe(cost.guards.name())));
    let tried: Vec<DefaultGuards> =
        [DefaultGuards::None].into_iter().chain(shown.iter().map(|cost| cost.guards)).collect();
    let lengths = listed(&stalls.lengths().map(brief));
    let size = if stalls.is_scaled() { ", in proportion," } else { "" };
    let many = thousands(u64::from(stalls.processes()));
    let of_processes = if many == "1" { "1 process".to_owned() } else { format!("{many} processes") };
    let what = format!("after stalls of {lengths}, simulated{size} with {of_processes}: {}", outcomes.join("; "));
    let command = format!("simulated by: {}; without retries: the same with -n 1", stalls.command(policy, &tried));
    let advice = match recommended {
        Some(Cost { guards, .. }) if is_unknown => format!(
            "whether this budget suffices depends on its kind: share {} between all calls of a process, then pass \
             --budget={}",
            guards.rust_code(),
            guards.name()
        ),
        Some(Cost { guards, .. }) => format!(
            "share one guard between all calls of a process: {} on their Retrier; then pass --budget={}",
            guards.rust_code(),
            guards.name()
        ),
        None => "no budget or breaker with its default settings suffices at this load: fewer attempts, more \
                 capacity, or settings that you have simulated"
            .to_owned(),
    };
    let facts = found.facts.into_iter().chain([what, command]).collect();
    Some(Diagnosis { facts, ..Diagnosis::default() }.advise(advice))
}
