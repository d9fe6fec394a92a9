//! The report for a terminal, and the sentences that answer what happened.

use stagger_sim::storm::{ReconnectSpec, ScenarioSpec, StormReport};
use stagger_terminal::plot::{Cell, Column, RenderOptions, bold, paragraph, sparkline, table};

use super::measurements::{agreements, measurements, unreliable_runs};
use super::outage;
use super::results::{Cell as ResultCell, Results, describe, is_cut_off};
use super::subject::policy_name;
use super::timeline::{Timeline, resample};

/// Width of a sparkline in characters.
const SPARKLINE_WIDTH: usize = 20;

/// Time in which a burst is counted, in seconds.
const BURST_S: f64 = 0.1;

/// Bursts are told that have this many times what the server accepts meanwhile, and this many attempts: of fewer,
/// chance may bring so many together.
const NOTABLE_BURST: f64 = 2.0;
const FEWEST_IN_BURST: f64 = 20.0;

/// Share of the attempts that a sparkline covers; the last stragglers would fill half of it.
const SPARKLINE_SHARE: f64 = 0.995;

/// Returns the summary for a terminal: the scenario, the metrics, a sparkline of the arrivals, and the conclusion.
pub(super) fn summary(storm: &StormReport, results: &Results<'_>, options: RenderOptions) -> String {
    let mut out = paragraph(&describe(storm), "  ", options);
    out.push('\n');
    let until = end_time(storm, SPARKLINE_SHARE);
    let mut columns = vec![Column::left("")];
    columns.extend(results.table_metrics().map(|metric| {
        let column = Column::right(metric.heading);
        if results.is_primary(metric) { column } else { column.optional() }
    }));
    if until > 0.0 {
        columns.push(Column::left("arrivals").optional());
    }
    let rows =
        results.table(results.table_metrics()).into_iter().zip(&storm.strategies).map(|((name, cells), strategy)| {
            let mut row: Vec<Cell> = vec![name.into()];
            row.extend(cells.into_iter().map(|cell| if cell.is_best { bold(cell.text) } else { cell.text.into() }));
            if let Some(first) = strategy.runs.first()
                && let Some(timeline) = Timeline::from_figures(&first.figures)
            {
                let arrivals = resample(&timeline.attempts, timeline.bin_s, until, SPARKLINE_WIDTH);
                row.push(sparkline(&arrivals, options.glyphs).into());
            }
            row
        });
    out.push_str(&table(&columns, rows, options));
    out.push('\n');
    for (name, policy, guards) in results.policies() {
        let guards = guards.map_or(String::new(), |guards| format!(", guards {guards}"));
        out.push_str(&paragraph(&format!("{name}: {policy}{guards}"), "  ", options));
    }
    let remarks = seeds(results).into_iter().chain(conclusion(storm, results));
    let machine_remarks = [agreements(storm), measurements(storm), unreliable_runs(storm)].into_iter().flatten();
    for remark in remarks.chain(machine_remarks) {
        out.push_str(&paragraph(&remark, "  ", options));
    }
    options.glyphs.transliterate(&out).into_owned()
}

/// Returns the time by which every strategy has made this share of its attempts; 0 if there are none.
pub(super) fn end_time(storm: &StormReport, share: f64) -> f64 {
    let runs = storm.strategies.iter().filter_map(|strategy| strategy.runs.first());
    runs.filter_map(|run| Timeline::from_figures(&run.figures))
        .map(|timeline| timeline.time_of_share(share))
        .fold(0.0, f64::max)
}

/// Returns a sentence that names the seeds.
pub(super) fn seeds(results: &Results<'_>) -> Option<String> {
    let row = results.rows.iter().max_by_key(|row| row.runs.len())?;
    let seeds: Vec<u64> = row.runs.iter().map(|run| run.seed).collect();
    match seeds[..] {
        [] => None,
        [seed] => Some(format!("seed {seed}")),
        [first, .., last] => Some(format!("means of {} runs, seeds {first} to {last}", seeds.len())),
    }
}

/// Returns the conclusion, in one or more sentences.
pub(super) fn conclusion(storm: &StormReport, results: &Results<'_>) -> Vec<String> {
    match &storm.scenario {
        ScenarioSpec::Reconnect(_) | ScenarioSpec::Fluid(_) => {
            reconnect(storm, results).into_iter().chain(cut_off(storm, results)).collect()
        }
        ScenarioSpec::Outage(_) => outage::conclusion(storm, results),
        _ => Vec::new(),
    }
}

/// Returns the sentence about runs that end while clients still try.
fn cut_off(storm: &StormReport, results: &Results<'_>) -> Option<String> {
    let row = results.rows.iter().find(|row| row.runs.iter().any(is_cut_off))?;
    let (ScenarioSpec::Reconnect(spec) | ScenarioSpec::Fluid(spec)) = storm.scenario_of(row) else { return None };
    let horizon = stagger_terminal::plot::Unit::Seconds.label(spec.horizon_s);
    let name = policy_name(row);
    Some(format!("{name}: at the horizon of {horizon}, clients still try; a longer --horizon shows when they are back"))
}

fn reconnect(storm: &StormReport, results: &Results<'_>) -> Option<String> {
    let peak = results.metric("peak_1s")?;
    let results = results.assertion_targets();
    let column = results.column(peak);
    let specs = results.rows.iter().filter_map(|row| match storm.scenario_of(row) {
        ScenarioSpec::Reconnect(spec) | ScenarioSpec::Fluid(spec) => Some(spec),
        _ => None,
    });
    let load = |cell: &ResultCell, spec: &ReconnectSpec| cell.value.unwrap_or(0.0) / spec.rate;
    let rows = column.iter().zip(&results.rows).zip(specs);
    let worst = rows.max_by(|((a, _), one), ((b, _), other)| load(a, one).total_cmp(&load(b, other)));
    let ((cell, row), spec) = worst?;
    if cell.value? <= spec.rate {
        return Some(within_capacity(storm, &results));
    }
    let spread = stagger_terminal::plot::Unit::Seconds.label((spec.clients as f64 / spec.rate).ceil());
    let remedy = if is_spread_over(&row.policy, spec) {
        "its spread keeps the first wave within the capacity on average; retries or chance add to it".to_owned()
    } else {
        format!("with a spread of {spread} or more, the first wave stays within the capacity on average")
    };
    Some(format!(
        "{} sends {} attempts in one second, but the capacity of the server is {}/s: {remedy}",
        policy_name(row),
        cell.text,
        stagger_terminal::plot::Unit::Count.label(spec.rate),
    ))
}

/// Returns whether the policy already has the spread that the fleet needs.
fn is_spread_over(policy: &str, spec: &ReconnectSpec) -> bool {
    let policy = policy.parse::<stagger_core::Policy>();
    policy.is_ok_and(|policy| policy.spread().as_secs_f64() >= spec.clients as f64 / spec.rate)
}

/// Returns the sentence about policies that stay within the capacity in every second: what the worst 100 ms of them
/// have.
fn within_capacity(storm: &StormReport, results: &Results<'_>) -> String {
    let within = "no policy exceeds the capacity of the server in any second";
    let rates = results.rows.iter().map(|row| match storm.scenario_of(row) {
        ScenarioSpec::Reconnect(spec) | ScenarioSpec::Fluid(spec) => spec.rate,
        _ => f64::INFINITY,
    });
    let Some(peak) = results.metric("peak_100ms") else { return within.to_owned() };
    let column = results.column(peak);
    let mut bursts = Vec::new();
    for ((row, cell), rate) in results.rows.iter().zip(column).zip(rates) {
        let Some(attempts) = cell.value else { continue };
        let times = attempts / (rate * BURST_S);
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
