//! Settled meaning 11: a dropped future stops at once, and its permits are settled exactly once.

use core::cell::Cell;
use core::panic::AssertUnwindSafe;
use core::pin::{Pin, pin};
use core::task::{Context, Poll};
use std::panic::catch_unwind;
use std::sync::Arc;

use futures_lite::future::{block_on, yield_now};
use stagger::reconnect::Reconnect;
use stagger::testing::{NoSleep, VirtualClock};
use stagger::time::{Sleep, SleepFn};
use stagger::{Outcome, Policy, Retrier, Seed, StopReason, blocking, policy, retry_with_timer, scope};

use super::support::{Fail, PendingTimer, RecordingBreaker, RecordingBudget, guarded, ms, poll_times};

const POLICY: Policy = policy!(constant(ms(10)).jitter(Jitter::None).max_attempts(4));
const SPREAD: Policy = policy!(exponential(ms(10), ms(100)).jitter(Jitter::None).spread(ms(50)));
const RETRIES: u64 = 10;

/// New guards, and a check that none of their permits is outstanding.
struct TestGuards {
    budget: Arc<RecordingBudget>,
    breaker: Arc<RecordingBreaker>,
}

impl TestGuards {
    fn new() -> Self {
        Self { budget: Arc::new(RecordingBudget::new(RETRIES)), breaker: Arc::new(RecordingBreaker::new(99, ms(1))) }
    }

    fn retrier(&self) -> Retrier {
        guarded(POLICY, &self.budget, &self.breaker)
    }

    /// Asserts that nothing is in flight, both guards recorded every attempt, and only started retries were charged.
    fn expect_settled(&self, what: &str, polls: u32) {
        let (budget_record, breaker_record) = (self.budget.snapshot(), self.breaker.snapshot());
        assert_eq!(self.budget.in_flight(), 0, "{what}, dropped after {polls} polls: {budget_record:?}");
        assert_eq!(self.breaker.in_flight(), 0, "{what}, dropped after {polls} polls: {breaker_record:?}");
        assert_eq!(budget_record.recorded, breaker_record.recorded, "{what}, dropped after {polls} polls");
        let retries = (budget_record.recorded.len() as u64).saturating_sub(1);
        assert_eq!(
            budget_record.retries_left,
            RETRIES - retries,
            "{what}, dropped after {polls} polls: {budget_record:?}"
        );
        assert!(budget_record.released <= 1, "{what}, dropped after {polls} polls: {budget_record:?}");
        let cancelled = budget_record.recorded.iter().filter(|outcome| **outcome == Outcome::Cancelled).count();
        assert!(cancelled <= 1, "{what}, dropped after {polls} polls: {budget_record:?}");
        assert!(
            budget_record.released as usize + cancelled <= 1,
            "dropped during a sleep and during an attempt: {budget_record:?}"
        );
    }
}

/// An attempt that is pending twice, and fails.
async fn attempt() -> Result<(), Fail> {
    yield_now().await;
    yield_now().await;
    Err(Fail::TRANSIENT)
}

/// Drops the future of `make` after one poll, two polls and so on, until it completes. Returns the number of polls to
/// completion.
fn drop_at_every_poll(
    what: &str,
    make: impl for<'a> Fn(&'a TestGuards) -> Pin<Box<dyn Future<Output = ()> + 'a>>,
) -> u32 {
    for polls in 0.. {
        let test_guards = TestGuards::new();
        let mut future = make(&test_guards);
        let completed = polls > 0 && poll_times(future.as_mut(), polls).is_ready();
        drop(future);
        test_guards.expect_settled(what, polls);
        assert_eq!(scope::depth(), 0, "{what}, dropped after {polls} polls");
        if completed {
            return polls;
        }
    }
    unreachable!("the future never completes")
}

/// Four attempts that are pending twice, and three sleeps that are pending once.
const PENDING: u32 = 4 * 2 + 3;

#[test]
fn meaning_11_a_call_dropped_at_any_poll_releases_its_permits() {
    let polls = drop_at_every_poll("retry", |test_guards| {
        Box::pin(async {
            let call = retry_with_timer(&POLICY, PendingTimer::default(), attempt)
                .guard(&*test_guards.breaker)
                .guard(&*test_guards.budget);
            assert_eq!(call.await.unwrap_err().stop_reason(), StopReason::Attempts);
        })
    });
    assert_eq!(polls, 1 + PENDING);

    let polls = drop_at_every_poll("retry with a spread", |test_guards| {
        Box::pin(async {
            let call = retry_with_timer(&SPREAD, PendingTimer::default(), attempt)
                .guard(&*test_guards.breaker)
                .guard(&*test_guards.budget);
            call.seed(Seed::new(1)).await.unwrap_err();
        })
    });
    assert_eq!(polls, 1 + 1 + PENDING);
}

#[test]
fn meaning_11_a_timed_call_dropped_at_any_poll_releases_its_permits() {
    let never = || core::future::pending::<Result<(), Fail>>();
    let polls = drop_at_every_poll("retry with a timeout", |test_guards| {
        Box::pin(async move {
            let call = retry_with_timer(&POLICY, PendingTimer::default(), never)
                .guard(&*test_guards.breaker)
                .guard(&*test_guards.budget);
            assert_eq!(call.timeout(ms(5)).await.unwrap_err().stop_reason(), StopReason::Attempts);
        })
    });
    assert_eq!(polls, 1 + 4 + 3);
}

#[test]
fn meaning_11_a_retrier_call_dropped_anywhere_releases_its_permits() {
    let polls = drop_at_every_poll("Retrier::run", |test_guards| {
        Box::pin(async {
            test_guards.retrier().run_on(PendingTimer::default(), attempt).await.unwrap_err();
        })
    });
    assert_eq!(polls, 1 + PENDING);

    let polls = drop_at_every_poll("Retrier::run_with", |test_guards| {
        Box::pin(async {
            let operation = async |_: &mut (), _| attempt().await;
            test_guards.retrier().run_with_on(PendingTimer::default(), &mut (), operation).await.unwrap_err();
        })
    });
    assert_eq!(polls, 1 + PENDING);

    let polls = drop_at_every_poll("Retrier::call", |test_guards| {
        Box::pin(async {
            let retrier = test_guards.retrier();
            let mut call = retrier.call_on(PendingTimer::default());
            while call.attempt(attempt()).await.is_none() {}
        })
    });
    assert_eq!(polls, 1 + PENDING);
}

/// The call outlives the dropped future of an attempt.
#[test]
fn meaning_11_a_dropped_manual_attempt_releases_at_once() {
    for polls in 0..=3 {
        let test_guards = TestGuards::new();
        let retrier = test_guards.retrier();
        let mut call = retrier.call_on(PendingTimer::default());
        if polls > 0 {
            assert!(poll_times(pin!(call.attempt(attempt())), polls).is_pending(), "{polls}");
        }
        test_guards.expect_settled("an attempt of a manual call", polls);

        // The next attempt starts a new call.
        let ready = core::future::ready(Ok::<_, Fail>(7));
        assert_eq!(poll_times(pin!(call.attempt(ready)), 1), Poll::Ready(Some(Ok(7))));
        assert_eq!(call.attempts(), 1);
        drop(call);
        assert_eq!((test_guards.budget.in_flight(), test_guards.breaker.in_flight()), (0, 0));
    }
}

#[test]
fn meaning_11_a_cancelled_call_releases_its_permits() {
    struct After(u32);
    impl Future for After {
        type Output = ();
        fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
            self.0 = self.0.saturating_sub(1);
            if self.0 == 0 { Poll::Ready(()) } else { Poll::Pending }
        }
    }
    for polls in 1..=PENDING {
        let test_guards = TestGuards::new();
        let call = retry_with_timer(&POLICY, PendingTimer::default(), attempt)
            .guard(&*test_guards.breaker)
            .guard(&*test_guards.budget);
        let Poll::Ready(Err(error)) = poll_times(pin!(call.cancelled_by(After(polls))), 20) else {
            panic!("not cancelled after {polls} polls")
        };
        assert_eq!(error.stop_reason(), StopReason::Cancelled, "after {polls} polls");
        test_guards.expect_settled("a cancelled call", polls);
    }
}

#[test]
fn meaning_11_a_blocking_panic_releases_the_permits() {
    for panics_at in 1..=3 {
        let test_guards = TestGuards::new();
        let operation = |attempt: stagger::Attempt| {
            assert_ne!(attempt.number, panics_at, "on purpose");
            Err::<(), _>(Fail::TRANSIENT)
        };
        let call = blocking::retry_with(&POLICY, operation)
            .timer(NoSleep)
            .guard(&*test_guards.breaker)
            .guard(&*test_guards.budget);
        catch_unwind(AssertUnwindSafe(|| call.run())).unwrap_err();
        test_guards.expect_settled("a blocking call that panics", panics_at);
        assert_eq!(test_guards.budget.snapshot().recorded.last(), Some(&Outcome::Cancelled));
        assert_eq!(scope::depth(), 0, "the attempt scope has ended");
    }
}

#[test]
fn meaning_11_a_panicking_attempt_releases_its_permits() {
    let test_guards = TestGuards::new();
    let operation = async || -> Result<(), Fail> {
        yield_now().await;
        panic!("on purpose")
    };
    let mut call = Box::pin(
        retry_with_timer(&POLICY, NoSleep, operation).guard(&*test_guards.breaker).guard(&*test_guards.budget),
    );
    catch_unwind(AssertUnwindSafe(|| poll_times(call.as_mut(), 2))).unwrap_err();
    assert_eq!(scope::depth(), 0, "the attempt scope has ended");
    drop(call);
    test_guards.expect_settled("a call that panics", 2);
}

#[tokio::test(start_paused = true)]
async fn meaning_11_aborts_and_lost_races_release_the_permits() {
    let test_guards = Arc::new(TestGuards::new());
    let task_guards = Arc::clone(&test_guards);
    let task = tokio::spawn(async move {
        let call = stagger::retry(&POLICY, attempt).guard(&*task_guards.breaker).guard(&*task_guards.budget);
        call.await.map_err(drop)
    });
    tokio::time::sleep(ms(5)).await;
    assert_eq!(test_guards.budget.in_flight(), 1, "the sleeping call holds the permit of its retry");
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    test_guards.expect_settled("an aborted task", 0);

    let test_guards = TestGuards::new();
    let guarded_call = || stagger::retry(&POLICY, attempt).guard(&*test_guards.breaker).guard(&*test_guards.budget);
    tokio::select! {
        _ = guarded_call() => unreachable!("it takes 30 ms"),
        () = tokio::time::sleep(ms(15)) => {}
    }
    test_guards.expect_settled("a lost race", 0);
    let timed = tokio::time::timeout(ms(15), guarded_call());
    timed.await.unwrap_err();
    assert_eq!((test_guards.budget.in_flight(), test_guards.breaker.in_flight()), (0, 0));
}

/// An attempt that holds a resource until it is dropped, as a named future does.
struct Holding<'a> {
    held: &'a Cell<u32>,
    pending: u32,
}

impl Future for Holding<'_> {
    type Output = Result<(), &'static str>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if self.pending > 0 {
            self.pending -= 1;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(Err("no"))
    }
}

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        self.held.set(self.held.get() - 1);
    }
}

#[test]
fn meaning_11_an_attempt_is_dropped_before_the_sleep() {
    for pending in [0, 2] {
        let (held, clock) = (Cell::new(0), VirtualClock::new());
        let sleep = |length| {
            assert_eq!(held.get(), 0, "a connection is held during the sleep");
            Sleep::sleep(&clock, length)
        };
        let timer = || SleepFn::with_clock(sleep, &clock);
        let attempt = || {
            held.set(held.get() + 1);
            Holding { held: &held, pending }
        };
        let call = retry_with_timer(&POLICY, timer(), attempt);
        assert_eq!(block_on(call), Err("no"));
        let report = block_on(retry_with_timer(&POLICY, timer(), attempt).with_report());
        assert_eq!(report.attempts, 4);
        let retrier = Retrier::new(POLICY);
        block_on(retrier.run_with_on(timer(), &mut (), |_: &mut (), _| attempt())).unwrap_err();
        assert_eq!(clock.sleeps().len(), 9);
    }
}

/// Connecting is pending twice; a sleep is pending once.
#[test]
fn meaning_11_a_dropped_connect_releases_its_permits_at_once() {
    for polls in 0..=3 {
        let test_guards = TestGuards::new();
        let mut links = Reconnect::with_timer(PendingTimer::default(), test_guards.retrier(), attempt);
        if polls > 0 {
            assert!(poll_times(pin!(links.next()), polls).is_pending());
        }
        match polls {
            // Dropped while connecting.
            1 | 2 => test_guards.expect_settled("Reconnect::next", polls),
            // Dropped during the sleep: the next call resumes it and keeps its permit.
            3 => assert_eq!((test_guards.budget.in_flight(), test_guards.breaker.in_flight()), (1, 0)),
            _ => {}
        }
        drop(links);
        test_guards.expect_settled("Reconnect", polls);
    }
}
