//! The contract: every metric and every event that the documentation names is made, and no other.

use core::time::Duration;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use stagger::batch::Batch;
use stagger::breaker::{BreakerState, CircuitBreaker};
use stagger::budget::{ControlMode, Tokens, Unlimited};
use stagger::control::RetryControls;
use stagger::observe::{self, Gauges};
use stagger::queue::RetryQueue;
use stagger::testing::NoSleep;
use stagger::{
    Budget, DelaySource, Instant, Outcome, Policy, Retrier, Seed, StopReason, admission::Admission, guard::Enforcement,
    hedge, hedge::Hedge, policy,
};

use super::support::{Logs, Metrics};
use crate::suite::support::RecordingBudget;

const POLICY: Policy = policy!(zero().max_attempts(3));
const CONTRACT: &str = include_str!("../../../src/observe/contract.md");

/// What a metric is: its kind, and the values that each label may have; none where it is the program's choice.
#[derive(Debug, Default, PartialEq, Eq)]
struct Promise {
    kind: String,
    labels: BTreeMap<String, BTreeSet<String>>,
}

/// The words of a text that stand between back quotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

fn contract() -> BTreeMap<String, Promise> {
    let rows = CONTRACT.lines().skip(2).map(|row| row.split('|').map(str::trim).collect::<Vec<_>>());
    let mut contract = BTreeMap::new();
    for row in rows {
        let name = quoted(row[1]).next().expect("a name").to_owned();
        // `target`, `label`: `value`, `value`
        let (plain, values) = row[3].split_once(':').unwrap_or((row[3], ""));
        let mut labels: BTreeMap<_, _> = quoted(plain).map(|label| (label.to_owned(), BTreeSet::new())).collect();
        let last = quoted(plain).last().expect("a label").to_owned();
        labels.insert(last, quoted(values).map(str::to_owned).collect());
        let promise = Promise { kind: row[2].to_owned(), labels };
        assert!(contract.insert(name, promise).is_none(), "{row:?} is there twice");
    }
    contract
}

/// Everything that makes metrics and events, once.
fn everything() {
    let controls = RetryControls::new();
    let breaker = Arc::new(CircuitBreaker::builder(Seed::new(1)).consecutive(100).build().unwrap());
    let admission = Arc::new(Admission::per_second(10).build().unwrap());
    let budget: Arc<dyn Budget> = Arc::new(Tokens::new());
    let api = Retrier::new(POLICY).named("api").shared_budget(Arc::clone(&budget)).controls(&controls);
    let api = api.on_event(observe::metrics()).on_event(observe::tracing());
    let gauges = Gauges::new().budget("api", budget).breaker("api", Arc::clone(&breaker)).controls(&controls);
    let gauges = gauges.admission("door", admission);

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
            let report =
                hedge::hedge(&Hedge::after(Duration::from_millis(1)), slow).budget(&budget).with_report().await;
            observe::record_hedged("api", &report);
        }
        let mut batch = Batch::new(&POLICY, [("a", 1), ("b", 2)]);
        assert!(batch.next_attempt().await);
        batch.failed("a", Outcome::Permanent, "no").unwrap();
        observe::record_batch("orders", &batch.finish());
        let mut queue = RetryQueue::new(POLICY).capacity(1);
        let _ = (queue.push(1, Duration::ZERO), queue.push(2, Duration::ZERO));
        observe::record_queue("orders", &queue.snapshot());
    });
    drop(controls.budget("api", Unlimited));
}

#[test]
fn every_metric_of_the_contract_is_made_and_no_other() {
    let metrics = Metrics::new();
    metrics.during(everything);
    let mut made = BTreeMap::<String, Promise>::new();
    for (name, seen) in metrics.all() {
        let promise = made.entry(name).or_default();
        promise.kind = seen.kind.to_owned();
        for (label, value) in seen.labels {
            let values = promise.labels.entry(label.clone()).or_default();
            if label != "target" {
                values.insert(value);
            }
        }
    }
    let promised = contract();
    assert_eq!(made.keys().collect::<Vec<_>>(), promised.keys().collect::<Vec<_>>());
    for (name, promise) in &promised {
        let made = &made[name];
        assert_eq!(made.kind, promise.kind, "{name}");
        assert!(made.labels.keys().eq(promise.labels.keys()), "{name} has {:?}", made.labels.keys());
        for (label, values) in &made.labels {
            // What a histogram's label may be is told with the counter beside it.
            let told = &promise.labels[label];
            let told = if told.is_empty() { &promised["stagger_retries_total"].labels[label] } else { told };
            assert!(values.is_subset(told), "{name} has {label} {values:?}");
        }
    }
}

/// A value that is added to an enum is added to the contract, too.
#[test]
fn the_contract_names_every_value_of_a_label() {
    let contract = contract();
    let stops = [
        StopReason::Permanent,
        StopReason::UnsafeToRetry,
        StopReason::Attempts,
        StopReason::Elapsed,
        StopReason::Hint,
        StopReason::Budget,
        StopReason::Breaker,
        StopReason::Nested,
        StopReason::Cancelled,
        StopReason::Exhausted,
    ];
    let sources = [DelaySource::Schedule, DelaySource::Hint, DelaySource::Transparent, DelaySource::Spread];
    let observable = Enforcement::ALL.iter().filter(|&&enforcement| enforcement != Enforcement::Off);
    for (name, label, names) in [
        ("stagger_stops_total", "reason", stops.map(StopReason::name).to_vec()),
        ("stagger_retries_total", "source", sources.map(DelaySource::name).to_vec()),
        ("stagger_breaker_state", "state", BreakerState::ALL.iter().map(|state| state.name()).collect()),
        ("stagger_breaker_rejections_total", "enforcement", observable.map(|it| it.name()).collect()),
        ("stagger_control_mode", "mode", ControlMode::ALL.iter().map(|mode| mode.name()).collect()),
    ] {
        let names: BTreeSet<_> = names.into_iter().map(str::to_owned).collect();
        assert_eq!(contract[name].labels[label], names, "{name}");
    }
}

#[test]
fn every_event_that_is_documented_is_made_and_no_other() {
    let documented = [include_str!("../../../src/observe/mod.rs"), include_str!("../../../src/observe/tracing.rs")];
    let rows = documented.iter().flat_map(|text| text.lines()).filter(|line| line.contains("| `"));
    let levels = ["`DEBUG`", "`INFO`", "`WARN`"];
    let rows = rows.filter(|row| levels.iter().any(|level| row.contains(level)));
    // The message is the one quoted thing with a lower-case beginning before the fields.
    let message = |row: &str| {
        let mut words = quoted(row).filter(|word| !["DEBUG", "INFO", "WARN"].contains(word));
        words.next().map(str::to_owned)
    };
    let documented: BTreeSet<_> = rows.filter_map(message).collect();
    let logs = Logs::default();
    logs.during(everything);
    // One line a second is made for each target; the others of the listener have tests of their own.
    let made = logs.messages();
    let limited = ["giving up", "retrying", "succeeded"].map(str::to_owned);
    let made: BTreeSet<_> = made.into_iter().chain(limited).collect();
    assert_eq!(made, documented);
}
