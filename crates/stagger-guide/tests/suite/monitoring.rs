//! The rules for Prometheus and the board for Grafana: they hold together, and speak of no metric that is not there.
//!
//! Prometheus's own `promtool` checks the rules, runs their tests, and reads every query of the board.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use serde_json::Value;

const CONTRACT: &str = concat!(
    include_str!("../../../stagger/src/observe/contract.md"),
    include_str!("../../../stagger-ws/src/server/contract.md")
);
const RULES: &str = include_str!("../../../../monitoring/prometheus/stagger.rules.yml");
const TESTS: &str = include_str!("../../../../monitoring/prometheus/stagger.test.yml");
const BOARD: &str = include_str!("../../../../monitoring/grafana/stagger.json");
const GUIDE: &str = include_str!("../../../../docs/guide/metrics.md");

/// The words of a text that name a metric or a recorded rule; what has a path is an item.
fn names(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
    let words = words.filter(|word| !word.contains("::"));
    words.filter(|word| word.starts_with("stagger_") || word.contains(":stagger_")).collect()
}

/// Where Prometheus has what a histogram was given.
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

fn board() -> Value {
    serde_json::from_str(BOARD).expect("a board is JSON")
}

fn panels(board: &Value) -> Vec<&Value> {
    board["panels"].as_array().expect("panels").iter().collect()
}

/// The queries of the board, with what Grafana puts in place of its variables.
fn queries(board: &Value) -> Vec<String> {
    let targets = panels(board).into_iter().flat_map(|panel| panel["targets"].as_array().into_iter().flatten());
    let queries = targets.map(|target| target["expr"].as_str().expect("a query"));
    queries
        .map(|query| query.replace("$__rate_interval", "5m").replace("$job", ".*").replace("$target", ".*"))
        .collect()
}

/// The program, which is in `PATH`, or where `cargo xtask ci --only packages` has put it.
fn promtool(arguments: &[&Path]) {
    let unpacked = Path::new(env!("CARGO_TARGET_TMPDIR")).join("../packages/usr/bin");
    let path = env::var_os("PATH").unwrap_or_default();
    let mut places = env::split_paths(&path).chain([unpacked]).map(|place| place.join("promtool"));
    let program = places.find(|place| place.is_file()).expect("promtool: run `cargo xtask ci --only packages`");
    let output = Command::new(program).args(arguments).output().expect("promtool starts");
    let (told, failed) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{arguments:?}: {told}{failed}");
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
fn each_alert_is_tested_both_ways_and_says_what_to_do() {
    let alerts = alerts();
    assert!(alerts.len() > 5);
    for (name, alert) in alerts {
        for annotation in ["summary:", "description:", "action:"] {
            assert!(alert.contains(annotation), "{name} has no {annotation}");
        }
        let tests = TESTS.split("alertname: ").filter(|test| test.lines().next() == Some(name));
        let silent: BTreeSet<_> = tests.map(|test| test.contains("exp_alerts: []")).collect();
        assert_eq!(silent.len(), 2, "{name} is silent: {silent:?}");
        assert!(GUIDE.contains(name), "{name} is not in the guide");
    }
}

#[test]
fn rules_and_board_and_guide_speak_of_metrics_that_there_are() {
    let metrics: BTreeSet<_> = names(CONTRACT).into_iter().collect();
    let recorded = recorded();
    for (place, text) in [("rules", RULES), ("their tests", TESTS), ("board", BOARD), ("guide", GUIDE)] {
        for name in names(text) {
            let is_there = metrics.contains(without_suffix(name)) || recorded.contains(name) || name == "stagger_";
            assert!(is_there, "{name} in the {place} is no metric");
        }
    }
    let shown = names(BOARD);
    let shown: BTreeSet<_> = shown.into_iter().map(without_suffix).collect();
    let missing: Vec<_> = metrics.difference(&shown).collect();
    assert!(missing.is_empty(), "the board does not show {missing:?}");
}

#[test]
fn the_panels_of_the_board_are_told_apart_and_do_not_overlap() {
    let board = board();
    let mut ids = BTreeSet::new();
    let mut taken = BTreeSet::new();
    for panel in panels(&board) {
        assert!(ids.insert(panel["id"].as_u64().expect("an id")), "{} is there twice", panel["id"]);
        let place = |side: &str| panel["gridPos"][side].as_u64().expect("a place");
        for cell in (0..place("w")).flat_map(|x| (0..place("h")).map(move |y| (x, y))) {
            let cell = (place("x") + cell.0, place("y") + cell.1);
            assert!(cell.0 < 24 && taken.insert(cell), "{} overlaps at {cell:?}", panel["title"]);
        }
    }
}

/// As rules, which is how promtool reads queries.
#[test]
fn prometheus_reads_every_query_of_the_board() {
    let queries = queries(&board());
    assert!(queries.len() > 20);
    let rule = |(number, query): (usize, &String)| format!("      - record: query_{number}\n        expr: {query:?}\n");
    let rules: String = queries.iter().enumerate().map(rule).collect();
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("board.rules.yml");
    fs::write(&file, format!("groups:\n  - name: board\n    rules:\n{rules}")).expect("it can be written");
    promtool(&["check".as_ref(), "rules".as_ref(), &file]);
}
