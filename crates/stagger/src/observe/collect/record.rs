//! What ends with a report, and is counted when it is there.

use super::emit::{gauge, more, total};
use crate::batch::BatchResult;
use crate::hedge::Hedged;
use crate::queue::QueueSnapshot;

/// Counts the copies of a hedged call, by its report. The [contract](crate::observe#metrics) has the names.
///
/// ```
/// # use stagger::hedge::Hedge;
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let report = stagger::hedge::hedge(&Hedge::after(std::time::Duration::from_millis(100)), async || Ok::<_, ()>(7)).with_report().await;
/// stagger::observe::record_hedged("api", &report);
/// # assert_eq!(report.result, Ok(7));
/// # });
/// ```
pub fn record_hedged<V, E>(target: &str, report: &Hedged<V, E>) {
    let launched = u64::from(report.launched.saturating_sub(1));
    let won = u64::from(report.winner.is_some_and(|winner| winner > 0));
    let refused = u64::from(report.refused);
    for (result, number) in [("launched", launched), ("won", won), ("refused", refused)] {
        more("stagger_hedges_total", target, Some(("result", result)), number);
    }
    #[cfg(feature = "tracing")]
    if launched + refused > 0 {
        let winner = report.winner;
        tracing::debug!(target: "stagger", target_name = target, launched, refused, winner, "hedged");
    }
}

/// Counts the items of a batch, by what came of them. The [contract](crate::observe#metrics) has the names.
///
/// ```
/// # use stagger::{Policy, batch::Batch};
/// let batch = Batch::<_, (), _>::new(&Policy::DEFAULT, [("a", 1), ("b", 2)]);
/// stagger::observe::record_batch("orders", &batch.finish());
/// ```
pub fn record_batch<T, E>(target: &str, finished: &BatchResult<T, E>) {
    let (worked, failed, dead) =
        (finished.succeeded as u64, finished.failed.len() as u64, finished.dead_lettered as u64);
    for (result, number) in [("worked", worked), ("failed", failed), ("dead", dead)] {
        more("stagger_batch_items_total", target, Some(("result", result)), number);
    }
    #[cfg(feature = "tracing")]
    if failed + dead > 0 {
        tracing::warn!(target: "stagger", target_name = target, worked, failed, dead, "items failed");
    }
}

/// How a retry queue stands, as its [`snapshot`](crate::queue::RetryQueue::snapshot) says. A queue belongs to one task, so
/// that is the one to call this, every second or so. The [contract](crate::observe#metrics) has the names.
///
/// ```
/// # use stagger::{Policy, queue::RetryQueue};
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let queue = RetryQueue::<u64, _>::new(Policy::DEFAULT);
/// stagger::observe::record_queue("orders", &queue.snapshot());
/// # });
/// ```
pub fn record_queue(target: &str, queue: &QueueSnapshot) {
    gauge("stagger_queue_pending", target, None, queue.pending as f64);
    gauge("stagger_queue_overdue_seconds", target, None, queue.overdue.as_secs_f64());
    total("stagger_queue_refused_total", target, None, queue.refused);
}
