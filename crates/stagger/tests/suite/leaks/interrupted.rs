//! Calls interrupted from outside, from inside by a panic, and at each stage of an attempt.

use core::future::poll_fn;
use core::panic::AssertUnwindSafe;
use core::pin::{Pin, pin};
use core::time::Duration;
use std::panic::catch_unwind;
use std::sync::Arc;

use stagger::machine::ReconnectStep;
use stagger::reconnect::ReconnectDriver;
use stagger::testing::{NoSleep, VirtualClock};
use stagger::time::Tokio;
use stagger::{Outcome, PollRetry, Retrier};
use tokio::time::{sleep, timeout};

use super::fixture::POLICY;
use super::{Driver, PanicPoint, for_each_guard};
use crate::suite::support::{PendingTimer, RecordingBreaker, RecordingBudget, guarded, ms, poll_times};

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

// Calls interrupted from inside: a function of the caller panics.

/// Panics at the first, the second and each further point of `panic_point`, and drops the calls.
fn panic_at_each_point(drivers: &[Driver], panic_point: fn(u64) -> PanicPoint) {
    for_each_guard(drivers, |driver, new_fixture| {
        for nth in 1.. {
            let fixture = new_fixture(panic_point(nth));
            let mut calls = Box::pin(driver.drive(Arc::clone(&fixture), PendingTimer::default()));
            let result = catch_unwind(AssertUnwindSafe(|| poll_times(calls.as_mut(), 1_000)));
            drop(calls);
            fixture.expect_settled("panicked");
            if let Ok(result) = result {
                assert!(result.is_ready(), "{driver:?} never completes");
                assert!(nth > 1, "{driver:?} never reached {:?}", panic_point(1));
                break;
            }
        }
    });
}

fn all_drivers() -> Vec<Driver> {
    [&Driver::ASYNC[..], &Driver::BLOCKING].concat()
}

#[test]
fn a_panicking_attempt_leaks_no_permits() {
    panic_at_each_point(&all_drivers(), PanicPoint::Attempt);
}

#[test]
fn an_operation_panicking_before_its_future_leaks_no_permits() {
    panic_at_each_point(&all_drivers(), PanicPoint::BeforeFuture);
}

#[test]
fn a_panicking_classifier_leaks_no_permits() {
    panic_at_each_point(&all_drivers(), PanicPoint::Classifier);
}

#[test]
fn a_panicking_listener_leaks_no_permits() {
    let with_listener: Vec<_> = all_drivers().into_iter().filter(|driver| driver.has_listener()).collect();
    panic_at_each_point(&with_listener, PanicPoint::Listener);
}

// The stage in which an attempt is dropped decides how its permits are settled.

/// A stage: its name, the steps that lead to it, the outcomes that both guards have recorded after the drop, and the
/// numbers of permits that the budget and the breaker got back.
type Stage<T> = (&'static str, &'static [fn(&mut T)], &'static [Outcome], u32, u32);

const FAILED: Outcome = Outcome::TRANSIENT;
const CANCELLED: Outcome = Outcome::Cancelled;
const SUCCESS: Outcome = Outcome::Success;

/// Drops a driver in each of these stages.
fn assert_settled_by_stage<T>(make: impl Fn(Retrier) -> T, stages: &[Stage<T>]) {
    for (name, steps, recorded, to_budget, to_breaker) in stages {
        let (budget, breaker) = (Arc::new(RecordingBudget::new(9)), Arc::new(RecordingBreaker::new(99, ms(1))));
        let mut driver = make(guarded(POLICY, &budget, &breaker));
        steps.iter().for_each(|step| step(&mut driver));
        drop(driver);
        let (seen, seen_by_breaker) = (budget.snapshot(), breaker.snapshot());
        assert_eq!((&*seen.recorded, seen.released), (*recorded, *to_budget), "{name}");
        assert_eq!((&*seen_by_breaker.recorded, seen_by_breaker.released), (*recorded, *to_breaker), "{name}");
        assert_eq!((budget.in_flight(), breaker.in_flight()), (0, 0), "{name}");
    }
}

#[test]
fn a_call_settles_its_permits_by_the_stage_in_which_it_is_dropped() {
    type Call = PollRetry<NoSleep>;
    const BEGIN: fn(&mut Call) = |call| assert!(poll_times(pin!(poll_fn(|cx| call.poll_begin(cx))), 1).is_ready());
    const ATTEMPT: fn(&mut Call) = |call| call.attempt(|| ());
    const FAIL: fn(&mut Call) = |call| assert_eq!(call.failed::<()>(FAILED, None), None);
    assert_settled_by_stage(
        |retrier| PollRetry::new(&retrier, NoSleep),
        &[
            ("not started", &[], &[], 0, 0),
            ("first attempt admitted", &[BEGIN], &[], 1, 1),
            ("first attempt in progress", &[BEGIN, ATTEMPT], &[CANCELLED], 0, 0),
            // Only the budget has reserved the retry.
            ("waiting", &[BEGIN, ATTEMPT, FAIL], &[FAILED], 1, 0),
            ("retry admitted", &[BEGIN, ATTEMPT, FAIL, BEGIN], &[FAILED], 1, 1),
            ("retry in progress", &[BEGIN, ATTEMPT, FAIL, BEGIN, ATTEMPT], &[FAILED, CANCELLED], 0, 0),
            ("ended", &[BEGIN, ATTEMPT, |call| call.succeeded()], &[SUCCESS], 0, 0),
        ],
    );
}

#[test]
fn a_reconnect_driver_settles_its_permits_by_the_stage_in_which_it_is_dropped() {
    type Driver = ReconnectDriver<VirtualClock>;
    const START: fn(&mut Driver) = |driver| assert!(matches!(driver.reconnect_now(), ReconnectStep::Connect { .. }));
    const END: fn(&mut Driver) = |driver| {
        let step = driver.ended::<()>(driver.generation(), FAILED, None);
        assert!(matches!(step, ReconnectStep::Wait { .. }), "{step:?}");
    };
    const RETRY: fn(&mut Driver) = |driver| {
        driver.clock().advance(ms(10));
        assert!(matches!(driver.due(), ReconnectStep::Connect { .. }));
    };
    const OPEN: fn(&mut Driver) = |driver| assert_eq!(driver.opened(driver.generation()), ReconnectStep::Rest);
    assert_settled_by_stage(
        |retrier| ReconnectDriver::new(retrier, VirtualClock::new()),
        &[
            ("idle", &[], &[], 0, 0),
            ("connecting", &[START], &[CANCELLED], 0, 0),
            ("waiting", &[START, END], &[FAILED], 1, 0),
            ("connecting again", &[START, END, RETRY], &[FAILED, CANCELLED], 0, 0),
            ("open", &[START, OPEN], &[SUCCESS], 0, 0),
            ("waiting after a loss", &[START, OPEN, END], &[SUCCESS], 1, 0),
            ("closed", &[START, OPEN, ReconnectDriver::close], &[SUCCESS], 0, 0),
        ],
    );
}
