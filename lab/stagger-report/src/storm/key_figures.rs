//! The figures that decide between policies: a few of each scenario.

use stagger_sim::storm::{ScenarioSpec, StormReport};

use super::results::{Cell, Results};
use super::subject::subjects;
use stagger_terminal::plot::Unit;

/// A policy with the cells of [`headings`].
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KeyRow {
    pub name: String,
    pub cells: Vec<KeyCell>,
}

/// A figure of a policy.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KeyCell {
    pub text: String,
    /// What the figure is compared with: the capacity, or what the simulation of a measured policy says.
    pub notes: Vec<String>,
    pub is_best: bool,
    /// Whether it exceeds the capacity of the server.
    pub is_over: bool,
}

/// The key of the figure that is compared with the capacity.
const PEAK: &str = "peak_1s";

/// Returns the keys of the figures that decide, with their headings.
fn figures(scenario: &ScenarioSpec) -> &'static [(&'static str, &'static str)] {
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
pub(super) fn headings(storm: &StormReport) -> impl Iterator<Item = &'static str> {
    figures(&storm.scenario).iter().map(|(_, heading)| *heading)
}

/// Returns the figures of each policy that decide.
pub(super) fn key_rows(storm: &StormReport, results: &Results<'_>) -> Vec<KeyRow> {
    let columns: Vec<(&str, Vec<Cell>)> = figures(&storm.scenario)
        .iter()
        .filter_map(|(key, _)| Some((*key, results.column(results.metric(key)?))))
        .collect();
    let row = |policy: super::subject::Subject<'_>| {
        let capacity = capacity(storm.scenario_of(&storm.strategies[policy.row]));
        let cell = |(key, column): &(&str, Vec<Cell>)| {
            let Cell { value, text, is_best } = column[policy.row].clone();
            let times = capacity.filter(|_| *key == PEAK).zip(value).map(|(capacity, peak)| peak / capacity);
            let simulated = policy.simulated.map(|row| format!("simulated {}", column[row].text));
            KeyCell {
                text,
                notes: times.map(against_capacity).into_iter().chain(simulated).collect(),
                is_best,
                is_over: times.is_some_and(|times| times > 1.0),
            }
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
            let decisive = figures(&spec);
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
