//! The report as a page, with the figures that decide between policies: a few of each scenario.

use stagger_sim::storm::{ScenarioSpec, StormReport};
use stagger_terminal::plot::Unit;
use stagger_terminal::plot::svg::escaped;

use super::measurements::{agreements, is_measured, measurements, unreliable_runs};
use super::results::{Cell, Results, describe};
use super::subject::{Subject, subjects};
use super::summary::{conclusion, seeds};
use crate::page::{Chart, Front, frame, headings, section};

/// Returns the report as one self-contained page, readable without its script. `command` is the command line that
/// reproduces it.
///
/// First the answer, the picture that shows it and the figures that decide; everything else is below or folded.
pub(super) fn page(storm: &StormReport, results: &Results<'_>, charts: &[Chart], json: &str, command: &str) -> String {
    let heading = if is_measured(storm) { "measured and simulated" } else { "simulated" };
    let mut out = String::new();
    for text in unreliable_runs(storm) {
        out.push_str(&format!("<p class=\"warning\">{}.</p>\n", escaped(&text)));
    }
    let (first, others) = charts.split_at(charts.len().min(1));
    out.extend(first.iter().map(section));
    out.push_str("<section>\n<h2>Figures</h2>\n");
    out.push_str(&key_table(storm, results));
    out.push_str("<details>\n<summary>All figures</summary>\n");
    out.push_str(&metrics_table(results));
    out.push_str("</details>\n");
    let measured = measurements(storm);
    if !measured.is_empty() {
        out.push_str("<details>\n<summary>How it was measured</summary>\n");
        out.extend(measured.iter().map(|text| format!("<p>{}.</p>\n", escaped(text))));
        out.push_str("</details>\n");
    }
    out.push_str("</section>\n<section>\n<h2>Policies</h2>\n<dl>\n");
    for (name, policy, guards) in results.policies() {
        let guards = guards.map_or(String::new(), |guards| format!(", guards {}", escaped(guards)));
        let (name, policy) = (escaped(&name), escaped(policy));
        out.push_str(&format!("<dt>{name}</dt><dd><code>{policy}</code>{guards}</dd>\n"));
    }
    out.push_str("</dl>\n</section>\n");
    out.extend(others.iter().map(section));
    let seeds = seeds(results).map(|seeds| format!("; {seeds}")).unwrap_or_default();
    let front = Front {
        heading: &format!("Retry storm, {heading}"),
        answer: &[conclusion(storm, results), agreements(storm)].concat(),
        scenario: &(describe(storm) + &seeds),
    };
    frame(&front, &out, json, command)
}

/// Returns the table of the figures that decide: one row per policy.
fn key_table(storm: &StormReport, results: &Results<'_>) -> String {
    let heads: Vec<&str> = key_headings(storm).collect();
    let mut out = format!(
        "<table class=\"key\" id=\"figures\">\n{}<tbody>\n",
        headings(["policy"].into_iter().chain(heads.iter().copied()))
    );
    for KeyRow { name, cells } in key_rows(storm, results) {
        out.push_str(&format!("<tr><th scope=\"row\">{}</th>", escaped(&name)));
        for (cell, head) in cells.iter().zip(&heads) {
            let class = match (cell.is_over, cell.is_best) {
                (true, true) => " class=\"over best\"",
                (true, false) => " class=\"over\"",
                (false, true) => " class=\"best\"",
                (false, false) => "",
            };
            let notes: String = cell.notes.iter().map(|note| format!("<small>{}</small>", escaped(note))).collect();
            out.push_str(&format!("<td{class} data-head=\"{head}\">{}{notes}</td>", escaped(&cell.text)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table>\n");
    out
}

/// Returns the table of all metrics: one row per metric and one column per strategy, because there are too many metrics
/// for columns.
fn metrics_table(results: &Results<'_>) -> String {
    let heads = headings(["metric"].into_iter().chain(results.rows.iter().map(|row| &*row.name)));
    let mut out = format!("<div class=\"wide\" tabindex=\"0\"><table id=\"metrics\">\n{heads}<tbody>\n");
    for metric in results.metrics {
        out.push_str(&format!("<tr data-key=\"{}\"><th scope=\"row\">{}</th>", metric.key, escaped(metric.heading)));
        for Cell { value, text, is_best } in results.column(metric) {
            let exact = value.map_or(String::new(), |value| value.to_string());
            let class = if is_best { " class=\"best\"" } else { "" };
            out.push_str(&format!("<td{class} data-value=\"{exact}\">{}</td>", escaped(&text)));
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</tbody>\n</table></div>\n");
    out
}

/// A policy with a cell for each of [`key_headings`].
#[derive(Clone, Debug, PartialEq)]
struct KeyRow {
    name: String,
    cells: Vec<KeyCell>,
}

/// A figure of a policy.
#[derive(Clone, Debug, PartialEq)]
struct KeyCell {
    text: String,
    /// What the figure is compared with: the capacity, or what the simulation of a measured policy says.
    notes: Vec<String>,
    is_best: bool,
    /// Whether it exceeds the capacity of the server.
    is_over: bool,
}

/// The key of the figure that is compared with the capacity.
const PEAK: &str = "peak_1s";

/// Returns the keys of the figures that decide, with their headings.
fn key_figures(scenario: &ScenarioSpec) -> &'static [(&'static str, &'static str)] {
    match scenario {
        ScenarioSpec::Reconnect(_) => &[
            (PEAK, "peak in a second"),
            ("attempts_per_client", "attempts per client"),
            ("gave_up", "gave up"),
            ("t50_s", "half back at"),
            ("t99_s", "99% back at"),
        ],
        ScenarioSpec::Fluid(_) => &[
            (PEAK, "peak in a second"),
            ("attempts_per_client", "attempts per client"),
            ("gave_up_ratio", "gave up"),
            ("t50_s", "half back at"),
            ("t99_s", "99% back at"),
        ],
        ScenarioSpec::Outage(_) => &[
            ("verdict", "verdict"),
            (PEAK, "peak in a second"),
            ("amplification", "attempts per request"),
            ("success_ratio", "success"),
            ("recovery_s", "recovered after"),
        ],
        ScenarioSpec::Occ(_) => &[
            ("calls_per_client", "calls per client"),
            ("to_limit", "ratio to limit"),
            ("gave_up", "gave up"),
            ("time_s", "completed at"),
        ],
        _ => &[],
    }
}

/// Returns the headings of the figures that decide.
fn key_headings(storm: &StormReport) -> impl Iterator<Item = &'static str> {
    key_figures(&storm.scenario).iter().map(|(_, heading)| *heading)
}

/// Returns the figures of each policy that decide.
fn key_rows(storm: &StormReport, results: &Results<'_>) -> Vec<KeyRow> {
    let columns: Vec<(&str, Vec<Cell>)> = key_figures(&storm.scenario)
        .iter()
        .filter_map(|(key, _)| Some((*key, results.column(results.metric(key)?))))
        .collect();
    let row = |policy: Subject<'_>| {
        let capacity = capacity(storm.scenario_of(&storm.strategies[policy.row]));
        let cell = |(key, column): &(&str, Vec<Cell>)| {
            let Cell { value, text, is_best } = column[policy.row].clone();
            let mut shown = KeyCell { text, notes: Vec::new(), is_best, is_over: false };
            if *key == PEAK
                && let (Some(capacity), Some(peak)) = (capacity, value)
            {
                shown.notes.push(against_capacity(peak / capacity));
                shown.is_over = peak > capacity;
            }
            if let Some(row) = policy.simulated {
                shown.notes.push(format!("simulated {}", column[row].text));
            }
            shown
        };
        KeyRow { name: policy.name.to_owned(), cells: columns.iter().map(cell).collect() }
    };
    subjects(storm).into_iter().map(row).collect()
}

/// Returns the number of attempts per second that the server of a scenario can take.
const fn capacity(scenario: &ScenarioSpec) -> Option<f64> {
    match scenario {
        ScenarioSpec::Reconnect(spec) | ScenarioSpec::Fluid(spec) => Some(spec.rate),
        ScenarioSpec::Outage(spec) => Some(spec.capacity),
        _ => None,
    }
}

fn against_capacity(times: f64) -> String {
    if times < 9.95 {
        format!("{:.0}% of the capacity", times * 100.0)
    } else {
        format!("{} times the capacity", Unit::Count.label(times.round()))
    }
}

#[cfg(test)]
mod tests {
    use stagger_core::{Policy, Seed};
    use stagger_sim::reconnect::ReconnectScenario;

    use super::*;
    use crate::storm::samples::every_scenario;

    #[test]
    fn the_figures_that_decide_exist_in_every_scenario() {
        for spec in every_scenario() {
            let decisive = key_figures(&spec);
            assert!((4..=5).contains(&decisive.len()), "{spec:?}");
            for (key, _) in decisive {
                assert!(spec.metrics().iter().any(|metric| metric.key == *key), "{key}");
            }
        }
    }

    #[test]
    fn a_peak_is_compared_with_the_capacity() {
        let scenario = ReconnectScenario::builder(2_000).rate(100.0).build().unwrap();
        let policy: Policy = "constant base=10s jitter=none max-attempts=inf".parse().unwrap();
        let run = scenario.run(&policy, Seed::new(1));
        let storm = StormReport::new(&scenario).with_strategy("in step", &policy, [(Seed::new(1), &run)]);
        let peak = key_rows(&storm, &Results::from_storm(&storm)).remove(0).cells.remove(0);
        assert_eq!(
            (peak.text.as_str(), &*peak.notes, peak.is_over),
            ("2,000", &["20 times the capacity".to_owned()][..], true)
        );
        assert_eq!(against_capacity(0.62), "62% of the capacity");
    }
}
