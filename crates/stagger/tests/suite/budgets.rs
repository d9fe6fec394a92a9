//! The built-in budgets under the drivers: however a call ends, its permits are returned.

use core::time::Duration;
use std::sync::Arc;

use stagger::budget::{Concurrent, Tokens, Window};
use stagger::testing::NoSleep;
use stagger::{Guard, Instant, Outcome, Policy, Retrier, StopReason, blocking, policy, retry_with_timer};
use tokio::time::timeout;

use super::support::{RecordingBreaker, RecordingBudget, ms};

const POLICY: Policy = policy!(constant(secs(10)).jitter(Jitter::None).max_attempts(4));
const SECOND: Duration = Duration::from_secs(1);

fn retrier(budget: &Arc<impl Guard + 'static>) -> Retrier {
    Retrier::new(POLICY)
        .classify_exactly(|_: &u8| Outcome::TRANSIENT)
        .shared_guard(Arc::clone(budget) as Arc<dyn Guard>)
}

async fn fails() -> Result<(), u8> {
    Err(1)
}

/// Fails after five seconds.
async fn fails_slowly() -> Result<(), u8> {
    tokio::time::sleep(5 * SECOND).await;
    Err(1)
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_during_a_sleep_releases_its_permits() {
    let (tokens, concurrent, window) = (Arc::new(Tokens::new()), Arc::new(Concurrent::new()), Arc::new(Window::new()));
    let before = window.available();
    assert!(timeout(SECOND, retrier(&tokens).run(fails)).await.is_err());
    assert!(timeout(SECOND, retrier(&concurrent).run(fails)).await.is_err());
    assert!(timeout(SECOND, retrier(&window).run(fails)).await.is_err());
    assert_eq!(tokens.snapshot().tokens, 500);
    assert_eq!((concurrent.snapshot().firsts, concurrent.snapshot().retries), (0, 0));
    assert_eq!(window.available(), before);
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_during_an_attempt_releases_its_permit() {
    let concurrent = Arc::new(Concurrent::new());
    for after in [SECOND, 16 * SECOND] {
        assert!(timeout(after, retrier(&concurrent).run(fails_slowly)).await.is_err());
        assert_eq!((concurrent.snapshot().firsts, concurrent.snapshot().retries), (0, 0), "after {after:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_counts_as_concurrent_until_it_completes() {
    let concurrent = Arc::new(Concurrent::new());
    let running = tokio::spawn({
        let retrier = retrier(&concurrent);
        async move { retrier.run(fails_slowly).await }
    });
    let mut seen = Vec::new();
    for _ in 0..9 {
        tokio::time::sleep(SECOND * 4).await;
        seen.push((concurrent.snapshot().firsts, concurrent.snapshot().retries));
    }
    // During the first attempt, then during sleeps and retries.
    assert_eq!(seen, [&[(1, 0)][..], &[(0, 1)].repeat(8)].concat());
    assert!(running.await.is_ok_and(|end| end.is_err()));
    assert_eq!((concurrent.snapshot().firsts, concurrent.snapshot().retries), (0, 0));
}

#[test]
fn a_panicking_operation_releases_its_permit() {
    let concurrent = Arc::new(Concurrent::new());
    let panics = || -> Result<(), u8> { panic!("on purpose") };
    let retrier = retrier(&concurrent);
    let caught = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| retrier.blocking(panics)));
    assert!(caught.is_err());
    assert_eq!((concurrent.snapshot().firsts, concurrent.snapshot().retries), (0, 0));
}

#[test]
fn an_exhausted_budget_stops_with_the_last_error() {
    let empty = Arc::new(Tokens::builder().initial(0).build().unwrap());
    let error = retrier(&empty).blocking(|| Err::<(), _>(7_u8)).unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts()), (StopReason::BUDGET, 1));
    assert_eq!(empty.reserve(stagger::FailureKind::Transient, &Instant::ZERO), None);
}

/// The guard may reject the first attempt, so the output is an error that can say so.
#[test]
fn a_guard_of_one_call_is_set_without_a_retrier() {
    let (budget, mut calls) = (RecordingBudget::new(1), 0);
    let failing = || {
        calls += 1;
        Err::<(), _>("no")
    };
    let error = blocking::retry(&POLICY, failing).timer(NoSleep).guard(&budget).run().unwrap_err();
    assert_eq!((error.stop_reason(), error.error(), calls), (StopReason::BUDGET, Some(&"no"), 2));

    let budget = RecordingBudget::new(1);
    let call = retry_with_timer(&POLICY, NoSleep, async || Err::<(), _>("no")).guard(&budget);
    let error = futures_lite::future::block_on(call).unwrap_err();
    assert_eq!((error.stop_reason(), budget.snapshot().recorded.len()), (StopReason::BUDGET, 2));

    let open = RecordingBreaker::open(ms(1));
    let call = retry_with_timer(&POLICY, NoSleep, async || Err::<(), _>("no")).guard(&open);
    assert_eq!(futures_lite::future::block_on(call).unwrap_err().stop_reason(), StopReason::BREAKER);
    let error = blocking::retry(&POLICY, || Err::<(), _>("no")).timer(NoSleep).guard(&open).run().unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts()), (StopReason::BREAKER, 0));
}
