//! Metrics of operations that end with a report, and the functions that write metrics by name. They do nothing without
//! the feature `metrics`.

#[cfg(feature = "hedge")]
use crate::hedge::Hedged;
#[cfg(feature = "queue")]
use crate::queue::QueueSnapshot;
#[cfg(feature = "queue")]
use crate::queue::batch::BatchResult;

/// Counts the copies of a hedged call, from its report. The names are in the [contract](crate::observe#metrics).
///
/// ```
/// # use stagger::hedge::Hedge;
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let hedge = Hedge::after(std::time::Duration::from_millis(100));
/// let report = stagger::hedge::hedge(&hedge, async || Ok::<_, ()>(7)).with_report().await;
/// stagger::observe::record_hedged("api", &report);
/// # assert_eq!(report.result, Ok(7));
/// # });
/// ```
#[cfg(feature = "hedge")]
pub fn record_hedged<V, E>(target: &str, report: &Hedged<V, E>) {
    let launched = u64::from(report.launched.saturating_sub(1));
    let won = u64::from(report.winner.is_some_and(|winner| winner > 0));
    let rejected = u64::from(report.rejected);
    for (result, number) in [("launched", launched), ("won", won), ("rejected", rejected)] {
        increment("stagger_hedges_total", target, Some(("result", result)), number);
    }
    #[cfg(feature = "tracing")]
    if launched + rejected > 0 {
        let winner = report.winner;
        tracing::debug!(target: "stagger", target_name = target, launched, rejected, winner, "hedged");
    }
}

/// Counts the items of a batch by their results. The names are in the [contract](crate::observe#metrics).
///
/// ```
/// # use stagger::{Policy, batch::Batch};
/// let batch = Batch::<_, (), _>::new(&Policy::DEFAULT, [("a", 1), ("b", 2)]);
/// stagger::observe::record_batch("orders", &batch.finish());
/// ```
#[cfg(feature = "queue")]
pub fn record_batch<T, E>(target: &str, result: &BatchResult<T, E>) {
    let (succeeded, failed, dead_lettered) =
        (result.succeeded() as u64, result.failed().count() as u64, result.dead_lettered() as u64);
    for (result, number) in [("succeeded", succeeded), ("failed", failed), ("dead_lettered", dead_lettered)] {
        increment("stagger_batch_items_total", target, Some(("result", result)), number);
    }
    #[cfg(feature = "tracing")]
    if failed + dead_lettered > 0 {
        tracing::warn!(target: "stagger", target_name = target, succeeded, failed, dead_lettered, "items failed");
    }
}

/// Records the state of a retry queue from its [`snapshot`](crate::queue::RetryQueue::snapshot). Call it about once a
/// second, from the task that owns the queue. The names are in the [contract](crate::observe#metrics).
///
/// ```
/// # use stagger::{Policy, queue::RetryQueue};
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let queue = RetryQueue::<u64, _>::new(Policy::DEFAULT);
/// stagger::observe::record_queue("orders", &queue.snapshot());
/// # });
/// ```
#[cfg(feature = "queue")]
pub fn record_queue(target: &str, queue: &QueueSnapshot) {
    gauge("stagger_queue_pending", target, None, queue.pending as f64);
    gauge("stagger_queue_overdue_seconds", target, None, queue.overdue.as_secs_f64());
    absolute("stagger_queue_rejected_total", target, None, queue.rejected);
}

/// A label of a metric besides `target`.
type Label = (&'static str, &'static str);

#[cfg(feature = "metrics")]
fn labels(target: &str, label: Option<Label>) -> Vec<metrics::Label> {
    let target = metrics::Label::new("target", target.to_owned());
    core::iter::once(target).chain(label.map(|(name, value)| metrics::Label::from_static_parts(name, value))).collect()
}

/// Sets a gauge.
#[cfg(feature = "metrics")]
pub(super) fn gauge(name: &'static str, target: &str, label: Option<Label>, value: f64) {
    metrics::gauge!(name, labels(target, label)).set(value);
}

/// Sets a counter to a total that is counted elsewhere.
#[cfg(feature = "metrics")]
pub(super) fn absolute(name: &'static str, target: &str, label: Option<Label>, value: u64) {
    metrics::counter!(name, labels(target, label)).absolute(value);
}

/// Increments a counter.
#[cfg(all(feature = "metrics", any(feature = "hedge", feature = "queue")))]
pub(super) fn increment(name: &'static str, target: &str, label: Option<Label>, value: u64) {
    metrics::counter!(name, labels(target, label)).increment(value);
}

#[cfg(not(feature = "metrics"))]
pub(super) const fn gauge(_: &'static str, _: &str, _: Option<Label>, _: f64) {}

#[cfg(not(feature = "metrics"))]
pub(super) const fn absolute(_: &'static str, _: &str, _: Option<Label>, _: u64) {}

#[cfg(all(not(feature = "metrics"), any(feature = "hedge", feature = "queue")))]
pub(super) const fn increment(_: &'static str, _: &str, _: Option<Label>, _: u64) {}

/// Sets a gauge per state: 1 for the current one, 0 for the others.
pub(super) fn state_gauges(
    name: &'static str,
    target: &str,
    label: &'static str,
    all: &[&'static str],
    is: &'static str,
) {
    for &state in all {
        gauge(name, target, Some((label, state)), f64::from(u8::from(state == is)));
    }
}
