//! The contract: exactly the documented metrics and events are emitted.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex};

use metrics::{Key, KeyName, Metadata, Recorder, SharedString, Unit};
use stagger::admission::{Admission, Secret};
use stagger::batch::Batch;
use stagger::breaker::{BreakerState, CircuitBreaker};
use stagger::budget::{ControlMode, Tokens};
use stagger::control::RetryControls;
use stagger::guard::{Guard, Keyed, QuietPeriod};
use stagger::hedge::Hedge;
use stagger::observe::{self, Gauges};
use stagger::queue::RetryQueue;
use stagger::reconnect::Reconnect;
use stagger::testing::NoSleep;
use stagger::{DelaySource, Instant, Outcome, Policy, Retrier, Seed, StopReason, hedge, policy};

use super::support::{Logs, Metrics};
use crate::suite::support::RecordingBudget;

const POLICY: Policy = policy!(zero().max_attempts(3));
const CONNECTION: Policy = policy!(zero().unlimited_attempts());
const CONTRACT: &str = include_str!("../../../src/observe/contract.md");

/// A metric's kind and the values that each label can have. The set is empty if the program chooses the values.
#[derive(Debug, Default, PartialEq, Eq)]
struct MetricSpec {
    kind: String,
    labels: BTreeMap<String, BTreeSet<String>>,
}

/// Returns the parts of a text that are in backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn contract() -> BTreeMap<String, MetricSpec> {
    let rows = CONTRACT.lines().skip(2).map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    let mut contract = BTreeMap::new();
    for row in rows {
        let name = quoted(row[1]).next().expect("a name").to_owned();
        // `target`, `label`: `value`, `value`
        let (plain, values) = row[3].split_once(':').unwrap_or((row[3], ""));
        let mut labels: BTreeMap<_, _> = quoted(plain).map(|label| (label.to_owned(), BTreeSet::new())).collect();
        let last = quoted(plain).last().expect("a label").to_owned();
        labels.insert(last, quoted(values).map(str::to_owned).collect());
        let spec = MetricSpec { kind: row[2].to_owned(), labels };
        assert!(contract.insert(name, spec).is_none(), "{row:?} is a duplicate");
    }
    contract
}

/// Emits every metric and every event at least once.
fn emit_everything() {
    let controls = RetryControls::new();
    let breaker = Arc::new(CircuitBreaker::builder(Seed::new(1)).consecutive(100).build().unwrap());
    let admission = Arc::new(Admission::per_second(10).build(Secret::new([1; 16])).unwrap());
    let budget: Arc<dyn Guard> = Arc::new(Tokens::new());
    let api = Retrier::new(POLICY).named("api").shared_guard(Arc::clone(&budget)).controls(&controls);
    let api = api.on_event(observe::metrics()).on_event(observe::tracing());
    let gauges = Gauges::new().guard("api", budget).breaker("api", Arc::clone(&breaker)).controls(&controls);
    let by_host = Retrier::new(POLICY).named("hosts").budget(Tokens::new()).breaker(CircuitBreaker::new(Seed::new(1)));
    let gauges =
        gauges.admission("door", admission).targets(&by_host).quiet_period("api", Arc::new(QuietPeriod::new()));
    let gauges = gauges.keyed("hosts", Arc::new(Keyed::<u32, _>::guards(QuietPeriod::new)));

    let mut left = 0;
    let mut call = |failures| {
        left = failures;
        let call = api.blocking_call(|_| {
            left -= 1;
            if left < 0 { Ok(()) } else { Err("no") }
        });
        let _ = call.timer(NoSleep).run();
    };
    (0..4).for_each(&mut call);
    controls.set("api", ControlMode::NoRetries);
    call(1);
    let connection = Retrier::new(CONNECTION).named("feed").on_event(observe::metrics()).on_event(observe::tracing());
    let mut failures = 0;
    let refused = || {
        failures += 1;
        if failures > 10 { Ok(()) } else { Err("no") }
    };
    let _ = Reconnect::with_timer(NoSleep, connection, refused).next_blocking();
    breaker.force_open(&Instant::ZERO);
    gauges.record();

    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(async {
        for budget in [RecordingBudget::new(9), RecordingBudget::new(0)] {
            let mut attempts = 0;
            let slow = || {
                attempts += 1;
                let took = if attempts == 1 { Duration::from_secs(1) } else { Duration::ZERO };
                async move {
                    tokio::time::sleep(took).await;
                    Ok::<_, &str>(())
                }
            };
            let report = hedge::hedge(&Hedge::after(Duration::from_millis(1)), slow).guard(&budget).with_report().await;
            observe::record_hedged("api", &report);
        }
        let mut batch = Batch::new(POLICY, [("a", 1), ("b", 2)]);
        assert!(batch.next_attempt().await);
        batch.failed("a", Outcome::Permanent, "no").unwrap();
        observe::record_batch("orders", &batch.finish());
        let mut queue = RetryQueue::new(POLICY).capacity(1);
        let _ = (queue.push(1, Duration::ZERO), queue.push(2, Duration::ZERO));
        observe::record_queue("orders", &queue.snapshot());
    });
}

#[test]
fn exactly_the_metrics_of_the_contract_are_emitted() {
    let metrics = Metrics::new();
    metrics.during(emit_everything);
    let mut emitted = BTreeMap::<String, MetricSpec>::new();
    for (name, seen) in metrics.all() {
        let spec = emitted.entry(name).or_default();
        spec.kind = seen.kind.to_owned();
        for (label, value) in seen.labels {
            let values = spec.labels.entry(label.clone()).or_default();
            if label != "target" {
                values.insert(value);
            }
        }
    }
    let contract = contract();
    assert_eq!(emitted.keys().collect::<Vec<_>>(), contract.keys().collect::<Vec<_>>());
    for (name, spec) in &contract {
        let emitted = &emitted[name];
        assert_eq!(emitted.kind, spec.kind, "{name}");
        assert!(emitted.labels.keys().eq(spec.labels.keys()), "{name} has {:?}", emitted.labels.keys());
        for (label, values) in &emitted.labels {
            // The contract lists the values of a histogram's label with the corresponding counter.
            // Guards name themselves.
            if label == "guard" {
                continue;
            }
            let allowed = &spec.labels[label];
            let allowed = if allowed.is_empty() { &contract["stagger_retries_total"].labels[label] } else { allowed };
            assert!(values.is_subset(allowed), "{name} has {label} {values:?}");
        }
    }
}

/// A recorder that keeps the descriptions of metrics: kind, unit and text by name.
#[derive(Default)]
struct Descriptions(Mutex<BTreeMap<String, (&'static str, Option<Unit>, String)>>);

impl Descriptions {
    fn add(&self, kind: &'static str, name: &KeyName, unit: Option<Unit>, text: &SharedString) {
        self.0.lock().unwrap().insert(name.as_str().to_owned(), (kind, unit, text.to_string()));
    }
}

impl Recorder for Descriptions {
    fn describe_counter(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
        self.add("counter", &name, unit, &text);
    }

    fn describe_gauge(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
        self.add("gauge", &name, unit, &text);
    }

    fn describe_histogram(&self, name: KeyName, unit: Option<Unit>, text: SharedString) {
        self.add("histogram", &name, unit, &text);
    }

    fn register_counter(&self, _: &Key, _: &Metadata<'_>) -> metrics::Counter {
        metrics::Counter::noop()
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> metrics::Gauge {
        metrics::Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> metrics::Histogram {
        metrics::Histogram::noop()
    }
}

#[test]
fn every_metric_of_the_contract_is_described_with_its_kind_and_unit() {
    let recorder = Descriptions::default();
    metrics::with_local_recorder(&recorder, observe::describe_metrics);
    let described = recorder.0.into_inner().unwrap();
    let contract = contract();
    assert!(described.keys().eq(contract.keys()), "{described:?}");
    for (name, (kind, unit, text)) in described {
        assert_eq!(kind, contract[&name].kind, "{name}");
        let is_seconds = name.ends_with("_seconds");
        assert_eq!(unit, Some(if is_seconds { Unit::Seconds } else { Unit::Count }), "{name}");
        assert!(text.len() > 10 && !text.contains('|'), "{name}: {text}");
    }
}

/// The translation to Prometheus adds `_total` to counters and the name of a unit that is not in braces.
#[test]
fn the_units_lead_from_the_names_in_opentelemetry_to_those_of_the_contract() {
    for row in CONTRACT.lines().skip(2) {
        let cells: Vec<_> = row.split('|').map(str::trim).collect();
        let (name, kind, unit) = (cells[1].trim_matches('`'), cells[2], cells[5].trim_matches('`'));
        let short = name.strip_prefix("stagger_").unwrap().trim_end_matches("_total").trim_end_matches("_seconds");
        let open_telemetry = format!("stagger.{short}");
        let suffix = match (kind, unit) {
            (_, "s") => "_seconds",
            ("counter", _) => "_total",
            _ => "",
        };
        assert_eq!(open_telemetry.replace('.', "_") + suffix, name);
        assert!(unit == "s" || unit.starts_with('{') && unit.ends_with('}'), "{unit}");
    }
}

/// The longest bucket is the longest hint that a policy follows unless it says otherwise.
#[test]
fn the_buckets_rise_and_hold_the_delays_of_a_usual_policy() {
    const USUAL: Policy = policy!(exponential(ms(100), secs(10)));
    let buckets = observe::RETRY_DELAY_BUCKETS;
    assert!(buckets.is_sorted() && buckets[0] < 0.1);
    assert_eq!(buckets.last().copied(), USUAL.max_hint().map(|hint| hint.as_secs_f64()));
    assert!(USUAL.bounds(9).is_some_and(|(_, longest)| longest.as_secs_f64() < buckets[9]));
}

/// The guide promises it, because each value is a time series.
#[test]
fn no_label_but_the_target_has_more_than_fifteen_values() {
    for (name, spec) in contract() {
        for (label, values) in spec.labels {
            assert!(values.len() <= 15, "{name} has {} values of {label}", values.len());
        }
    }
}

/// Fails if a variant is added to an enum but not to the contract.
#[test]
fn the_contract_lists_every_label_value() {
    let contract = contract();
    for (name, label, names) in [
        ("stagger_stops_total", "reason", StopReason::ALL.iter().map(|reason| reason.name()).collect::<Vec<_>>()),
        ("stagger_retries_total", "source", DelaySource::ALL.iter().map(|source| source.name()).collect()),
        ("stagger_breaker_state", "state", BreakerState::ALL.iter().map(|state| state.name()).collect()),
        ("stagger_control_mode", "mode", ControlMode::ALL.iter().map(|mode| mode.name()).collect()),
    ] {
        let names: BTreeSet<_> = names.into_iter().map(str::to_owned).collect();
        assert_eq!(contract[name].labels[label], names, "{name}");
    }
}

#[test]
fn exactly_the_documented_events_are_emitted() {
    let documented = [include_str!("../../../src/observe/mod.rs"), include_str!("../../../src/observe/tracing.rs")];
    let rows = documented.iter().flat_map(|text| text.lines()).filter(|line| line.contains("| `"));
    let levels = ["`DEBUG`", "`INFO`", "`WARN`"];
    let rows = rows.filter(|row| levels.iter().any(|level| row.contains(level)));
    // The message is the first quoted part of a row that is not a level.
    let message = |row: &str| {
        let mut words = quoted(row).filter(|word| !["DEBUG", "INFO", "WARN"].contains(word));
        words.next().map(str::to_owned)
    };
    let documented: BTreeSet<_> = rows.filter_map(message).collect();
    let logs = Logs::default();
    logs.during(emit_everything);
    // The listener logs at most one event per second for each target, so its messages have separate tests.
    let emitted = logs.messages();
    let limited = ["giving up", "retrying", "succeeded"].map(str::to_owned);
    let emitted: BTreeSet<_> = emitted.into_iter().chain(limited).collect();
    assert_eq!(emitted, documented);
}
