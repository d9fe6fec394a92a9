use crate::analysis::{PolicyAnalysis, brief, thousands};
use crate::budget::{Budgeted, PROCESSES, STALLS_FOR, Stalls};
use crate::context::Purpose;
use crate::rule::{Diagnosis, Rule, Severity};
use stagger_sim::outage::DefaultGuards;

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
              recovers from both is recommended; a budget that admits as many retries as none is not. The simulation has as many \
              processes as there are clients (10 if unknown), the queue that is given by `--backlog` (3 s of work if \
              unknown), the attempt timeout (1 s if unknown), and the hint of `--retry-after`; a small system is simulated up to five times, and has to \
              recover each time. Every process has the initial allowance of its budget, which adds up in a large fleet. \
              `--budget=NAME` checks whether the budget in use suffices; `--budget` alone is accepted if every \
              budget does. Does not apply to long-lived connections, where a spread and reservations serve the same \
              purpose. See N. Bronson et al., \"Metastable Failures in Distributed Systems\", HotOS 2021, and the \
              guide, \"Guards\".",
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
    let many = known.clients.filter(|clients| clients.get() > CLIENTS);
    let busy = known.requests.filter(|requests| requests.get() > REQUESTS);
    let guarded = known.budget.is_some_and(|budget| budget != Budgeted::With(DefaultGuards::None));
    let reconnects = known.purpose == Some(Purpose::Reconnecting);
    let rates = rates(analysis);
    // S021 reports a load above the capacity.
    let hopeless = rates.is_some_and(|(load, capacity)| load > capacity);
    if !analysis.retries() || reconnects || hopeless || (guarded && rates.is_none()) {
        return None;
    }
    let exceeds = |(load, capacity): &(f64, f64)| {
        analysis.attempts().is_none_or(|attempts| load * f64::from(attempts) > *capacity)
    };
    let load = match (many, known.requests.filter(|_| busy.is_some() || rates.as_ref().is_some_and(exceeds))) {
        (_, Some(requests)) => requests.to_string(),
        (many, None) => format!("{} clients", thousands(many?.get())),
    };
    let found = Diagnosis::new(format!("{load}; each call is sent {} while the server is down", analysis.times()));
    let all_fail = rates.zip(analysis.attempts()).filter(|_| rates.as_ref().is_some_and(exceeds));
    let found = found.and_if_some(all_fail.map(|((load, capacity), attempts)| {
        format!("{:.0}/s if every attempt fails; the capacity is {capacity}/s", load * f64::from(attempts))
    }));
    let advice = "share one budget between all calls of a process; which one suffices depends on the load: pass --rps, \
                  --capacity and --clients to simulate them, then --budget=NAME";
    Some(Diagnosis { simulation: rates.map(|_| simulated as _), ..found.advise(advice) })
}

/// A budget that saves less than this share of the retries does not bind.
const BINDS: f64 = 0.1;

fn simulated(analysis: &PolicyAnalysis<'_>) -> Option<Diagnosis> {
    let (known, policy) = (analysis.context, analysis.policy);
    let found = no_budget(analysis)?;
    let processes = known.clients.map_or(PROCESSES, |clients| u32::try_from(clients.get()).unwrap_or(u32::MAX));
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
    if let Some(used) = used.filter(|used| *used != DefaultGuards::None) {
        let outcome = stalls.run(policy, used);
        if outcome.recovers() {
            return None;
        }
        tried.push(used);
        outcomes.push(outcome.describe(used.name()));
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
        recommended = recommended.or((recovers && binds).then_some(guards));
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
