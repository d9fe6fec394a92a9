//! Checks the Prometheus rules and the Grafana dashboard: they agree with each other and use only metrics that exist.
//!
//! `promtool` of Prometheus checks the rules, runs their tests, and parses every query of the dashboard.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

const CONTRACT: &str = concat!(
    include_str!("../../../../crates/stagger/src/observe/contract.md"),
    include_str!("../../../../crates/stagger-ws/src/server/contract.md"),
    include_str!("../../../../fleet/stagger-redis/src/metrics.md")
);
/// The dashboard does not show these: each client is a process of its own.
const OF_CLIENTS: &str = include_str!("../../../../crates/stagger-ws/src/client/metrics.md");
const RULES: &str = include_str!("../../../../monitoring/prometheus/stagger.rules.yml");
const TESTS: &str = include_str!("../../../../monitoring/prometheus/stagger.test.yml");
const DASHBOARD: &str = include_str!("../../../../monitoring/grafana/stagger.json");
const GUIDE: &str = include_str!("../../../../docs/guide/metrics.md");

/// Returns the words of a text that name a metric or a recording rule. A word with a path is an item of the crate.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
    let words = words.filter(|word| !word.contains("::"));
    words.filter(|word| word.starts_with("stagger_") || word.contains(":stagger_")).collect()
}

/// Removes the suffix that Prometheus adds to the series of a histogram.
fn without_suffix(name: &str) -> &str {
    let suffix = ["_bucket", "_sum", "_count"].into_iter().find_map(|suffix| name.strip_suffix(suffix));
    suffix.unwrap_or(name)
}

fn recorded() -> BTreeSet<&'static str> {
    RULES.lines().filter_map(|line| line.trim().strip_prefix("- record: ")).collect()
}

fn alerts() -> Vec<(&'static str, &'static str)> {
    let alerts = RULES.split("- alert: ").skip(1);
    alerts.map(|alert| (alert.lines().next().expect("its name"), alert)).collect()
}

fn dashboard() -> Value {
    serde_json::from_str(DASHBOARD).expect("the dashboard is JSON")
}

fn panels(dashboard: &Value) -> Vec<&Value> {
    dashboard["panels"].as_array().expect("panels").iter().collect()
}

/// Returns the queries of the dashboard with values for the variables of Grafana.
fn queries(dashboard: &Value) -> Vec<String> {
    let targets = panels(dashboard).into_iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let queries = targets.map(|target| target["expr"].as_str().expect("a query"));
    queries
        .map(|query| query.replace("$__rate_interval", "5m").replace("$job", ".*").replace("$target", ".*"))
        .collect()
}

/// Runs promtool, which is in `PATH` or in the directory of `cargo xtask ci --only packages`.
fn promtool(arguments: &[&Path]) {
    let unpacked = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../packages/usr/bin");
    let path = env::var_os("PATH").unwrap_or_default();
    let mut places = env::split_paths(&path).chain([unpacked]).map(|place| place.join("promtool"));
    let program = places.find(|place| place.is_file()).expect("promtool: run `cargo xtask ci --only packages`");
    let output = Command::new(program).args(arguments).output().expect("promtool starts");
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{arguments:?}: {stdout}{stderr}");
}

fn rules_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../monitoring/prometheus")
}

#[test]
fn the_rules_are_valid_and_each_alert_fires_when_it_should() {
    let directory = rules_directory();
    promtool(&["check".as_ref(), "rules".as_ref(), &directory.join("stagger.rules.yml")]);
    promtool(&["test".as_ref(), "rules".as_ref(), &directory.join("stagger.test.yml")]);
}

#[test]
fn each_alert_has_tests_for_firing_and_silence_and_an_action() {
    let alerts = alerts();
    assert!(alerts.len() > 5);
    for (name, alert) in alerts {
        for annotation in ["summary:", "description:", "action:"] {
            assert!(alert.contains(annotation), "{name} has no {annotation}");
        }
        let tests = TESTS.split("alertname: ").filter(|test| test.lines().next() == Some(name));
        let silent: BTreeSet<_> = tests.map(|test| test.contains("exp_alerts: []")).collect();
        assert_eq!(
            silent.len(),
            2,
            "{name} needs a test in which it fires and one in which it does not; without alerts: {silent:?}"
        );
        assert!(GUIDE.contains(name), "{name} is not in the guide");
    }
}

#[test]
fn rules_dashboard_and_guide_use_only_documented_metrics() {
    let metrics: BTreeSet<_> = names(CONTRACT).into_iter().collect();
    let recorded = recorded();
    for (place, text) in [("rules", RULES), ("rule tests", TESTS), ("dashboard", DASHBOARD), ("guide", GUIDE)] {
        for name in names(text) {
            let is_metric = metrics.contains(without_suffix(name)) || names(OF_CLIENTS).contains(name);
            let is_there = is_metric || recorded.contains(name) || name == "stagger_";
            assert!(is_there, "{name} in the {place} is not a metric");
        }
    }
    let shown = names(DASHBOARD);
    let shown: BTreeSet<_> = shown.into_iter().map(without_suffix).collect();
    let missing: Vec<_> = metrics.difference(&shown).collect();
    assert!(missing.is_empty(), "the dashboard does not show {missing:?}");
}

/// The contract's own test compares its values with those of the enums.
#[test]
fn rules_and_dashboard_select_only_documented_label_values() {
    let documented: BTreeSet<_> = CONTRACT.split('`').skip(1).step_by(2).collect();
    let (is_free, dashboard) = (["job", "target", "instance", "namespace", "__name__"], queries(&dashboard()).concat());
    let mut selected = 0;
    for (place, text) in [("rules", RULES), ("rule tests", TESTS), ("dashboard", &dashboard)] {
        for (matcher, rest) in text.match_indices('"').step_by(2).map(|(at, _)| text.split_at(at)) {
            let label = matcher.trim_end_matches(['=', '!', '~']);
            let label = label.rsplit(|c: char| !c.is_ascii_lowercase() && c != '_').next().unwrap_or_default();
            if matcher.ends_with(['=', '~']) && !is_free.contains(&label) {
                let values = rest.split('"').nth(1).expect("a closing quote").split('|');
                for prefix in values.map(|value| value.trim_end_matches(".+")) {
                    let is_there = documented.iter().any(|value| value.starts_with(prefix));
                    assert!(is_there, "{label}={prefix} in the {place} is not in the contract");
                    selected += 1;
                }
            }
        }
    }
    assert!(selected > 20, "{selected}");
}

#[test]
fn panels_have_unique_ids_and_do_not_overlap() {
    let dashboard = dashboard();
    let mut ids = BTreeSet::new();
    let mut taken = BTreeSet::new();
    for panel in panels(&dashboard) {
        assert!(ids.insert(panel["id"].as_u64().expect("an id")), "{} is used twice", panel["id"]);
        let place = |side: &str| panel["gridPos"][side].as_u64().expect("a place");
        for cell in (0..place("w")).flat_map(|x| (0..place("h")).map(move |y| (x, y))) {
            let cell = (place("x") + cell.0, place("y") + cell.1);
            assert!(cell.0 < 24 && taken.insert(cell), "{} overlaps at {cell:?}", panel["title"]);
        }
    }
}

/// Wraps the queries in rules, because promtool parses queries only there.
#[test]
fn every_query_of_the_dashboard_parses() {
    let queries = queries(&dashboard());
    assert!(queries.len() > 20);
    let rule = |(number, query): (usize, &String)| format!("      - record: query_{number}\n        expr: {query:?}\n");
    let rules: String = queries.iter().enumerate().map(rule).collect();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("board.rules.yml");
    fs::write(&file, format!("groups:\n  - name: dashboard\n    rules:\n{rules}")).expect("it can be written");
    promtool(&["check".as_ref(), "rules".as_ref(), &file]);
}
