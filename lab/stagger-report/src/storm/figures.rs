//! The figures of a storm, and its scenario in words.

use stagger_sim::storm::{
    self, CrashLoopSpec, Importance, MetricValue, OutageKindSpec, OutageSpec, Quantity, ReconnectSpec, RetryAfterSpec,
    RunFigures, RunReport, ScenarioSpec, StoreSpec, StormReport, StrategyReport, SweptPart, VerdictKind,
};
use stagger_terminal::plot::Unit;

use super::subject::{is_measured, name_of_policy, scenario_label};
use super::timeline::{Timeline, end_time, resample};
use crate::report::{Figures, Metric, Named, Row, Run};
use crate::text::SPARKLINE_WIDTH;

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

/// Returns the figures of a document.
pub(super) fn figures(storm: &StormReport) -> Figures {
    let is_compared = storm.strategies.iter().flat_map(|row| &row.runs).any(|run| agreement(run).is_some());
    let metrics = metrics(storm, is_compared);
    let until = end_time(storm, SPARKLINE_SHARE);
    let has_measured = storm.strategies.iter().any(is_measured);
    let row = |strategy: &StrategyReport| {
        let run = |run: &RunReport| {
            let mut values: Vec<_> = storm.scenario.metrics().iter().map(|metric| metric.value(&run.figures)).collect();
            if is_compared {
                values.push(agreement(run).flatten().map(MetricValue::Bool));
            }
            let guards = strategy.guards.clone().unwrap_or_default();
            Run {
                labels: vec![strategy.name.clone(), strategy.policy.clone(), guards, run.seed.to_string()],
                whose: format!("for {} with seed {}", strategy.name, run.seed),
                values,
                absent: if is_cut_off(run) { Some("not yet") } else { None },
            }
        };
        let timeline = strategy.runs.first().and_then(|run| Timeline::from_figures(&run.figures));
        let curve = match timeline {
            Some(timeline) if until > 0.0 => resample(&timeline.attempts, timeline.bin_s, until, SPARKLINE_WIDTH),
            _ => Vec::new(),
        };
        Row {
            name: strategy.name.clone(),
            // Measured values are compared with measured ones.
            group: format!("{}{}", scenario_label(strategy), if is_measured(strategy) { ", measured" } else { "" }),
            is_asserted: is_measured(strategy) || !has_measured,
            // The fastest recovery is the best only among policies that the server can take.
            never_best: if is_within_capacity(storm.scenario_of(strategy), strategy) { &[] } else { &OF_SPEED },
            runs: strategy.runs.iter().map(run).collect(),
            curve,
        }
    };
    let rows = storm.strategies.iter().map(row).collect();
    Figures { metrics, rows, labels: &["strategy", "policy", "guards", "seed"], curve: "arrivals" }
}

/// Share of the attempts that a sparkline covers; the last stragglers would fill half of it.
const SPARKLINE_SHARE: f64 = 0.995;

/// Returns the metrics of a scenario; those that are compared with simulations have `agrees`, too.
pub fn metrics_of(scenario: &ScenarioSpec, is_compared: bool) -> Vec<Metric> {
    let agrees = is_compared.then(|| Metric::detail("agrees", Quantity::Bool));
    scenario.metrics().iter().map(Metric::from).chain(agrees).collect()
}

/// Returns the metrics of a document. What these runs have beyond the usual, crashes or a budget of leases, belongs into
/// every table.
fn metrics(storm: &StormReport, is_compared: bool) -> Vec<Metric> {
    let runs = || storm.strategies.iter().flat_map(|strategy| &strategy.runs);
    let crashes = |spec: &ScenarioSpec| matches!(spec, ScenarioSpec::Reconnect(spec) if spec.crash_loop.is_some());
    let has_crashes = storm.strategies.iter().any(|strategy| crashes(storm.scenario_of(strategy)));
    let has_leases = runs().any(has_lease);
    let has_faults =
        runs().all(has_lease) && matches!(&storm.scenario, ScenarioSpec::Outage(OutageSpec { store: Some(_), .. }));
    let mut metrics = metrics_of(&storm.scenario, is_compared);
    for metric in &mut metrics {
        let is_of_these_runs = match &*metric.key {
            "crashes" => has_crashes,
            "leases_restored_s" => has_faults,
            key => has_leases && OF_LEASES.contains(&key),
        };
        if is_of_these_runs {
            metric.importance = Importance::Primary;
        }
    }
    metrics
}

/// Returns whether a measured run agrees with its simulations, if it was compared; `None` if it is unreliable.
fn agreement(run: &RunReport) -> Option<Option<bool>> {
    Some(run.measured.as_ref()?.agreement.as_ref()?.agrees)
}

/// Returns the policies with their names and guards. Rows that have the same policy and guards, and names that differ
/// only in their last part or in swept settings of the scenario, are combined.
pub(super) fn policies(storm: &StormReport) -> Vec<Named> {
    let mut policies: Vec<Named> = Vec::new();
    for row in &storm.strategies {
        let name = name_of_policy(row);
        let family = |name: &str| name.rsplit_once(", ").map(|(family, _)| family.len());
        let is_same = |known: &&mut Named| known.policy == row.policy && known.guards == row.guards;
        if policies.iter_mut().filter(is_same).any(|known| known.name == name) {
            continue;
        }
        match (policies.last_mut().filter(is_same), family(&name)) {
            (Some(known), Some(end)) if family(&known.name) == Some(end) && known.name[..end] == name[..end] => {
                known.name.truncate(end);
            }
            _ => policies.push(Named { name, policy: row.policy.clone(), guards: row.guards.clone() }),
        }
    }
    policies
}

/// Returns the seeds, in a few words.
pub(super) fn seeds(storm: &StormReport) -> String {
    let runs = storm.strategies.iter().map(|row| &row.runs).max_by_key(|runs| runs.len());
    match runs.map(Vec::as_slice) {
        None | Some([]) => String::new(),
        Some([run]) => format!("seed {}", run.seed),
        Some([first, .., last]) => {
            format!("means of {} runs, seeds {} to {}", runs.map_or(0, Vec::len), first.seed, last.seed)
        }
    }
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

/// Returns the unit of an axis for a metric.
pub(super) const fn unit(metric: &storm::Metric) -> Unit {
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
    use stagger_sim::storm::{Agreement, Measurements, ReconnectReport, SweptSetting};

    use super::*;

    #[test]
    fn all_figures_of_speed_exist() {
        let exists = |key: &&&str| ReconnectReport::METRICS.iter().any(|metric| metric.key == **key);
        let missing: Vec<_> = OF_SPEED.iter().filter(|key| !exists(key)).collect();
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
        let figures = figures(&storm);
        let column = figures.of("recovered_p50_s");
        assert!(column[0].value < column[1].value, "{column:?}");
        assert_eq!(column.iter().map(|cell| cell.is_best).collect::<Vec<_>>(), [false, true, false]);
        // A ratio that is lowest for clients that are all treated alike badly has no best value.
        for key in ["fairness_recovered", "fairness_attempts", "peak_100ms_after_1s"] {
            let column = figures.of(key);
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
                storm = storm.with_measurements(Measurements::default());
            }
        }
        let figures = figures(&storm);
        let column = figures.of("attempts");
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
        let figures = figures(&storm);
        let column = figures.of("attempts");
        let best: Vec<bool> = column.iter().map(|cell| cell.is_best).collect();
        assert_eq!(best, [true, false, true, false, false], "the last has no other row to compare");
    }

    #[test]
    fn an_unreliable_run_does_not_agree_and_simulations_have_no_agreement() {
        let scenario = ReconnectScenario::builder(1).build().unwrap();
        let run = scenario.run(&Policy::DEFAULT, Seed::new(3));
        let storm = || StormReport::new(&scenario).with_strategy("ours", &Policy::DEFAULT, [(Seed::new(3), &run)]);
        for (agrees, want) in [(Some(true), "yes"), (Some(false), "no"), (None, "unknown")] {
            let (mut agreement, mut measured) = (Agreement::default(), Measurements::default());
            agreement.agrees = agrees;
            measured.agreement = Some(agreement);
            assert_eq!(figures(&storm().with_measurements(measured)).of("agrees")[0].text, want);
        }
        assert!(figures(&storm()).of("agrees").is_empty());
    }
}
