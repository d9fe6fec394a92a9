//! The figures of all policies as tables show them.

use core::time::Duration;
use std::collections::BTreeMap;

use stagger_sim::storm::{
    CrashLoopSpec, Importance, Metric, MetricValue, OutageKindSpec, OutageSpec, Quantity, ReconnectSpec,
    RetryAfterSpec, RunFigures, RunReport, ScenarioSpec, StoreSpec, StormReport, StrategyReport, SweptPart,
    VerdictKind,
};
use stagger_terminal::plan::brief;
use stagger_terminal::plot::Unit;

use super::subject::{is_measured, name_of_policy, scenario_label};

/// Metrics of all strategies.
#[derive(Clone, Debug)]
pub(crate) struct Results<'a> {
    pub(crate) metrics: &'static [Metric],
    pub(crate) rows: Vec<&'a StrategyReport>,
    storm: &'a StormReport,
    /// Whether a server crashes again, so that the number of crashes belongs into tables.
    has_crashes: bool,
    /// Whether processes share a budget in some runs.
    has_leases: bool,
    /// Whether they do in all, with faults of its store.
    has_faults: bool,
}

/// Metric of a strategy, averaged over its seeds.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Cell {
    /// `None` if the value does not exist for at least one seed.
    pub(crate) value: Option<f64>,
    pub(crate) text: String,
    /// Whether no other policy in the same scenario has a better value, and at least one has a worse value. Measured
    /// values are compared with measured ones. The fastest recovery is the best only among policies that the server can
    /// take.
    pub(crate) is_best: bool,
}

/// The figures of a budget that processes share by leases.
const OF_LEASES: [&str; 3] = ["retries", "budget_overshoot", "budget_overshoot_bound"];

/// The figures of a mass disconnect that are the better the earlier the clients return. Clients whose retries are
/// synchronized return early at the price of the server.
const OF_SPEED: [&str; 10] = [
    "recovered_p50_s",
    "recovered_p95_s",
    "recovered_p99_s",
    "recovered_mean_s",
    "t50_s",
    "t99_s",
    "t100_s",
    "waited_mean_s",
    "efficiency_time",
    "efficiency_mean_time",
];

/// The most attempts per client beyond what the server accepts at the time, of a policy that it can take: clients that
/// are spread at random exceed the capacity now and then, too.
const MOST_EXCESS: f64 = 0.1;

/// Returns whether the server can take the clients of a policy.
fn is_within_capacity(spec: &ScenarioSpec, row: &StrategyReport) -> bool {
    row.runs.iter().all(|run| match (spec, &run.figures) {
        (_, RunFigures::Reconnect(figures)) => figures.excess_per_client <= MOST_EXCESS,
        (ScenarioSpec::Fluid(spec), RunFigures::Fluid(figures)) => figures.peak_1s <= spec.rate,
        _ => true,
    })
}

/// Returns whether the processes of a run shared a budget.
fn has_lease(run: &RunReport) -> bool {
    match &run.figures {
        RunFigures::Outage(figures) => figures.budget_overshoot.is_some(),
        RunFigures::Reconnect(figures) => figures.budget_overshoot.is_some(),
        _ => false,
    }
}

impl<'a> Results<'a> {
    /// Returns the metrics of a document.
    pub(crate) fn from_storm(storm: &'a StormReport) -> Self {
        let runs = || storm.strategies.iter().flat_map(|strategy| &strategy.runs);
        let crashes = |spec: &ScenarioSpec| matches!(spec, ScenarioSpec::Reconnect(spec) if spec.crash_loop.is_some());
        Self {
            metrics: storm.scenario.metrics(),
            rows: storm.strategies.iter().collect(),
            storm,
            has_leases: runs().any(has_lease),
            has_faults: runs().all(has_lease)
                && matches!(&storm.scenario, ScenarioSpec::Outage(OutageSpec { store: Some(_), .. })),
            has_crashes: storm.strategies.iter().any(|strategy| crashes(storm.scenario_of(strategy))),
        }
    }

    /// Returns the policies with their names and guards. Rows that have the same policy and guards, and names that
    /// differ only in their last part or in swept settings of the scenario, are combined.
    pub(crate) fn policies(&self) -> Vec<(String, &str, Option<&str>)> {
        let mut policies: Vec<(String, &str, Option<&str>)> = Vec::new();
        for row in &self.rows {
            let (name, guards) = (name_of_policy(row), row.guards.as_deref());
            let family = |name: &str| name.rsplit_once(", ").map(|(family, _)| family.len());
            let is_same =
                |(_, policy, guarded): &&mut (String, &str, Option<&str>)| *policy == row.policy && *guarded == guards;
            if policies.iter_mut().filter(is_same).any(|(known, ..)| *known == name) {
                continue;
            }
            match (policies.last_mut().filter(is_same), family(&name)) {
                (Some((known, ..)), Some(end)) if family(known) == Some(end) && known[..end] == name[..end] => {
                    known.truncate(end);
                }
                _ => policies.push((name, &row.policy, guards)),
            }
        }
        policies
    }

    /// Returns the rows that assertions apply to: the measured ones of a drill, otherwise all rows.
    pub(crate) fn assertion_targets(&self) -> Self {
        let measured: Vec<_> = self.rows.iter().copied().filter(|row| is_measured(row)).collect();
        Self { rows: if measured.is_empty() { self.rows.clone() } else { measured }, ..*self }
    }

    /// Returns the metrics that are shown in tables.
    pub(crate) fn table_metrics(&self) -> impl Iterator<Item = &'static Metric> {
        let is_shown = |metric: &&Metric| metric.importance > Importance::Detail || self.is_of_these_runs(metric);
        self.metrics.iter().filter(is_shown)
    }

    /// Returns whether tables have this metric however narrow they are.
    pub(crate) fn is_primary(&self, metric: &Metric) -> bool {
        metric.importance == Importance::Primary || self.is_of_these_runs(metric)
    }

    /// Returns whether a figure of less importance belongs to what these runs have: crashes, or a budget of leases.
    fn is_of_these_runs(&self, metric: &Metric) -> bool {
        match metric.key {
            "crashes" => self.has_crashes,
            "leases_restored_s" => self.has_faults,
            key => self.has_leases && OF_LEASES.contains(&key),
        }
    }

    /// Returns the metric with this key, if the scenario has it.
    pub(crate) fn metric(&self, key: &str) -> Option<&'static Metric> {
        self.metrics.iter().find(|metric| metric.key == key)
    }

    /// Returns a metric for each strategy. The best value is that of the strategies in the same scenario.
    pub(crate) fn column(&self, metric: &Metric) -> Vec<Cell> {
        let values: Vec<Option<f64>> = self.rows.iter().map(|row| mean(row, metric)).collect();
        let group = |row: &StrategyReport| (scenario_label(row), is_measured(row));
        let mut extremes: BTreeMap<(String, bool), (Option<f64>, Option<f64>)> = BTreeMap::new();
        let may_be_best: Vec<bool> = self.rows.iter().map(|row| self.may_be_best(row, metric)).collect();
        for ((row, &value), &may_be_best) in self.rows.iter().zip(&values).zip(&may_be_best) {
            let (best, worst) = extremes.entry(group(row)).or_insert((None, value));
            if may_be_best && (best.is_none() || metric.is_better(value, *best)) {
                *best = value;
            }
            if metric.is_better(*worst, value) {
                *worst = value;
            }
        }
        let is_best = |row: &StrategyReport, value: Option<f64>| {
            let (best, worst) = extremes.get(&group(row)).copied().unwrap_or_default();
            !metric.is_better(best, value) && metric.is_better(value, worst)
        };
        let cell = |((row, &value), &may_be_best): ((&&StrategyReport, &Option<f64>), &bool)| Cell {
            value,
            text: format_of(metric, value, &row.runs),
            is_best: may_be_best && is_best(row, value),
        };
        self.rows.iter().zip(&values).zip(&may_be_best).map(cell).collect()
    }

    /// Returns whether the value of a row counts when the best is chosen: clients that overload the server are not the
    /// best because they are back early.
    fn may_be_best(&self, row: &StrategyReport, metric: &Metric) -> bool {
        !OF_SPEED.contains(&metric.key) || is_within_capacity(self.storm.scenario_of(row), row)
    }

    /// Returns the rows of a table: the name of each strategy, with a cell for each of these metrics.
    pub(crate) fn table<'m>(&self, shown: impl Iterator<Item = &'m Metric>) -> Vec<(&str, Vec<Cell>)> {
        let mut rows: Vec<(&str, Vec<Cell>)> = self.rows.iter().map(|row| (&*row.name, Vec::new())).collect();
        for metric in shown {
            for ((_, cells), cell) in rows.iter_mut().zip(self.column(metric)) {
                cells.push(cell);
            }
        }
        rows
    }
}

/// Returns the mean over the seeds; `None` if the value does not exist for at least one of them.
fn mean(strategy: &StrategyReport, metric: &Metric) -> Option<f64> {
    let values = strategy.runs.iter().map(|run| Some(metric.value(&run.figures)?.as_f64()));
    let values = values.collect::<Option<Vec<f64>>>().filter(|values| !values.is_empty())?;
    Some(values.iter().sum::<f64>() / values.len() as f64)
}

/// Describes the scenario of a document in one line, and the settings that differ between its rows.
pub(super) fn describe(storm: &StormReport) -> String {
    let mut text = describe_scenario(&storm.scenario);
    if storm.strategies.iter().all(|strategy| strategy.scenario.is_none()) {
        return text;
    }
    let mut names: Vec<&str> = Vec::new();
    for swept in storm.strategies.iter().flat_map(|strategy| &strategy.swept) {
        if swept.of == SweptPart::Scenario && !names.contains(&&*swept.setting) {
            names.push(&swept.setting);
        }
    }
    text.push_str(&format!("; that is the first row: each row has its own {}", names.join(" and ")));
    text
}

/// Describes a scenario in one line.
fn describe_scenario(spec: &ScenarioSpec) -> String {
    use stagger_terminal::plot::Unit::{Count, Seconds};
    let (count, time) = (|n: f64| Count.label(n), |s: f64| Seconds.label(s));
    let reconnect = |kind: &str, spec: &ReconnectSpec| {
        let mut text = format!(
            "{kind}: {} clients lose their connections within {}; server capacity {}/s, backlog {}, one-way latency \
             {} to {}",
            count(spec.clients as f64),
            time(spec.disconnect_window_s),
            count(spec.rate),
            count(f64::from(spec.backlog)),
            time(spec.one_way_min_s),
            time(spec.one_way_max_s),
        );
        if spec.down_for_s > 0.0 {
            text.push_str(&format!(", downtime {}", time(spec.down_for_s)));
        }
        if let Some(CrashLoopSpec { most, above, .. }) = &spec.crash_loop {
            let (most, above) = (count(f64::from(*most)), count(*above));
            text.push_str(&format!(", crashes again above {above} attempts/s, up to {most} times"));
        }
        if let Some(processes) = spec.processes {
            text.push_str(&format!(", {} processes", count(f64::from(processes))));
        }
        text.push_str(&describe_store(spec.store));
        match (spec.retry_after, spec.retry_after_s) {
            (_, Some(delay)) => text.push_str(&format!(", Retry-After {}", time(delay))),
            (RetryAfterSpec::Staggered, _) => text.push_str(", staggered Retry-After"),
            (RetryAfterSpec::Reservations, _) => text.push_str(", reservations"),
            _ => {}
        }
        text
    };
    match spec {
        ScenarioSpec::Reconnect(spec) => reconnect("reconnect", spec),
        ScenarioSpec::Fluid(spec) => reconnect("fluid", spec),
        ScenarioSpec::Outage(spec) => format!(
            "outage: {} requests/s from {} processes, client timeout {}; server capacity {}/s, backlog {}, {} from {} \
             to {}{}",
            count(spec.rate),
            count(f64::from(spec.processes)),
            time(spec.timeout_s),
            count(spec.capacity),
            count(f64::from(spec.queue)),
            match spec.outage {
                OutageKindSpec::Reject => "rejects all requests",
                OutageKindSpec::Throttle => "refuses all requests as too many",
                _ => "stalls",
            },
            time(spec.start_s),
            time(spec.start_s + spec.duration_s),
            describe_store(spec.store),
        ),
        ScenarioSpec::Occ(spec) => format!(
            "occ: {} clients write one row; one-way latency {}, standard deviation {}",
            count(spec.clients as f64),
            time(spec.one_way_mean_s),
            time(spec.one_way_deviation_s),
        ),
        _ => String::new(),
    }
}

/// Describes what happens to the store of a lease, beginning with a comma.
fn describe_store(store: Option<StoreSpec>) -> String {
    let Some(store) = store else { return String::new() };
    let time = |s: f64| Unit::Seconds.label(s);
    let mut text = String::new();
    if let Some([from, until]) = store.down_s {
        let lost = if store.loses_data { " and back without its data" } else { "" };
        text.push_str(&format!(", store away from {} to {}{lost}", time(from), time(until)));
    }
    if let (Some([from, until]), Some(share)) = (store.cut_s, store.cut_ratio) {
        let share = Unit::Share.label(share);
        text.push_str(&format!(", {share} of the processes cut off the store from {} to {}", time(from), time(until)));
    }
    text
}

/// Returns whether a simulation ended before its horizon could show what becomes of its clients.
pub(super) fn is_cut_off(run: &RunReport) -> bool {
    match &run.figures {
        RunFigures::Outage(figures) => figures.verdict == VerdictKind::NotDecided,
        RunFigures::Reconnect(figures) => figures.unfinished > 0 && run.measured.is_none(),
        RunFigures::Fluid(figures) => {
            // Numbers of clients are expected values.
            let settled = figures.connected_ratio + figures.gave_up_ratio;
            figures.clients as f64 * (1.0 - settled) >= 0.5
        }
        _ => false,
    }
}

/// Formats a value of a metric of these runs for display: a time that does not exist may come after the horizon.
pub(super) fn format_of(metric: &Metric, value: Option<f64>, runs: &[RunReport]) -> String {
    match value {
        None if metric.quantity == Quantity::Seconds && runs.iter().any(is_cut_off) => "not yet".to_owned(),
        _ => format(metric, value),
    }
}

/// Formats a value of a metric for display: a mean over runs, or `None` if it does not exist.
pub(super) fn format(metric: &Metric, value: Option<f64>) -> String {
    let Some(value) = value else {
        return if metric.quantity == Quantity::Seconds { "never" } else { "-" }.to_owned();
    };
    match metric.quantity {
        Quantity::Count if value < 100.0 => Unit::Count.label((value * 10.0).round() / 10.0),
        Quantity::Count => Unit::Count.label(value.round()),
        Quantity::Seconds => brief(Duration::try_from_secs_f64(value).unwrap_or(Duration::MAX)),
        Quantity::Ratio => format!("{:.1}%", value * 100.0),
        // The mean over several seeds is a share.
        Quantity::Bool if value <= 0.0 => "no".to_owned(),
        Quantity::Bool if value >= 1.0 => "yes".to_owned(),
        Quantity::Bool => format!("{:.0}% of runs", value * 100.0),
        Quantity::Verdict => verdict(value).map_or("mixed", VerdictKind::name).to_owned(),
        _ => format!("{value:.2}"),
    }
}

/// Returns the verdict of a run; `None` if the value is a mean over runs and that of no verdict.
fn verdict(mean: f64) -> Option<VerdictKind> {
    VerdictKind::ALL.into_iter().find(|verdict| (MetricValue::Verdict(*verdict).as_f64() - mean).abs() < f64::EPSILON)
}

/// Returns the unit of an axis for a metric.
pub(super) const fn unit(metric: &Metric) -> Unit {
    match metric.quantity {
        Quantity::Seconds => Unit::Seconds,
        Quantity::Ratio => Unit::Share,
        _ => Unit::Count,
    }
}

#[cfg(test)]
mod tests {
    use stagger_core::{Policy, Seed};
    use stagger_sim::reconnect::{ReconnectFigures, ReconnectScenario};
    use stagger_sim::storm::{OutageReport, ReconnectReport, SweptSetting};

    use super::*;

    #[test]
    fn all_figures_of_speed_exist() {
        let scenario = ReconnectScenario::builder(1).build().unwrap();
        let storm = StormReport::new(&scenario);
        let results = Results::from_storm(&storm);
        let missing: Vec<_> = OF_SPEED.iter().filter(|key| results.metric(key).is_none()).collect();
        assert!(missing.is_empty(), "{missing:?}");
    }

    #[test]
    fn clients_in_step_are_not_the_best_because_they_are_back_early() {
        let scenario = ReconnectScenario::builder(2_000).rate(100.0).build().unwrap();
        let policies = [
            ("in step", "constant base=1s jitter=none max-attempts=inf"),
            ("spread", "exponential base=1s cap=30s spread=60s max-attempts=inf"),
            ("slow", "exponential base=1s cap=30s spread=90s max-attempts=inf"),
        ];
        let mut storm = StormReport::new(&scenario);
        for (name, policy) in policies {
            let policy: Policy = policy.parse().unwrap();
            let run = scenario.run(&policy, Seed::new(1));
            storm = storm.with_strategy(name, &policy, [(Seed::new(1), &run)]);
        }
        let results = Results::from_storm(&storm);
        let column = results.column(results.metric("recovered_p50_s").unwrap());
        assert!(column[0].value < column[1].value, "{column:?}");
        assert_eq!(column.iter().map(|cell| cell.is_best).collect::<Vec<_>>(), [false, true, false]);
        // A ratio that is lowest for clients that are all treated alike badly has no best value.
        for key in ["fairness_recovered", "fairness_attempts", "peak_100ms_after_1s"] {
            let column = results.column(results.metric(key).unwrap());
            assert!(column.iter().all(|cell| !cell.is_best), "{key}: {column:?}");
        }
    }

    #[test]
    fn measured_values_are_not_compared_with_simulated_ones() {
        let scenario = ReconnectScenario::builder(1).build().unwrap();
        let mut storm = StormReport::new(&scenario);
        for (name, attempts) in [("a, measured", 5), ("a, simulated", 4), ("b, measured", 7), ("b, simulated", 6)] {
            let mut figures = ReconnectFigures::default();
            (figures.clients, figures.attempts) = (1, attempts);
            storm = storm.with_strategy(name, &Policy::DEFAULT, [(Seed::new(1), &figures)]);
            if name.ends_with("measured") {
                storm = storm.with_measurements(stagger_sim::storm::Measurements::default());
            }
        }
        let results = Results::from_storm(&storm);
        let column = results.column(results.metric("attempts").unwrap());
        assert_eq!(column.iter().map(|cell| cell.is_best).collect::<Vec<_>>(), [true, true, false, false]);
    }

    #[test]
    fn the_best_value_is_that_of_the_rows_in_the_same_scenario() {
        let scenario = ReconnectScenario::builder(1).build().unwrap();
        let mut storm = StormReport::new(&scenario);
        for (clients, name, attempts) in
            [(1, "ours", 5), (1, "curl", 7), (9, "ours", 50), (9, "curl", 70), (10, "ours", 8)]
        {
            let mut figures = ReconnectFigures::default();
            (figures.clients, figures.attempts) = (clients, attempts);
            storm = storm.with_strategy(name, &Policy::DEFAULT, [(Seed::new(1), &figures)]).with_swept(
                (&scenario).into(),
                [SweptSetting::new("clients", clients.to_string(), SweptPart::Scenario)],
            );
        }
        let results = Results::from_storm(&storm);
        let column = results.column(results.metric("attempts").unwrap());
        let best: Vec<bool> = column.iter().map(|cell| cell.is_best).collect();
        assert_eq!(best, [true, false, true, false, false], "the last has no other row to compare");
    }

    #[test]
    fn values_are_formatted_briefly() {
        for (key, value, want) in [
            ("peak_1s", Some(17_980.0), "17,980"),
            ("peak_1s", Some(1_234.4), "1,234"),
            ("attempts_p99", Some(6.5), "6.5"),
            ("attempts_per_client", Some(4.0), "4.00"),
            ("recovered_p99_s", Some(15.23), "15.2s"),
            ("recovered_p99_s", None, "never"),
            ("efficiency_time", None, "-"),
            ("success_ratio", Some(0.98765), "98.8%"),
            ("metastable", Some(1.0), "yes"),
            ("metastable", Some(0.5), "50% of runs"),
        ] {
            let mut metrics = ReconnectReport::METRICS.iter().chain(OutageReport::METRICS);
            assert_eq!(format(metrics.find(|metric| metric.key == key).unwrap(), value), want, "{key}");
        }
    }
}
