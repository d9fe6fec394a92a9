//! Settled meaning 11: a dropped future stops at once, and what it had borrowed is given back, exactly once.

use core::cell::Cell;
use core::panic::AssertUnwindSafe;
use core::pin::{Pin, pin};
use core::task::{Context, Poll};
use std::panic::catch_unwind;
use std::sync::Arc;

use futures_lite::future::{block_on, yield_now};
use stagger::testing::{NoSleep, VirtualClock};
use stagger::{
    Guards, Outcome, Policy, Retrier, Seed, StopReason, blocking, policy, reconnect::Reconnect, retry_with_timer,
    scope, time::Sleep, time::SleepFn,
};

use super::support::{Fail, PendingTimer, RecordingBreaker, RecordingBudget, ms, poll_times};

const POLICY: Policy = policy!(constant(ms(10)).jitter(Jitter::None).max_attempts(4));
const SPREAD: Policy = policy!(exponential(ms(10), ms(100)).jitter(Jitter::None).spread(ms(50)));
const FUNDS: u64 = 10;

/// Fresh guards, and a check that nothing is borrowed from them any more.
struct Lenders {
    bank: Arc<RecordingBudget>,
    gate: Arc<RecordingBreaker>,
}

impl Lenders {
    fn new() -> Self {
        Self { bank: Arc::new(RecordingBudget::new(FUNDS)), gate: Arc::new(RecordingBreaker::new(99, ms(1))) }
    }

    fn guards(&self) -> Guards<'_> {
        Guards::none().budget(&*self.bank).breaker(&*self.gate)
    }

    fn retrier(&self) -> Retrier {
        Retrier::new(POLICY).shared_budget(self.bank.clone()).shared_breaker(self.gate.clone())
    }

    /// Nothing is in flight, every attempt was told to both, and only retries that were begun have been paid for.
    fn expect_settled(&self, what: &str, polls: u32) {
        let (books, passes) = (self.bank.snapshot(), self.gate.snapshot());
        assert_eq!(self.bank.in_flight(), 0, "{what}, dropped after {polls} polls: {books:?}");
        assert_eq!(self.gate.in_flight(), 0, "{what}, dropped after {polls} polls: {passes:?}");
        assert_eq!(books.recorded, passes.recorded, "{what}, dropped after {polls} polls");
        let retries = (books.recorded.len() as u64).saturating_sub(1);
        assert_eq!(books.retries_left, FUNDS - retries, "{what}, dropped after {polls} polls: {books:?}");
        assert!(books.released <= 1, "{what}, dropped after {polls} polls: {books:?}");
        let cancelled = books.recorded.iter().filter(|outcome| **outcome == Outcome::Cancelled).count();
        assert!(cancelled <= 1, "{what}, dropped after {polls} polls: {books:?}");
        assert!(books.released as usize + cancelled <= 1, "dropped in a sleep and in an attempt: {books:?}");
    }
}

/// An attempt that is pending twice, and fails.
async fn attempt() -> Result<(), Fail> {
    yield_now().await;
    yield_now().await;
    Err(Fail::TRANSIENT)
}

/// Polls what `make` gives once, twice, three times and so on, and drops it, until it comes to its end. Gives how often
/// it was dropped in the middle.
fn dropped_everywhere(what: &str, make: impl for<'a> Fn(&'a Lenders) -> Pin<Box<dyn Future<Output = ()> + 'a>>) -> u32 {
    for polls in 0.. {
        let lenders = Lenders::new();
        let mut future = make(&lenders);
        let ended = polls > 0 && poll_times(future.as_mut(), polls).is_ready();
        drop(future);
        lenders.expect_settled(what, polls);
        assert_eq!(scope::depth(), 0, "{what}, dropped after {polls} polls");
        if ended {
            return polls;
        }
    }
    unreachable!("it never ends")
}

/// Four attempts that are pending twice, and three sleeps that are pending once.
const PENDING: u32 = 4 * 2 + 3;

#[test]
fn meaning_11_a_call_gives_everything_back_wherever_it_is_dropped() {
    let polls = dropped_everywhere("retry", |lenders| {
        Box::pin(async {
            let call = retry_with_timer(&POLICY, PendingTimer::default(), attempt).guards(lenders.guards());
            assert_eq!(call.await.unwrap_err().stop_reason(), StopReason::Attempts);
        })
    });
    assert_eq!(polls, 1 + PENDING);

    let polls = dropped_everywhere("retry with a spread", |lenders| {
        Box::pin(async {
            let call = retry_with_timer(&SPREAD, PendingTimer::default(), attempt).guards(lenders.guards());
            call.seed(Seed::new(1)).await.unwrap_err();
        })
    });
    assert_eq!(polls, 1 + 1 + PENDING);
}

#[test]
fn meaning_11_a_call_with_time_limits_gives_everything_back_wherever_it_is_dropped() {
    let never = || core::future::pending::<Result<(), Fail>>();
    let polls = dropped_everywhere("retry with a timeout", |lenders| {
        Box::pin(async move {
            let call = retry_with_timer(&POLICY, PendingTimer::default(), never).guards(lenders.guards());
            assert_eq!(call.timeout(ms(5)).await.unwrap_err().stop_reason(), StopReason::Attempts);
        })
    });
    assert_eq!(polls, 1 + 4 + 3);
}

#[test]
fn meaning_11_a_call_through_a_retrier_gives_everything_back_wherever_it_is_dropped() {
    let polls = dropped_everywhere("Retrier::run", |lenders| {
        Box::pin(async {
            lenders.retrier().run_on(PendingTimer::default(), attempt).await.unwrap_err();
        })
    });
    assert_eq!(polls, 1 + PENDING);

    let polls = dropped_everywhere("Retrier::run_with", |lenders| {
        Box::pin(async {
            let operation = async |_: &mut (), _| attempt().await;
            lenders.retrier().run_with_on(PendingTimer::default(), &mut (), operation).await.unwrap_err();
        })
    });
    assert_eq!(polls, 1 + PENDING);

    let polls = dropped_everywhere("Retrier::call", |lenders| {
        Box::pin(async {
            let retrier = lenders.retrier();
            let mut call = retrier.call_on(PendingTimer::default());
            while call.attempt(attempt()).await.is_none() {}
        })
    });
    assert_eq!(polls, 1 + PENDING);
}

/// The call itself goes on living when the future of one of its attempts is dropped.
#[test]
fn meaning_11_a_dropped_attempt_of_a_call_by_hand_gives_back_at_once() {
    for polls in 0..=3 {
        let lenders = Lenders::new();
        let retrier = lenders.retrier();
        let mut call = retrier.call_on(PendingTimer::default());
        if polls > 0 {
            assert!(poll_times(pin!(call.attempt(attempt())), polls).is_pending(), "{polls}");
        }
        lenders.expect_settled("an attempt by hand", polls);

        // What comes next is a new call.
        let ready = core::future::ready(Ok::<_, Fail>(7));
        assert_eq!(poll_times(pin!(call.attempt(ready)), 1), Poll::Ready(Some(Ok(7))));
        assert_eq!(call.attempts(), 1);
        drop(call);
        assert_eq!((lenders.bank.in_flight(), lenders.gate.in_flight()), (0, 0));
    }
}

#[test]
fn meaning_11_a_call_that_is_cancelled_gives_everything_back() {
    struct After(u32);
    impl Future for After {
        type Output = ();
        fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
            self.0 = self.0.saturating_sub(1);
            if self.0 == 0 { Poll::Ready(()) } else { Poll::Pending }
        }
    }
    for polls in 1..=PENDING {
        let lenders = Lenders::new();
        let call = retry_with_timer(&POLICY, PendingTimer::default(), attempt).guards(lenders.guards());
        let Poll::Ready(Err(error)) = poll_times(pin!(call.cancelled_by(After(polls))), 20) else {
            panic!("not cancelled after {polls} polls")
        };
        assert_eq!(error.stop_reason(), StopReason::Cancelled, "after {polls} polls");
        lenders.expect_settled("a cancelled call", polls);
    }
}

#[test]
fn meaning_11_a_panic_in_a_blocking_operation_gives_everything_back() {
    for panics_at in 1..=3 {
        let lenders = Lenders::new();
        let operation = |attempt: stagger::Attempt| {
            assert_ne!(attempt.number, panics_at, "as it shall");
            Err::<(), _>(Fail::TRANSIENT)
        };
        let call = blocking::retry_with(&POLICY, operation).timer(NoSleep).guards(lenders.guards());
        catch_unwind(AssertUnwindSafe(|| call.run())).unwrap_err();
        lenders.expect_settled("a blocking call that panics", panics_at);
        assert_eq!(lenders.bank.snapshot().recorded.last(), Some(&Outcome::Cancelled));
        assert_eq!(scope::depth(), 0, "the mark of the attempt is gone");
    }
}

#[test]
fn meaning_11_a_panic_in_an_attempt_gives_everything_back() {
    let lenders = Lenders::new();
    let operation = async || -> Result<(), Fail> {
        yield_now().await;
        panic!("as it shall")
    };
    let mut call = Box::pin(retry_with_timer(&POLICY, NoSleep, operation).guards(lenders.guards()));
    catch_unwind(AssertUnwindSafe(|| poll_times(call.as_mut(), 2))).unwrap_err();
    assert_eq!(scope::depth(), 0, "the mark of the attempt is gone");
    drop(call);
    lenders.expect_settled("a call that panics", 2);
}

#[tokio::test(start_paused = true)]
async fn meaning_11_an_aborted_task_and_a_lost_race_give_everything_back() {
    let lenders = Arc::new(Lenders::new());
    let theirs = Arc::clone(&lenders);
    let task = tokio::spawn(async move {
        let call = stagger::retry(&POLICY, attempt).guards(theirs.guards());
        call.await.map_err(drop)
    });
    tokio::time::sleep(ms(5)).await;
    assert_eq!(lenders.bank.in_flight(), 1, "it sleeps, and has paid for it");
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    lenders.expect_settled("an aborted task", 0);

    let lenders = Lenders::new();
    tokio::select! {
        _ = stagger::retry(&POLICY, attempt).guards(lenders.guards()) => unreachable!("it takes 30 ms"),
        () = tokio::time::sleep(ms(15)) => {}
    }
    lenders.expect_settled("a lost race", 0);
    let timed = tokio::time::timeout(ms(15), stagger::retry(&POLICY, attempt).guards(lenders.guards()));
    timed.await.unwrap_err();
    assert_eq!((lenders.bank.in_flight(), lenders.gate.in_flight()), (0, 0));
}

/// An attempt that holds something beyond its end, as a future that is its own value does.
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
fn meaning_11_whatever_an_attempt_holds_is_let_go_before_the_sleep() {
    for pending in [0, 2] {
        let (held, clock) = (Cell::new(0), VirtualClock::new());
        let sleep = |length| {
            assert_eq!(held.get(), 0, "a connection is held in the sleep");
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

/// Connecting is pending twice; a wait is pending once.
#[test]
fn meaning_11_reconnecting_gives_back_what_a_dropped_attempt_had_borrowed_at_once() {
    for polls in 0..=3 {
        let lenders = Lenders::new();
        let mut links = Reconnect::with_timer(PendingTimer::default(), &POLICY, attempt).guards(lenders.guards());
        if polls > 0 {
            assert!(poll_times(pin!(links.next()), polls).is_pending());
        }
        match polls {
            // Dropped while it connects.
            1 | 2 => lenders.expect_settled("Reconnect::next", polls),
            // Dropped in the wait, which goes on, and so does what was paid for it.
            3 => assert_eq!((lenders.bank.in_flight(), lenders.gate.in_flight()), (1, 0)),
            _ => {}
        }
        drop(links);
        lenders.expect_settled("Reconnecting", polls);
    }
}
