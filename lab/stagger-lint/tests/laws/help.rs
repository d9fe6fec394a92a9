//! What `check` suggests makes no outage worse.

use core::time::Duration;

use stagger::{Policy, Seed};
use stagger_lint::{DeploymentContext, Finding, Severity, check, fix};
use stagger_sim::fluid;
use stagger_sim::outage::{DefaultGuards, OutageFigures};
use stagger_sim::reconnect::ReconnectFigures;

use super::check::Cost;
use super::circumstances::{Calls, Fleet};
use super::draws::Draws;
use super::law::{Law, Verdict};
use super::policies::{self, Delays};

pub(crate) const LAW: Law = Law {
    name: "help",
    statement: "the fix of a note makes neither attempts nor peak nor recovery a tenth worse, that of a warning does \
                not raise their product, and a recommended guard lowers what retries cost",
    share: 100,
    case,
};

fn case(seed: Seed) -> Verdict {
    let mut draws = Draws::new(seed);
    let verdict = match draws.share() {
        0.0..0.6 => fleet(&mut draws),
        0.6..0.8 => calls(&mut draws),
        _ => budget(&mut draws),
    };
    verdict.unwrap_or(Verdict::Silent("not a valid scenario"))
}

const NO_HELP: Verdict = Verdict::Silent("no help");

/// Runs before and after.
const RUNS: usize = 3;
/// The most by which the fix of a note may worsen a figure.
const TOLERANCE: f64 = 0.1;
/// Standard errors of a difference that are noise.
const NOISE: f64 = 4.0;

/// A suggestion, or all of them.
struct Help {
    name: &'static str,
    severity: Severity,
    policy: Policy,
}

/// Returns one of the suggestions of `check`, or what `fix` makes of all of them.
fn suggested(draws: &mut Draws, policy: &Policy, context: &DeploymentContext) -> Option<Help> {
    let findings = check(policy, context);
    if draws.is(0.3) {
        let fixed = fix(policy, context, &[]);
        let warnings = |findings: &[Finding]| {
            findings.iter().filter(|finding| finding.rule().severity() == Severity::Warning).count()
        };
        let has_fewer = warnings(&check(&fixed, context)) < warnings(&findings);
        let severity = if has_fewer { Severity::Warning } else { Severity::Note };
        return (fixed != *policy).then_some(Help { name: "fix", severity, policy: fixed });
    }
    let mut helps = Vec::new();
    for finding in &findings {
        if let Some(policy) = finding.suggestion().policy() {
            helps.push((finding.rule(), *policy));
        }
    }
    let (rule, policy) = draws.one_of(&helps)?;
    Some(Help { name: rule.code(), severity: rule.severity(), policy })
}

/// The mean and the standard error of a figure over the runs.
#[derive(Clone, Copy, Debug)]
struct Mean {
    mean: f64,
    error: f64,
}

impl Mean {
    fn of(values: &[f64]) -> Self {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
        Self { mean, error: (variance / count).sqrt() }
    }

    /// The difference from an earlier one, as a logarithm, and its standard error.
    fn change_from(self, other: Self) -> (f64, f64) {
        let relative = |mean: Self| mean.error / mean.mean;
        ((self.mean / other.mean).ln(), relative(self).hypot(relative(other)))
    }
}

/// What came of an outage.
struct Measured {
    attempts: Mean,
    /// Attempts within the busiest second, in multiples of the capacity.
    peak: Mean,
    /// Time from the end of the outage until 99 % are back, in seconds.
    recovery: Mean,
}

impl Measured {
    /// Returns what has become worse, by more than noise, if this severity does not permit it.
    fn worse(before: &[Self], after: &[Self], severity: Severity) -> Option<String> {
        let (mut total, mut variance) = (0.0, 0.0);
        for (nth, (before, after)) in before.iter().zip(after).enumerate() {
            let figures = [
                ("attempts", after.attempts, before.attempts),
                ("peak", after.peak, before.peak),
                ("recovery", after.recovery, before.recovery),
            ];
            for (name, after, before) in figures {
                let (change, error) = after.change_from(before);
                (total, variance) = (total + change, variance + error * error);
                if severity == Severity::Note && change > (1.0 + TOLERANCE).ln() + NOISE * error {
                    return Some(format!("outage {nth}, {name} {:.2} -> {:.2}", before.mean, after.mean));
                }
            }
        }
        let is_raised = severity == Severity::Warning && total > 0.01 + NOISE * variance.sqrt();
        is_raised.then(|| format!("the product is {:.2} times as high", total.exp()))
    }
}

/// Stands for clients that do not return.
const NEVER: Duration = Duration::from_secs(86_400);
/// Attempts of a simulation.
const MOST_ATTEMPTS: f64 = 60_000.0;

/// Returns whether the fluid model computes this outage, with more attempts than are simulated.
fn is_large(fleet: &Fleet, policy: &Policy, down: Duration) -> Option<bool> {
    let figures = fluid::run(&fleet.with_outage(down, u64::MAX)?, policy).ok();
    Some(figures.is_some_and(|figures| figures.attempts_per_client * f64::from(fleet.clients) > MOST_ATTEMPTS))
}

fn of_fleet(fleet: &Fleet, policy: &Policy, (down, is_large): (Duration, bool), seeds: &[Seed]) -> Option<Measured> {
    let since = |at: Option<Duration>| at.unwrap_or(NEVER).saturating_sub(down).as_secs_f64().max(0.1);
    // Many attempts are as many shares of the clients as say anything.
    let whole = fleet.with_outage(down, u64::MAX)?;
    let fluid = fluid::run(&whole, policy).ok();
    if let Some(figures) = &fluid {
        if is_large {
            let peak = figures.peak_second() * f64::from(fleet.clients) / fleet.capacity;
            let [attempts, peak, recovery] =
                [figures.attempts_per_client, peak, since(figures.t99)].map(|figure| Mean::of(&[figure]));
            return Some(Measured { attempts, peak, recovery });
        }
    }
    let wait = policy.mean(8).or(policy.mean(1)).unwrap_or_default().as_secs_f64() + 0.05;
    let most = MOST_ATTEMPTS / (1.0 + (down.as_secs_f64() + fleet.window()) / wait);
    let most = if fluid.is_some() { u64::MAX } else { most.max(200.0) as u64 };
    let scenario = fleet.with_outage(down, most)?;
    let runs: Vec<_> = seeds.iter().map(|seed| scenario.run(policy, *seed)).collect();
    let mean = |figure: &dyn Fn(&ReconnectFigures) -> f64| Mean::of(&runs.iter().map(figure).collect::<Vec<_>>());
    Some(Measured {
        attempts: mean(&|run| run.attempts_per_client().max(1.0)),
        peak: mean(&|run| {
            let peak = run.peak_second() as f64 / scenario.rate();
            // Clients that give up without an attempt are no better than those that make one.
            peak.max(if run.attempts_per_client() < 0.5 { 1.0 } else { 0.01 })
        }),
        recovery: mean(&|run| since(run.t99)),
    })
}

fn fleet(draws: &mut Draws) -> Option<Verdict> {
    let mut fleet = Fleet::draw(draws)?;
    let lengths = fleet.told(draws);
    let window = fleet.window();
    let policy = policies::any(draws, Delays { shortest: 0.02, longest: (2.0 * window).clamp(1.0, 60.0) });
    let Some(Help { name, severity, policy: helped }) = suggested(draws, &policy, &fleet.context) else {
        return Some(NO_HELP);
    };
    let seeds = [(); RUNS].map(|()| draws.seed());
    let original = policy;
    let measured = |policy: &Policy| -> Option<Vec<Measured>> {
        let of_outage = |down: &Duration| {
            // Both policies are measured in the same way.
            let large = [is_large(&fleet, &original, *down)?, is_large(&fleet, &helped, *down)?];
            of_fleet(&fleet, policy, (*down, large.contains(&true)), &seeds)
        };
        lengths.iter().map(of_outage).collect()
    };
    let worse = Measured::worse(&measured(&policy)?, &measured(&helped)?, severity);
    Some(match worse {
        None => Verdict::Held(name),
        Some(what) => Verdict::Broken(format!(
            "{name}: {what}; {lengths:?}; `{policy}` -> `{helped}`; {}",
            fleet.command(&policy)
        )),
    })
}

/// Simulates stalls of these lengths, up to the first from which the server does not recover in some run.
fn of_calls(
    calls: &Calls,
    lengths: &[Duration],
    runs: impl Fn(&Calls) -> Vec<OutageFigures>,
) -> Vec<Vec<OutageFigures>> {
    let mut all: Vec<Vec<OutageFigures>> = Vec::new();
    for calls in lengths.iter().filter_map(|down| calls.with_stall(*down)) {
        if all.last().is_some_and(|runs| runs.iter().any(|run| run.state_at_horizon().is_down())) {
            break;
        }
        all.push(runs(&calls));
    }
    all
}

fn calls(draws: &mut Draws) -> Option<Verdict> {
    let mut calls = Calls::draw(draws)?;
    let lengths = calls.told(draws);
    let policy = policies::any(draws, Delays { shortest: 0.01, longest: 10.0 });
    let Some(Help { name, severity, policy: helped }) = suggested(draws, &policy, &calls.context) else {
        return Some(NO_HELP);
    };
    // In a small system chance decides whether one of a few runs falls.
    let seeds = [(); 4 * RUNS].map(|()| draws.seed());
    let measured = |policy: &Policy| -> Vec<Measured> {
        let runs = |calls: &Calls| seeds.map(|seed| calls.run(policy, calls.budget, seed)).to_vec();
        let mean = |runs: &[OutageFigures], figure: &dyn Fn(&OutageFigures) -> f64| {
            Mean::of(&runs.iter().map(|run| figure(run).max(0.01)).collect::<Vec<_>>())
        };
        let all = of_calls(&calls, &lengths, runs);
        all.iter()
            .map(|runs| Measured {
                attempts: mean(runs, &OutageFigures::amplification),
                peak: mean(runs, &|run| run.peak_second() as f64),
                // Of a server that does not recover, no more is known than that it takes longer.
                recovery: mean(runs, &|run| run.recovery().unwrap_or(calls.afterward()).as_secs_f64().max(1.0)),
            })
            .collect()
    };
    Some(match Measured::worse(&measured(&policy), &measured(&helped), severity) {
        None => Verdict::Held(if name == "fix" { "fix of calls" } else { "calls" }),
        Some(what) => Verdict::Broken(format!(
            "{name}: {what}; {lengths:?}; `{policy}` -> `{helped}`; {}",
            calls.command(&policy, calls.budget)
        )),
    })
}

/// The part of the excess that a guard may leave; the rule says half.
const LEFT: f64 = 0.75;

/// Tries the budget that S016 recommends: what the retries cost is less with it, or little.
fn budget(draws: &mut Draws) -> Option<Verdict> {
    let mut calls = Calls::draw(draws)?;
    let lengths = calls.told(draws);
    let policy = policies::any(draws, Delays { shortest: 0.01, longest: 10.0 });
    let findings = check(&policy, &calls.context);
    let found = findings.iter().find(|finding| finding.rule().code() == "S016");
    let Some(advice) = found.and_then(|finding| finding.suggestion().advice()) else { return Some(NO_HELP) };
    let said = DefaultGuards::TRIED.into_iter().find(|guards| advice.ends_with(&format!("--budget={}", guards.name())));
    let Some(said) = said else { return Some(Verdict::Silent("no budget recommended")) };
    let seeds = [(); 4 * RUNS].map(|()| draws.seed());
    let once = policy.to_builder().max_attempts(1).build().ok()?;
    let stalls: Vec<Calls> = lengths.iter().filter_map(|down| calls.with_stall(*down)).collect();
    // The excess in the worst of the stalls; `None` if the server stays down.
    let excess = |budget| {
        let mut most = 0.0_f64;
        for calls in &stalls {
            let without = Cost::of(calls, &once, DefaultGuards::None, &seeds)?;
            most = most.max(Cost::of(calls, &policy, budget, &seeds)?.excess(without));
        }
        Some(most)
    };
    let what = match (excess(calls.budget), excess(said)) {
        (None, _) => return Some(Verdict::Held("a budget")),
        (Some(before), Some(after)) if after <= (LEFT * before).max(1.0) => return Some(Verdict::Held("a budget")),
        (before, after) => format!("excess {before:?} -> {after:?}"),
    };
    let command = calls.command(&policy, calls.budget);
    Some(Verdict::Broken(format!("S016: {what} with {}; {lengths:?}; {command}", said.name())))
}
