//! The budgets of the core under the drivers: however a call ends, what it had is where it was.

use core::time::Duration;
use std::sync::Arc;

use stagger::budget::{Concurrent, Tokens, Window};
use stagger::{Budget, Instant, Policy, Retrier, policy};
use tokio::time::timeout;

const POLICY: Policy = policy!(constant(secs(10)).jitter(Jitter::None).max_attempts(4));
const SECOND: Duration = Duration::from_secs(1);

fn retrier(budget: &Arc<impl Budget + 'static>) -> Retrier {
    Retrier::new(POLICY).when(|_: &u8| true).shared_budget(Arc::clone(budget) as Arc<dyn Budget>)
}

async fn fails() -> Result<(), u8> {
    Err(1)
}

/// In its attempt for five seconds, then fails.
async fn fails_slowly() -> Result<(), u8> {
    tokio::time::sleep(5 * SECOND).await;
    Err(1)
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_in_its_sleep_gives_everything_back() {
    let (tokens, places, window) = (Arc::new(Tokens::new()), Arc::new(Concurrent::new()), Arc::new(Window::new()));
    let before = window.available();
    assert!(timeout(SECOND, retrier(&tokens).run(fails)).await.is_err());
    assert!(timeout(SECOND, retrier(&places).run(fails)).await.is_err());
    assert!(timeout(SECOND, retrier(&window).run(fails)).await.is_err());
    assert_eq!(tokens.snapshot().tokens, 500);
    assert_eq!((places.snapshot().firsts, places.snapshot().retries), (0, 0));
    assert_eq!(window.available(), before);
}

#[tokio::test(start_paused = true)]
async fn a_call_dropped_in_an_attempt_frees_its_place() {
    let places = Arc::new(Concurrent::new());
    for after in [SECOND, 16 * SECOND] {
        assert!(timeout(after, retrier(&places).run(fails_slowly)).await.is_err());
        assert_eq!((places.snapshot().firsts, places.snapshot().retries), (0, 0), "after {after:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_call_counts_as_long_as_it_lasts_and_no_longer() {
    let places = Arc::new(Concurrent::new());
    let running = tokio::spawn({
        let retrier = retrier(&places);
        async move { retrier.run(fails_slowly).await }
    });
    let mut seen = Vec::new();
    for _ in 0..9 {
        tokio::time::sleep(SECOND * 4).await;
        seen.push((places.snapshot().firsts, places.snapshot().retries));
    }
    // In the attempt, then in the sleep or in a retry.
    assert_eq!(seen, [&[(1, 0)][..], &[(0, 1)].repeat(8)].concat());
    assert!(running.await.is_ok_and(|end| end.is_err()));
    assert_eq!((places.snapshot().firsts, places.snapshot().retries), (0, 0));
}

#[test]
fn a_panic_in_the_operation_frees_its_place() {
    let places = Arc::new(Concurrent::new());
    let panics = || -> Result<(), u8> { panic!("on purpose") };
    let retrier = retrier(&places);
    let caught = std::panic::catch_unwind(core::panic::AssertUnwindSafe(|| retrier.blocking(panics)));
    assert!(caught.is_err());
    assert_eq!((places.snapshot().firsts, places.snapshot().retries), (0, 0));
}

#[test]
fn a_spent_budget_is_a_stop_of_its_own_and_leaves_the_error() {
    let empty = Arc::new(Tokens::builder().initial(0).build().unwrap());
    let error = retrier(&empty).blocking(|| Err::<(), _>(7_u8)).unwrap_err();
    assert_eq!((error.stop_reason(), error.attempts()), (stagger::StopReason::Budget, 1));
    assert_eq!(empty.try_acquire(stagger::FailureKind::Transient, &Instant::ZERO), None);
}
