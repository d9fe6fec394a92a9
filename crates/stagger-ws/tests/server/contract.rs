//! The contract: every metric that the documentation names is made, and no other.

use std::collections::{BTreeMap, BTreeSet};

use metrics_util::MetricKind;
use metrics_util::debugging::DebuggingRecorder;

use crate::support::{connect, open_to_all};

const CONTRACT: &str = include_str!("../../src/server/contract.md");

type Labels = BTreeMap<String, BTreeSet<String>>;

fn quoted(text: &str) -> impl Iterator<Item = String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned)
}

/// What is promised of each metric: its kind, its labels and their values.
fn promised() -> BTreeMap<String, (String, Labels)> {
    let rows = CONTRACT.lines().skip(2).map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    let promise = |row: Vec<&str>| {
        let (plain, values) = row[3].split_once(':').unwrap_or((row[3], ""));
        let mut labels: Labels = quoted(plain).map(|label| (label, BTreeSet::new())).collect();
        let last = quoted(plain).last().expect("a label");
        labels.insert(last, quoted(values).collect());
        (quoted(row[1]).next().expect("a name"), (row[2].to_owned(), labels))
    };
    rows.map(promise).collect()
}

#[test]
fn every_metric_of_the_contract_is_made_and_no_other() {
    let recorder = DebuggingRecorder::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    metrics::with_local_recorder(&recorder, || {
        let sockets = open_to_all().named("feed").build().unwrap();
        let connections = runtime.block_on(async { [connect(&sockets).await, connect(&sockets).await] });
        let [one, _still_here] = connections;
        drop(one);
        sockets.record_metrics();
    });
    let mut made = BTreeMap::<String, (String, Labels)>::new();
    for (key, _, _, _) in recorder.snapshotter().snapshot().into_vec() {
        let kind = match key.kind() {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        let (_, labels) = made.entry(key.key().name().to_owned()).or_insert_with(|| (kind.to_owned(), Labels::new()));
        for label in key.key().labels() {
            let values = labels.entry(label.key().to_owned()).or_default();
            if label.key() == "target" {
                assert_eq!(label.value(), "feed");
            } else {
                values.insert(label.value().to_owned());
            }
        }
    }
    let promised = promised();
    assert_eq!(made.keys().collect::<Vec<_>>(), promised.keys().collect::<Vec<_>>());
    for (name, (kind, labels)) in &made {
        assert_eq!(kind, &promised[name].0, "{name}");
        assert!(labels.keys().eq(promised[name].1.keys()), "{name}: {labels:?}");
        for (label, values) in labels {
            assert!(values.is_subset(&promised[name].1[label]), "{name}: {label} is {values:?}");
        }
        // Codes come up as there are connections that had them; everything else is there from the beginning.
        if name != "stagger_ws_closed_total" {
            assert_eq!(labels, &promised[name].1, "{name}");
        }
    }
}
