//! From outside: dropped after so many polls, or at a moment.

use core::pin::Pin;
use core::time::Duration;
use std::sync::Arc;

use stagger::time::Tokio;
use tokio::time::{sleep, timeout};

use super::{Driver, Trouble, with_every_guard};
use crate::suite::support::{PendingTimer, ms, poll_times};

#[test]
fn a_call_that_is_dropped_after_any_number_of_polls_leaks_nothing() {
    with_every_guard(&Driver::ASYNC, |driver, world| {
        for polls in 0.. {
            let world = world(Trouble::Nothing);
            let mut call = Box::pin(driver.drive(Arc::clone(&world), PendingTimer::default()));
            let has_ended = polls > 0 && poll_times(call.as_mut(), polls).is_ready();
            drop(call);
            world.expect_settled(("dropped after so many polls", polls));
            if has_ended {
                assert!(u64::from(polls) > world.attempts(), "{driver:?} was never pending");
                break;
            }
        }
    });
}

/// Runs every driver with every guard to its end, and ends it before by `interrupt`, after every length of time.
async fn at_every_moment<I>(how: &str, interrupt: impl Fn(Calls, Duration) -> I)
where
    I: Future<Output = bool>,
{
    let mut runs = Vec::new();
    with_every_guard(&Driver::ASYNC, |driver, world| {
        runs.push((driver, (0..100).map(|_| world(Trouble::Nothing)).collect::<Vec<_>>()));
    });
    for (driver, worlds) in runs {
        let mut has_ended = false;
        for (after, world) in (0..).map(ms).zip(worlds) {
            let calls = Box::pin(driver.drive(Arc::clone(&world), Tokio));
            has_ended = interrupt(calls, after).await;
            world.expect_settled((how, after));
            if has_ended {
                break;
            }
        }
        assert!(has_ended, "{driver:?} takes longer than that");
    }
}

type Calls = Pin<Box<dyn Future<Output = ()> + Send>>;

#[tokio::test(start_paused = true)]
async fn a_call_that_loses_a_race_at_any_moment_leaks_nothing() {
    at_every_moment("lost a race", async |calls, after| {
        tokio::select! {
            () = calls => true,
            () = sleep(after) => false,
        }
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_call_that_runs_out_of_time_at_any_moment_leaks_nothing() {
    at_every_moment("timed out", async |calls, after| timeout(after, calls).await.is_ok()).await;
}

#[tokio::test(start_paused = true)]
async fn a_task_that_is_aborted_at_any_moment_leaks_nothing() {
    at_every_moment("aborted", async |calls, after| {
        let task = tokio::spawn(calls);
        sleep(after).await;
        task.abort();
        task.await.is_ok()
    })
    .await;
}
