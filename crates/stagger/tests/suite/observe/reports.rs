//! Metrics and events recorded from reports.

use core::num::NonZeroU32;
use core::time::Duration;

use futures_lite::future::block_on;
use stagger::batch::Batch;
use stagger::hedge::Hedge;
use stagger::queue::{DelayQueue, RetryQueue};
use stagger::testing::VirtualClock;
use stagger::{Outcome, Policy, Retrier, StopReason, hedge, observe, policy};
use tokio::time::sleep;

use super::support::{Logs, Metrics};
use crate::suite::support::{RecordingBreaker, RecordingBudget, ms};

const POLICY: Policy = policy!(zero().max_attempts(3));

/// Returns a lookup of the recorded metrics by name and label.
fn recorded(metrics: &Metrics) -> impl Fn(&str, &str) -> f64 + use<> {
    let values = metrics.values("it");
    move |name, label| values[&(format!("stagger_{name}"), label.to_owned())]
}

#[test]
fn successes_with_and_without_a_retry_are_counted_separately() {
    let metrics = Metrics::new();
    let retrier = Retrier::new(POLICY).named("it").on_event(observe::metrics());
    metrics.during(|| {
        for failures in [0, 0, 1, 2, 9] {
            let mut left = failures;
            let _ = retrier.blocking(|| {
                left -= 1;
                if left < 0 { Ok(()) } else { Err("no") }
            });
        }
    });
    let value = recorded(&metrics);
    let calls = |kind| value("calls_total", kind);
    assert_eq!((calls("successful_without_retry"), calls("successful_with_retry")), (2.0, 2.0));
    assert_eq!((calls("failed_with_retry"), value("stops_total", "attempts")), (1.0, 1.0));
    assert_eq!((value("attempts_total", ""), value("retries_total", "schedule")), (10.0, 5.0));
}

#[test]
fn a_call_rejected_by_the_breaker_counts_no_attempt() {
    let metrics = Metrics::new();
    let retrier =
        Retrier::new(POLICY).named("it").breaker(RecordingBreaker::open(Duration::MAX)).on_event(observe::metrics());
    let error = metrics.during(|| retrier.blocking(|| Err::<(), _>("no")).unwrap_err());
    assert_eq!((error.stop_reason(), error.attempts()), (StopReason::BREAKER, 0));
    let value = recorded(&metrics);
    assert_eq!((value("attempts_total", ""), value("stops_total", "breaker")), (0.0, 1.0));
}

#[tokio::test(start_paused = true)]
async fn hedges_are_counted_as_launched_won_or_rejected() {
    let (metrics, logs, policy) = (Metrics::new(), Logs::default(), Hedge::after(ms(100)).with_max_copies(2));
    let call = async |budget: RecordingBudget, slow: u64| {
        let mut attempts = 0;
        let operation = || {
            attempts += 1;
            let took = if attempts <= slow { ms(500 * attempts) } else { Duration::ZERO };
            async move {
                sleep(took).await;
                Ok::<_, &str>(())
            }
        };
        let report = hedge::hedge(&policy, operation).guard(&budget).with_report().await;
        logs.during(|| metrics.during(|| observe::record_hedged("it", &report)));
    };
    call(RecordingBudget::new(9), 0).await;
    assert!(logs.take().is_empty(), "a call without a hedge emits no event");
    call(RecordingBudget::new(9), 1).await;
    call(RecordingBudget::new(1), 2).await;
    let value = recorded(&metrics);
    let hedges = ["launched", "won", "rejected"].map(|result| value("hedges_total", result));
    assert_eq!(hedges, [2.0, 1.0, 1.0]);
    let fields =
        |rejected, winner| format!(r#"DEBUG|hedged|target_name="it" launched=1 rejected={rejected} winner={winner}"#);
    assert_eq!(logs.take(), [fields(0, 1), fields(1, 0)]);
}

#[test]
fn batch_items_are_counted_by_result() {
    let (metrics, logs, clock) = (Metrics::new(), Logs::default(), VirtualClock::new());
    let finished = |fails: &[(&str, Outcome)]| {
        let mut batch = Batch::with_timer(clock.clone(), POLICY, [("a", 1), ("b", 2), ("c", 3), ("d", 4)]);
        batch = batch.dead_letter(NonZeroU32::MIN, |_| {});
        while block_on(batch.next_attempt()) {
            fails.iter().for_each(|(id, outcome)| batch.failed(id, *outcome, "no").unwrap());
        }
        let finished = batch.finish();
        logs.during(|| metrics.during(|| observe::record_batch("it", &finished)));
    };
    finished(&[("a", Outcome::Permanent), ("b", Outcome::Cancelled)]);
    let value = recorded(&metrics);
    let items = |result| value("batch_items_total", result) as usize;
    assert_eq!((items("succeeded"), items("failed"), items("dead_lettered")), (2, 1, 1));
    assert_eq!(logs.take(), [r#"WARN|items failed|target_name="it" succeeded=2 failed=1 dead_lettered=1"#]);
    finished(&[]);
    assert_eq!((recorded(&metrics)("batch_items_total", "succeeded"), logs.take().len()), (4.0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_queue_reports_pending_overdue_and_rejected_items() {
    let (metrics, mut queue) = (Metrics::new(), RetryQueue::new(POLICY).capacity(2));
    queue.push("soon", ms(1_000)).unwrap();
    queue.push("late", ms(60_000)).unwrap();
    assert!(queue.push("rejected", ms(1)).is_err());
    let seen = |queue: &RetryQueue<_, _>| {
        metrics.during(|| observe::record_queue("it", &queue.snapshot()));
        let value = recorded(&metrics);
        ["pending", "overdue_seconds", "rejected_total"].map(|name| value(&format!("queue_{name}"), ""))
    };
    assert_eq!(seen(&queue), [2.0, 0.0, 1.0]);
    tokio::time::advance(ms(6_000)).await;
    let [pending, overdue, _] = seen(&queue);
    assert_eq!((pending, overdue.round()), (2.0, 5.0));
    assert!(queue.next().await.unwrap().is_ok());
    assert_eq!(seen(&queue), [1.0, 0.0, 1.0]);
    let mut plain = DelayQueue::new().capacity(0);
    assert!(plain.push("rejected", ms(1)).is_err());
    assert_eq!(plain.snapshot().rejected, 1);
}
