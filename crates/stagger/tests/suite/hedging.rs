//! Hedging: sends further copies of a slow attempt.

use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::sync::atomic::{AtomicU32, Ordering};
use core::task::Poll;
use core::time::Duration;

use futures_lite::future::block_on;
use stagger::budget::Concurrent;
use stagger::hedge::{Hedge, Latencies};
use stagger::{Marked, Outcome, Ratio, hedge};
use tokio::time::{Instant, sleep};

use super::support::{EarlyTimer, RecordingBudget, ms, poll_times};

/// Scripted attempts: duration and result of each, in launch order.
struct Script {
    steps: &'static [(u64, Result<&'static str, &'static str>)],
    launched: Cell<usize>,
    completed: RefCell<Vec<usize>>,
}

impl Script {
    const fn of(steps: &'static [(u64, Result<&'static str, &'static str>)]) -> Self {
        Self { steps, launched: Cell::new(0), completed: RefCell::new(Vec::new()) }
    }

    async fn next(&self) -> Result<&'static str, &'static str> {
        let at = self.launched.get();
        self.launched.set(at + 1);
        let (duration, result) = self.steps[at];
        sleep(ms(duration)).await;
        self.completed.borrow_mut().push(at);
        result
    }
}

const HEDGE: Hedge = Hedge::after(ms(100)).with_max_copies(2);

#[tokio::test(start_paused = true)]
async fn a_fast_attempt_is_not_hedged() {
    let (script, start) = (Script::of(&[(99, Ok("first"))]), Instant::now());
    let report = hedge::hedge(&HEDGE, || script.next()).with_report().await;
    assert_eq!((report.result, report.winner, report.launched), (Ok("first"), Some(0), 1));
    assert_eq!(start.elapsed(), ms(99));
}

#[tokio::test(start_paused = true)]
async fn a_slow_attempt_is_hedged_and_the_first_success_wins() {
    let (script, start) = (Script::of(&[(900, Ok("first")), (30, Ok("second"))]), Instant::now());
    let report = hedge::hedge(&HEDGE, || script.next()).with_report().await;
    assert_eq!((report.result, report.winner, report.launched), (Ok("second"), Some(1), 2));
    assert_eq!(start.elapsed(), ms(130));
    sleep(ms(5_000)).await;
    assert_eq!(script.completed.into_inner(), [1], "the losing attempt was cancelled");
}

#[test]
fn a_copy_is_launched_on_time_if_the_timer_fires_early() {
    let (timer, launches, polls) = (EarlyTimer::new(50), RefCell::new(Vec::new()), &Cell::new(0));
    let attempt = || {
        launches.borrow_mut().push(timer.clock.elapsed());
        let is_copy = launches.borrow().len() > 1;
        poll_fn(move |_| {
            polls.set(polls.get() + 1);
            assert!(polls.get() < 1_000, "the timer is not armed for the rest of the delay");
            if is_copy { Poll::Ready(Ok::<_, &str>(())) } else { Poll::Pending }
        })
    };
    block_on(hedge::hedge_with_timer(&HEDGE, timer.clone(), attempt)).unwrap();
    assert_eq!(launches.into_inner(), [ms(0), ms(100)]);
}

#[tokio::test(start_paused = true)]
async fn copies_are_spaced_by_the_delay_up_to_the_limit() {
    let script = Script::of(&[(900, Ok("first")), (900, Ok("second")), (900, Ok("third"))]);
    let start = Instant::now();
    let report = hedge::hedge(&HEDGE, || script.next()).with_report().await;
    assert_eq!((report.result, report.winner, report.launched), (Ok("first"), Some(0), 3));
    assert_eq!(start.elapsed(), ms(900));
}

#[tokio::test(start_paused = true)]
async fn a_failing_copy_does_not_fail_the_call() {
    let transient: &[_] = &[(900, Ok("first")), (10, Err("no")), (10, Err("no"))];
    for steps in [transient, &[(900, Ok("first")), (10, Err("never"))]] {
        let script = Script::of(steps);
        let report = hedge::hedge(&HEDGE, || script.next()).when(|error| *error == "no").with_report().await;
        assert_eq!((report.result, report.winner), (Ok("first"), Some(0)));
        // A permanent failure of a copy stops further copies.
        assert_eq!(report.launched as usize, steps.len());
    }
}

#[tokio::test(start_paused = true)]
async fn a_failing_first_attempt_launches_the_copy_at_once() {
    let (script, start) = (Script::of(&[(10, Err("no")), (20, Ok("second"))]), Instant::now());
    let report = hedge::hedge(&Hedge::after(Duration::from_secs(3600)), || script.next()).with_report().await;
    assert_eq!((report.result, report.winner, report.launched), (Ok("second"), Some(1), 2));
    assert_eq!(start.elapsed(), ms(30));
}

#[tokio::test(start_paused = true)]
async fn a_permanent_first_failure_stops_the_call() {
    let (script, start) = (Script::of(&[(150, Err("never")), (900, Ok("second"))]), Instant::now());
    let report = hedge::hedge(&HEDGE, || script.next()).when(|_| false).with_report().await;
    assert_eq!((report.result, report.winner, report.launched), (Err("never"), None, 2));
    assert_eq!(start.elapsed(), ms(150));
}

#[tokio::test(start_paused = true)]
async fn the_first_error_is_returned_if_all_attempts_fail() {
    let fails_last: &[_] = &[(500, Err("first")), (10, Err("second")), (10, Err("third"))];
    for steps in [fails_last, &[(10, Err("first")), (10, Err("second")), (10, Err("third"))]] {
        let script = Script::of(steps);
        assert_eq!(hedge::hedge(&HEDGE, || script.next()).await, Err("first"));
        assert_eq!(script.launched.get(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn a_copy_honors_the_server_hint() {
    let (script, start) = (Script::of(&[(10, Err("busy")), (20, Ok("second"))]), Instant::now());
    let busy = |_: &&str| Outcome::throttled(Some(stagger::ServerHint::AtLeast(ms(2_000))));
    assert_eq!(hedge::hedge(&HEDGE, || script.next()).classify(busy).await, Ok("second"));
    assert_eq!(start.elapsed(), ms(2_030));
}

#[tokio::test(start_paused = true)]
async fn a_rejected_copy_is_not_launched() {
    let (budget, script) = (RecordingBudget::new(1), Script::of(&[(900, Ok("first")), (900, Ok("second"))]));
    let report = hedge::hedge(&HEDGE, || script.next()).guard(&budget).with_report().await;
    assert_eq!((report.result, report.winner, report.launched), (Ok("first"), Some(0), 2));
    let record = budget.snapshot();
    assert_eq!((record.retries_left, budget.in_flight()), (0, 0));
    assert_eq!(record.recorded, [Outcome::Success, Outcome::Cancelled]);
}

#[tokio::test(start_paused = true)]
async fn all_permits_are_settled_when_a_copy_wins() {
    let (budget, script) = (RecordingBudget::new(1), Script::of(&[(900, Ok("first")), (30, Ok("second"))]));
    let mut call = Box::pin(hedge::hedge(&HEDGE, || script.next()).guard(&budget));
    assert_eq!(call.as_mut().await, Ok("second"));
    // The call has not been dropped.
    assert_eq!((budget.in_flight(), budget.snapshot().recorded), (0, vec![Outcome::Success, Outcome::Cancelled]));
}

#[tokio::test(start_paused = true)]
async fn a_first_attempt_inside_an_attempt_of_another_call_is_charged_once() {
    let budget = Concurrent::new();
    let firsts = async || Ok::<_, &str>(budget.snapshot().firsts);
    let hedged = async || hedge::hedge(&HEDGE, firsts).guard(&budget).await;
    assert_eq!(stagger::retry(&stagger::Policy::DEFAULT, hedged).guard(&budget).await, Ok(1));
    assert_eq!(hedged().await, Ok(1), "outside of any attempt");
}

#[tokio::test(start_paused = true)]
async fn a_hedged_call_dropped_at_any_poll_settles_its_permits() {
    for polls in 1..6 {
        let budget = RecordingBudget::new(9);
        let script = Script::of(&[(300, Err("no")), (300, Err("no")), (300, Ok("third"))]);
        let mut call = Box::pin(hedge::hedge(&HEDGE, || script.next()).guard(&budget));
        for _ in 0..polls {
            let _ = poll_times(call.as_mut(), 1);
            sleep(ms(90)).await;
        }
        assert!(budget.in_flight() > 0, "{polls}");
        drop(call);
        assert_eq!(budget.in_flight(), 0, "{polls}");
    }
}

#[tokio::test(start_paused = true)]
async fn cancelled_attempts_record_their_latency() {
    let latencies = Latencies::new(1_000);
    for _ in 0..40 {
        let script = Script::of(&[(900, Ok("first")), (30, Ok("second"))]);
        let _ = hedge::hedge(&HEDGE, || script.next()).latencies(&latencies).await;
    }
    assert_eq!(latencies.len(), 80);
    let (low, high) = (latencies.quantile(Ratio::percent(25)), latencies.quantile(Ratio::percent(75)));
    assert!(low.unwrap().abs_diff(ms(30)) < ms(5) && high.unwrap().abs_diff(ms(130)) < ms(17), "{low:?}, {high:?}");
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_copy_records_how_long_it_has_taken() {
    let latencies = Latencies::new(1_000);
    for _ in 0..40 {
        let script = Script::of(&[(150, Ok("first")), (900, Ok("second"))]);
        assert_eq!(hedge::hedge(&HEDGE, || script.next()).latencies(&latencies).await, Ok("first"));
    }
    let copy = latencies.quantile(Ratio::percent(25)).unwrap();
    assert!(latencies.len() == 80 && copy.abs_diff(ms(50)) < ms(7), "{copy:?}");
}

#[tokio::test(start_paused = true)]
async fn a_quantile_delay_follows_recorded_latencies() {
    let tail = Hedge::at_quantile(Ratio::percent(95), ms(500));
    let latencies = Latencies::default();
    for _ in 0..100 {
        latencies.record(ms(20));
    }
    let (script, start) = (Script::of(&[(900, Ok("first")), (10, Ok("second"))]), Instant::now());
    assert_eq!(hedge::hedge(&tail, || script.next()).latencies(&latencies).await, Ok("second"));
    assert!(start.elapsed() < ms(40), "{:?}", start.elapsed());
}

/// Polling a completed call launches nothing.
#[tokio::test(start_paused = true)]
async fn a_completed_hedged_call_launches_nothing() {
    let script = Script::of(&[(10, Ok("first"))]);
    let mut call = Box::pin(hedge::hedge(&HEDGE, || script.next()));
    assert_eq!(call.as_mut().await, Ok("first"));
    sleep(ms(500)).await;
    assert!(poll_times(call.as_mut(), 3).is_pending());
    assert_eq!(script.launched.get(), 1);
}

#[tokio::test]
async fn a_hedged_call_can_be_spawned_and_retried() {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    const RETRY: stagger::Policy = stagger::policy!(constant(ms(1)).max_attempts(3));
    let call = stagger::retry(&RETRY, || {
        hedge::hedge(&HEDGE, || async {
            if CALLS.fetch_add(1, Ordering::Relaxed) < 4 { Err(Marked::transient("no")) } else { Ok(5) }
        })
    });
    assert_eq!(tokio::spawn(call).await.unwrap(), Ok(5));
}
