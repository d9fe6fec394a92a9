//! The sentences that say what happened in a storm.

use stagger_sim::storm::{ReconnectSpec, ScenarioSpec, StormReport, StrategyReport};
use stagger_terminal::plot::Unit;

use super::figures::is_cut_off;
use super::outage;
use super::subject::{is_measured, policy_name};
use crate::report::{Cell, Figures};

/// Time in which a burst is counted, in seconds.
const BURST_S: f64 = 0.1;

/// Bursts are told that have this many times what the server accepts meanwhile, and this many attempts: of fewer,
/// chance may bring so many together.
const NOTABLE_BURST: f64 = 2.0;
const FEWEST_IN_BURST: f64 = 20.0;

/// Returns the conclusion, in one or more sentences.
pub(super) fn conclusion(storm: &StormReport, figures: &Figures) -> Vec<String> {
    match &storm.scenario {
        ScenarioSpec::Reconnect(_) | ScenarioSpec::Fluid(_) => {
            reconnect(storm, figures).into_iter().chain(cut_off(storm)).collect()
        }
        ScenarioSpec::Outage(_) => outage::conclusion(storm),
        _ => Vec::new(),
    }
}

/// Returns the sentence about runs that end while clients still try.
fn cut_off(storm: &StormReport) -> Option<String> {
    let row = storm.strategies.iter().find(|row| row.runs.iter().any(is_cut_off))?;
    let (ScenarioSpec::Reconnect(spec) | ScenarioSpec::Fluid(spec)) = storm.scenario_of(row) else { return None };
    let horizon = Unit::Seconds.label(spec.horizon_s);
    let name = policy_name(row);
    Some(format!("{name}: at the horizon of {horizon}, clients still try; a longer --horizon shows when they are back"))
}

/// A strategy with a figure, and the scenario that it ran in.
type Judged<'a> = (&'a StrategyReport, Cell, &'a ReconnectSpec);

/// Returns a figure of the strategies that are judged: of a drill, those that were measured.
fn judged<'a>(storm: &'a StormReport, figures: &Figures, key: &str) -> Vec<Judged<'a>> {
    let has_measured = storm.strategies.iter().any(is_measured);
    let rows = storm.strategies.iter().zip(figures.of(key));
    let rows = rows.filter(|(row, _)| is_measured(row) || !has_measured);
    let of = |(row, cell)| match storm.scenario_of(row) {
        ScenarioSpec::Reconnect(spec) | ScenarioSpec::Fluid(spec) => Some((row, cell, spec)),
        _ => None,
    };
    rows.filter_map(of).collect()
}

fn reconnect(storm: &StormReport, figures: &Figures) -> Option<String> {
    let load = |(_, cell, spec): &Judged<'_>| cell.value.unwrap_or(0.0) / spec.rate;
    let peaks = judged(storm, figures, "peak_1s");
    let (row, cell, spec) = peaks.iter().max_by(|one, other| load(one).total_cmp(&load(other)))?;
    if cell.value? <= spec.rate {
        return Some(within_capacity(&judged(storm, figures, "peak_100ms")));
    }
    let spread = Unit::Seconds.label((spec.clients as f64 / spec.rate).ceil());
    let remedy = if is_spread_over(&row.policy, spec) {
        "its spread keeps the first wave within the capacity on average; retries or chance add to it".to_owned()
    } else {
        format!("with a spread of {spread} or more, the first wave stays within the capacity on average")
    };
    Some(format!(
        "{} sends {} attempts in one second, but the capacity of the server is {}/s: {remedy}",
        policy_name(row),
        cell.text,
        Unit::Count.label(spec.rate),
    ))
}

/// Returns whether the policy already has the spread that the fleet needs.
fn is_spread_over(policy: &str, spec: &ReconnectSpec) -> bool {
    let policy = policy.parse::<stagger_core::Policy>();
    policy.is_ok_and(|policy| policy.spread().as_secs_f64() >= spec.clients as f64 / spec.rate)
}

/// Returns the sentence about policies that stay within the capacity in every second: what the worst 100 ms of them
/// have.
fn within_capacity(peaks: &[Judged<'_>]) -> String {
    let within = "no policy exceeds the capacity of the server in any second";
    let mut bursts = Vec::new();
    for (row, cell, spec) in peaks {
        let Some(attempts) = cell.value else { continue };
        let times = attempts / (spec.rate * BURST_S);
        if times >= NOTABLE_BURST && attempts >= FEWEST_IN_BURST {
            bursts.push((times, row, cell));
        }
    }
    match bursts.into_iter().max_by(|(a, ..), (b, ..)| a.total_cmp(b)) {
        None => within.to_owned(),
        Some((times, row, cell)) => format!(
            "{within}, but {} sends {} attempts within 100ms, {times:.1} times what it accepts in that time",
            policy_name(row),
            cell.text
        ),
    }
}
