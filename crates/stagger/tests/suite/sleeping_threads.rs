//! [`Retrier::max_sleeping_threads`]: how many threads wait in blocking calls at a time.

use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::sync::Barrier;

use stagger::budget::Tokens;
use stagger::testing::{NoSleep, Recorder, VirtualClock};
use stagger::time::SleepFn;
use stagger::{Budget as _, Policy, Retrier, StopReason, observe::Action, policy};

use super::support::PanickingTimer;

const POLICY: Policy = policy!(constant(secs(1)).max_attempts(2));

/// Makes a call that fails, whose wait makes another such call, and so on, each as its own thread would. Returns how the
/// innermost ended.
fn calls_during_calls(retrier: &Retrier, depth: usize) -> (usize, StopReason) {
    let innermost = core::cell::Cell::new(None);
    let timer = SleepFn::new(|_: Duration| {
        if depth < 20 && innermost.get().is_none() {
            innermost.set(Some(calls_during_calls(retrier, depth + 1)));
        }
    });
    let error = retrier.blocking_call(|_| Err::<(), _>("down")).timer(timer).run().unwrap_err();
    assert_eq!(error.error(), Some(&"down"), "the operation's own error");
    innermost.get().unwrap_or((depth, error.stop_reason()))
}

#[test]
fn no_more_threads_than_allowed_are_asleep() {
    for most in [0, 1, 3] {
        let retrier = Retrier::new(POLICY).max_sleeping_threads(most);
        assert_eq!(calls_during_calls(&retrier.clone(), 0), (most, StopReason::Threads), "{most} allowed");
        assert_eq!(retrier.sleeping_threads(), 0, "all are awake again");
    }
    assert_eq!(calls_during_calls(&Retrier::new(POLICY), 0).0, 20, "without a limit");
}

#[test]
fn of_eight_threads_three_wait_and_five_stop_at_once() {
    const ALLOWED: usize = 3;
    let retrier = Retrier::new(POLICY).max_sleeping_threads(ALLOWED);
    let (asleep, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    // The three sleep until the five have stopped.
    let refused = Barrier::new(8);
    let stops: Vec<_> = std::thread::scope(|scope| {
        let call = || {
            let nap = SleepFn::new(|_: Duration| {
                most.fetch_max(asleep.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                refused.wait();
                asleep.fetch_sub(1, Ordering::SeqCst);
            });
            let error = retrier.blocking_call(|_| Err::<(), _>("down")).timer(nap).run().unwrap_err();
            if error.stop_reason() == StopReason::Threads {
                assert_eq!(error.attempts(), 1);
                refused.wait();
            }
            error.stop_reason()
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(call)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(stops.iter().filter(|stop| **stop == StopReason::Threads).count(), 5, "{stops:?}");
    assert_eq!(most.into_inner(), ALLOWED);
    assert_eq!(retrier.sleeping_threads(), 0);
}

#[test]
fn a_call_that_may_not_wait_gives_back_what_the_budget_charged() {
    let budget = std::sync::Arc::new(Tokens::new());
    let recorder = Recorder::new();
    let retrier = Retrier::new(POLICY)
        .shared_budget(std::sync::Arc::clone(&budget) as _)
        .on_event(recorder.listener())
        .max_sleeping_threads(0);
    let before = budget.available();
    assert!(retrier.blocking(|| Err::<(), _>("down")).is_err());
    assert_eq!(budget.available(), before);
    let actions: Vec<_> = recorder.events().iter().map(|event| event.action).collect();
    assert_eq!(actions, [Action::Stop(StopReason::Threads)], "no retry is announced");
}

#[test]
fn a_retry_without_a_delay_needs_no_room() {
    const AT_ONCE: Policy = policy!(zero().max_attempts(3));
    let error = Retrier::new(AT_ONCE).max_sleeping_threads(0).blocking(|| Err::<(), _>("down")).unwrap_err();
    assert_eq!((error.attempts(), error.stop_reason()), (3, StopReason::Attempts));
}

#[test]
fn without_room_for_the_spread_the_first_attempt_is_made_at_once() {
    const SPREAD: Policy = policy!(constant(secs(1)).spread(secs(60)).max_attempts(2));
    let clock = VirtualClock::new();
    let retrier = Retrier::new(SPREAD).max_sleeping_threads(0);
    assert!(retrier.blocking_call(|_| Ok::<_, &str>(())).timer(clock.clone()).run().is_ok());
    assert_eq!(clock.elapsed(), Duration::ZERO);
}

#[test]
fn a_thread_whose_timer_panics_is_not_asleep_any_more() {
    let retrier = Retrier::new(POLICY).max_sleeping_threads(1);
    let call = || retrier.blocking_call(|_| Err::<(), _>("down")).timer(PanickingTimer).run();
    assert!(std::panic::catch_unwind(core::panic::AssertUnwindSafe(call)).is_err());
    assert_eq!(retrier.sleeping_threads(), 0);
    let error = retrier.blocking_call(|_| Err::<(), _>("down")).timer(NoSleep).run().unwrap_err();
    assert_eq!(error.stop_reason(), StopReason::Attempts);
}
