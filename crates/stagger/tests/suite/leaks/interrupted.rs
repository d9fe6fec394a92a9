//! Calls interrupted from outside: dropped after a number of polls or at a point in time.

use core::pin::Pin;
use core::time::Duration;
use std::sync::Arc;

use stagger::time::Tokio;
use tokio::time::{sleep, timeout};

use super::{Driver, PanicPoint, for_each_guard};
use crate::suite::support::{PendingTimer, ms, poll_times};

#[test]
fn a_call_dropped_at_any_poll_leaks_no_permits() {
    for_each_guard(&Driver::ASYNC, |driver, new_fixture| {
        for polls in 0.. {
            let fixture = new_fixture(PanicPoint::None);
            let mut call = Box::pin(driver.drive(Arc::clone(&fixture), PendingTimer::default()));
            let has_completed = polls > 0 && poll_times(call.as_mut(), polls).is_ready();
            drop(call);
            fixture.expect_settled(("polls before the drop", polls));
            if has_completed {
                assert!(u64::from(polls) > fixture.attempts(), "{driver:?} was never pending");
                break;
            }
        }
    });
}

/// Interrupts every driver with every guard after each millisecond, until a run completes.
async fn interrupt_at_every_millisecond<I>(how: &str, interrupt: impl Fn(Calls, Duration) -> I)
where
    I: Future<Output = bool>,
{
    let mut runs = Vec::new();
    for_each_guard(&Driver::ASYNC, |driver, new_fixture| {
        runs.push((driver, (0..100).map(|_| new_fixture(PanicPoint::None)).collect::<Vec<_>>()));
    });
    for (driver, fixtures) in runs {
        let mut has_completed = false;
        for (after, fixture) in (0..).map(ms).zip(fixtures) {
            let calls = Box::pin(driver.drive(Arc::clone(&fixture), Tokio));
            has_completed = interrupt(calls, after).await;
            fixture.expect_settled((how, after));
            if has_completed {
                break;
            }
        }
        assert!(has_completed, "{driver:?} did not complete in time");
    }
}

type Calls = Pin<Box<dyn Future<Output = ()> + Send>>;

#[tokio::test(start_paused = true)]
async fn a_call_that_loses_a_race_leaks_no_permits() {
    interrupt_at_every_millisecond("lost a race", async |calls, after| {
        tokio::select! {
            () = calls => true,
            () = sleep(after) => false,
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_times_out_leaks_no_permits() {
    interrupt_at_every_millisecond("timed out", async |calls, after| timeout(after, calls).await.is_ok()).await;
}

#[tokio::test(start_paused = true)]
async fn an_aborted_task_leaks_no_permits() {
    interrupt_at_every_millisecond("aborted", async |calls, after| {
        let task = tokio::spawn(calls);
        sleep(after).await;
        task.abort();
        task.await.is_ok()
    })
    .await;
}
