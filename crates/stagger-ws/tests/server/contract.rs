//! Checks that every metric of the contract is recorded, and no other, and that all are described.

use std::collections::{BTreeMap, BTreeSet};

use metrics::{Unit, counter, gauge, histogram};
use metrics_util::MetricKind;
use metrics_util::debugging::DebuggingRecorder;

use crate::support::{connect, unlimited};

const CONTRACT: &str = include_str!("../../src/server/contract.md");
const OF_CLIENTS: &str = include_str!("../../src/client/metrics.md");

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

/// The exporter joins a description to the metric of the same name and kind.
#[test]
fn every_metric_of_clients_and_servers_is_described_with_its_unit() {
    let rows: Vec<_> = [OF_CLIENTS, CONTRACT]
        .into_iter()
        .flat_map(|table| table.lines().skip(2))
        .map(|row| row.split('|').map(str::trim).collect::<Vec<_>>())
        .collect();
    let recorder = DebuggingRecorder::new();
    metrics::with_local_recorder(&recorder, || {
        stagger_ws::describe_metrics();
        for row in &rows {
            let name = row[1].trim_matches('`').to_owned();
            match row[2] {
                "counter" => counter!(name).increment(1),
                "gauge" => gauge!(name).set(1.0),
                _ => histogram!(name).record(1.0),
            }
        }
    });
    let described: BTreeMap<_, _> = recorder
        .snapshotter()
        .snapshot()
        .into_vec()
        .into_iter()
        .map(|(key, unit, description, _)| (key.key().name().to_owned(), (unit, description)))
        .collect();
    assert_eq!(described.len(), rows.len());
    for row in rows {
        let (name, unit) = (row[1].trim_matches('`'), row[5].trim_matches('`'));
        let want = if unit == "s" { Unit::Seconds } else { Unit::Count };
        assert_eq!(described[name], (Some(want), Some(row[4].to_owned().into())), "{name}");
        // As for the metrics of `stagger`: OpenTelemetry's translation to Prometheus appends only seconds.
        assert_eq!(unit == "s", name.ends_with("_seconds"), "{name}");
        assert!(unit == "s" || unit.starts_with('{') && unit.ends_with('}'), "{name}: {unit}");
    }
}

/// The longest wait and the spread are within the buckets.
#[test]
fn the_buckets_for_downtime_hold_the_waits_of_the_default_policy() {
    let (buckets, policy) = (stagger_ws::DOWNTIME_BUCKETS, stagger::profile::WEB_SOCKET.policy());
    assert!(buckets.is_sorted());
    let (_, longest) = policy.bounds(9).expect("it has no limit of attempts");
    assert!(buckets.iter().any(|&bucket| bucket > 10.0 && bucket >= longest.as_secs_f64()), "{longest:?}");
}

/// The guide promises it, because each value is a time series.
#[test]
fn no_label_but_the_target_has_more_than_seventeen_values() {
    for table in [OF_CLIENTS, CONTRACT] {
        for row in table.lines().skip(2) {
            let values = row.split('|').nth(3).expect("labels").split_once(':').map_or("", |(_, values)| values);
            assert!(quoted(values).count() <= 17, "{row}");
        }
    }
}
