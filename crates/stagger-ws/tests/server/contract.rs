//! Checks that every metric of the contract is recorded, and no other.

use std::collections::{BTreeMap, BTreeSet};

use metrics_util::MetricKind;
use metrics_util::debugging::DebuggingRecorder;

use crate::support::{connect, unlimited};

const CONTRACT: &str = include_str!("../../src/server/contract.md");

type Labels = BTreeMap<String, BTreeSet<String>>;

fn quoted(text: &str) -> impl Iterator<Item = String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned)
}

/// Parses the contract: the kind, the labels and their values of each metric.
fn documented() -> BTreeMap<String, (String, Labels)> {
    let rows = CONTRACT.lines().skip(2).map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    let parse = |row: Vec<&str>| {
        let (plain, values) = row[3].split_once(':').unwrap_or((row[3], ""));
        let mut labels: Labels = quoted(plain).map(|label| (label, BTreeSet::new())).collect();
        let last = quoted(plain).last().expect("a label");
        labels.insert(last, quoted(values).collect());
        (quoted(row[1]).next().expect("a name"), (row[2].to_owned(), labels))
    };
    rows.map(parse).collect()
}

#[test]
fn exactly_the_metrics_of_the_contract_are_recorded() {
    let recorder = DebuggingRecorder::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    metrics::with_local_recorder(&recorder, || {
        let sockets = unlimited().named("feed").build().unwrap();
        let connections = runtime.block_on(async { [connect(&sockets).await, connect(&sockets).await] });
        let [one, _still_here] = connections;
        drop(one);
        sockets.record_metrics();
    });
    let mut recorded = BTreeMap::<String, (String, Labels)>::new();
    for (key, _, _, _) in recorder.snapshotter().snapshot().into_vec() {
        let kind = match key.kind() {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        let (_, labels) =
            recorded.entry(key.key().name().to_owned()).or_insert_with(|| (kind.to_owned(), Labels::new()));
        for label in key.key().labels() {
            let values = labels.entry(label.key().to_owned()).or_default();
            if label.key() == "target" {
                assert_eq!(label.value(), "feed");
            } else {
                values.insert(label.value().to_owned());
            }
        }
    }
    let documented = documented();
    assert_eq!(recorded.keys().collect::<Vec<_>>(), documented.keys().collect::<Vec<_>>());
    for (name, (kind, labels)) in &recorded {
        assert_eq!(kind, &documented[name].0, "{name}");
        assert!(labels.keys().eq(documented[name].1.keys()), "{name}: {labels:?}");
        for (label, values) in labels {
            assert!(values.is_subset(&documented[name].1[label]), "{name}: {label} is {values:?}");
        }
        // A code appears when a connection has ended with it; everything else exists from the start.
        if name != "stagger_ws_closed_total" {
            assert_eq!(labels, &documented[name].1, "{name}");
        }
    }
}
