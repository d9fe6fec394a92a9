//! If `check` warns of nothing, the simulation of the same circumstances shows no storm, and retries cost little.

use core::time::Duration;

use stagger::{Jitter, Policy, Seed};
use stagger_lint::DeploymentContext;
use stagger_sim::outage::{DefaultGuards, OutageFigures};

use super::circumstances::{Calls, Fleet};
use super::draws::Draws;
use super::law::{Law, Verdict};
use super::policies::{self, Delays};

pub(crate) const LAW: Law = Law {
    name: "check",
    statement: "if `check` does not warn, `simulate` of the same circumstances shows no storm, and retries cost little",
    share: 100,
    case,
};

fn case(seed: Seed) -> Verdict {
    let mut draws = Draws::new(seed);
    let is_fleet = draws.is(0.5);
    if is_fleet { fleet(&mut draws) } else { calls(&mut draws) }.unwrap_or(Verdict::Silent("not a valid scenario"))
}

/// Returns a random policy, half of the time with the suggestions of `check` applied, about which `check` is silent.
fn unwarned(draws: &mut Draws, context: &DeploymentContext, delays: Delays) -> Option<Policy> {
    let policy = policies::any(draws, delays);
    let policy = if draws.is(0.6) { stagger_lint::fix(&policy, context, &[]) } else { policy };
    (!stagger_lint::warns(&policy, context)).then_some(policy)
}

const WARNED: Verdict = Verdict::Silent("check warns");
const BY_CHANCE: Verdict = Verdict::Silent("a storm in fewer than half of the runs");
const NO_NEIGHBOR: Verdict = Verdict::Silent("no neighbor avoids the storm");

/// Runs that decide whether a storm is one of the policy or of chance.
const RUNS: usize = 5;

fn mostly(seeds: &[Seed], is_storm: impl Fn(&Seed) -> bool) -> bool {
    seeds.iter().filter(|seed| is_storm(seed)).count() > seeds.len() / 2
}

/// A storm: this many times the capacity arrive within a second.
const PEAK: f64 = 3.0;
/// Standard deviations by which a second may exceed it, because clients arrive at random.
const DEVIATIONS: f64 = 3.0;
/// Share of the clients that may give up.
const GAVE_UP: f64 = 0.001;

fn fleet(draws: &mut Draws) -> Option<Verdict> {
    let mut fleet = Fleet::draw(draws)?;
    fleet.told(draws);
    let window = fleet.window();
    let delays = Delays { shortest: 0.02, longest: (2.0 * window).clamp(1.0, 60.0) };
    let Some(policy) = unwarned(draws, &fleet.context, delays) else { return Some(WARNED) };
    let seeds = [(); RUNS].map(|()| draws.seed());
    let Some(storm) = storm(&fleet, &policy, seeds[0]) else {
        return Some(Verdict::Held(if fleet.down.is_zero() { "a fleet, no outage" } else { "a fleet, an outage" }));
    };
    let is_storm = |policy: &Policy, seed: &Seed| self::storm(&fleet, policy, *seed).is_some();
    if !mostly(&seeds, |seed| is_storm(&policy, seed)) {
        return Some(BY_CHANCE);
    }
    let mut neighbors = neighbors(&policy, window).into_iter();
    Some(match neighbors.find(|neighbor| !mostly(&seeds, |seed| is_storm(neighbor, seed))) {
        Some(avoids) => Verdict::Broken(format!("{storm}, not with `{avoids}`; {}", fleet.command(&policy))),
        None => NO_NEIGHBOR,
    })
}

fn storm(fleet: &Fleet, policy: &Policy, seed: Seed) -> Option<String> {
    let figures = fleet.run(policy, seed);
    let clients = f64::from(fleet.clients);
    let (peak, most) = (figures.peak_second() as f64, PEAK * fleet.capacity);
    if peak > most + DEVIATIONS * most.sqrt() {
        return Some(format!("{:.1} times the capacity within a second", peak / fleet.capacity));
    }
    if figures.gave_up as f64 > GAVE_UP * clients {
        return Some(format!("{} of {clients} gave up", figures.gave_up));
    }
    (figures.t100.is_none() && figures.gave_up == 0).then(|| format!("{} did not return", figures.unfinished))
}

/// Returns policies like this one, with a longer spread, base or cap.
fn neighbors(policy: &Policy, window: f64) -> Vec<Policy> {
    let seconds = |times: f64| Duration::from_millis((window * times * 1e3).ceil() as u64);
    let with = |spread: f64, base: f64, cap: f64| {
        let (spread, base, cap) = (seconds(spread), seconds(base), seconds(cap));
        Policy::exponential(base, cap).spread(spread).unlimited_attempts().jitter(Jitter::Full).build()
    };
    let own = policy.to_builder().spread(seconds(1.0)).build();
    let others = [with(1.0, 1.0, 4.0), with(1.5, 1.5, 6.0), with(2.0, 2.0, 8.0)];
    own.into_iter().chain(others.into_iter().flatten()).collect()
}

fn calls(draws: &mut Draws) -> Option<Verdict> {
    let mut calls = Calls::draw(draws)?;
    calls.told(draws);
    let Some(policy) = unwarned(draws, &calls.context, Delays { shortest: 0.01, longest: 10.0 }) else {
        return Some(WARNED);
    };
    let seeds = [(); RUNS].map(|()| draws.seed());
    let is_storm = |policy: &Policy, budget, seed: &Seed| calls.run(policy, budget, *seed).state_at_horizon().is_down();
    if !is_storm(&policy, calls.budget, &seeds[0]) {
        if let Some(costs) = costs(&calls, &policy, &seeds) {
            return Some(Verdict::Broken(costs));
        }
        return Some(Verdict::Held(if calls.budget == DefaultGuards::None {
            "calls, no guard"
        } else {
            "calls, a guard"
        }));
    }
    if !mostly(&seeds, |seed| is_storm(&policy, calls.budget, seed)) {
        return Some(BY_CHANCE);
    }
    let mut neighbors = guards_and_limits(&policy, calls.budget).into_iter();
    Some(match neighbors.find(|(policy, budget)| !mostly(&seeds, |seed| is_storm(policy, *budget, seed))) {
        Some((avoids, budget)) => Verdict::Broken(format!(
            "down at the horizon, not with guard {} and `{avoids}`; {}",
            budget.name(),
            calls.command(&policy, calls.budget)
        )),
        None => NO_NEIGHBOR,
    })
}

/// What the outage costs: the mean time until the server has recovered, in seconds, and the share of the calls that are
/// lost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cost {
    recovery: f64,
    lost: f64,
}

impl Cost {
    /// Returns `None` if the server does not recover in every run.
    pub(crate) fn of(calls: &Calls, policy: &Policy, budget: DefaultGuards, seeds: &[Seed]) -> Option<Self> {
        let runs: Vec<_> = seeds.iter().map(|seed| calls.run(policy, budget, *seed)).collect();
        let count = runs.len() as f64;
        let recoveries: Option<Vec<f64>> = runs.iter().map(|run| Some(run.recovery()?.as_secs_f64())).collect();
        Some(Self {
            recovery: recoveries?.iter().sum::<f64>() / count,
            lost: 1.0 - runs.iter().map(OutageFigures::success_ratio).sum::<f64>() / count,
        })
    }

    /// Returns the excess over another in multiples of what is tolerated: of twice as long plus 5 s, and of 2 points.
    pub(crate) fn excess(self, without: Self) -> f64 {
        let longer = (self.recovery - without.recovery) / (without.recovery + 5.0);
        longer.max((self.lost - without.lost) / 0.02)
    }
}

/// Returns what the retries cost, if it is too much and some guard halves it.
fn costs(calls: &Calls, policy: &Policy, seeds: &[Seed]) -> Option<String> {
    let once = policy.to_builder().max_attempts(1).build().ok()?;
    if policy.max_attempts() == once.max_attempts() || policy.bounds(1).is_none() {
        return None;
    }
    let without = Cost::of(calls, &once, DefaultGuards::None, seeds)?;
    let used = Cost::of(calls, policy, calls.budget, seeds)?;
    let excess = used.excess(without);
    if excess <= 1.0 {
        return None;
    }
    let halves = |guards: &DefaultGuards| {
        let better = Cost::of(calls, policy, *guards, seeds);
        better.is_some_and(|better| better.excess(without) <= 0.5 * excess)
    };
    let guards = DefaultGuards::TRIED.into_iter().find(halves)?;
    Some(format!(
        "retries cost {used:?}, without {without:?}, {} halves it; {}",
        guards.name(),
        calls.command(policy, calls.budget)
    ))
}

/// Returns this policy with each guard, and with fewer attempts.
fn guards_and_limits(policy: &Policy, used: DefaultGuards) -> Vec<(Policy, DefaultGuards)> {
    let guards = DefaultGuards::TRIED.into_iter().map(|budget| (*policy, budget));
    let limits =
        [2, 1].into_iter().filter_map(|most| Some((policy.to_builder().max_attempts(most).build().ok()?, used)));
    guards.chain(limits).collect()
}
