//! A second copy of a slow attempt.

use core::cell::{Cell, RefCell};
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;

use stagger::{Marked, Outcome, Ratio, hedge, hedge::Hedge, hedge::Latencies};
use tokio::time::{Instant, sleep};

use super::support::{RecordingBudget, ms, poll_times};

/// What each attempt does, one after the other: how long it takes and how it ends.
struct Script {
    steps: &'static [(u64, Result<&'static str, &'static str>)],
    launched: Cell<usize>,
    ended: RefCell<Vec<usize>>,
}

impl Script {
    const fn of(steps: &'static [(u64, Result<&'static str, &'static str>)]) -> Self {
        Self { steps, launched: Cell::new(0), ended: RefCell::new(Vec::new()) }
    }

    async fn next(&self) -> Result<&'static str, &'static str> {
        let at = self.launched.get();
        self.launched.set(at + 1);
        let (took, result) = self.steps[at];
        sleep(ms(took)).await;
        self.ended.borrow_mut().push(at);
        result
    }
}

const HEDGE: Hedge = Hedge::after(ms(100)).with_max_copies(2);

#[tokio::test(start_paused = true)]
async fn a_quick_attempt_gets_no_copy() {
    let (script, began) = (Script::of(&[(99, Ok("first"))]), Instant::now());
    let report = hedge::hedge(&HEDGE, || script.next()).with_report().await;
    assert_eq!((report.result, report.winner, report.launched), (Ok("first"), Some(0), 1));
    assert_eq!(began.elapsed(), ms(99));
}

#[tokio::test(start_paused = true)]
async fn a_slow_attempt_gets_a_copy_and_the_first_answer_wins() {
    let (script, began) = (Script::of(&[(900, Ok("first")), (30, Ok("second"))]), Instant::now());
    let report = hedge::hedge(&HEDGE, || script.next()).with_report().await;
    assert_eq!((report.result, report.winner, report.launched), (Ok("second"), Some(1), 2));
    assert_eq!(began.elapsed(), ms(130));
    sleep(ms(5_000)).await;
    assert_eq!(script.ended.into_inner(), [1], "the loser was cancelled");
}

#[tokio::test(start_paused = true)]
async fn copies_follow_one_another_by_the_delay_and_no_more_than_allowed() {
    let script = Script::of(&[(900, Ok("first")), (900, Ok("second")), (900, Ok("third"))]);
    let began = Instant::now();
    let report = hedge::hedge(&HEDGE, || script.next()).with_report().await;
    assert_eq!((report.result, report.winner, report.launched), (Ok("first"), Some(0), 3));
    assert_eq!(began.elapsed(), ms(900));
}

#[tokio::test(start_paused = true)]
async fn a_copy_that_fails_never_fails_the_call() {
    let transient: &[_] = &[(900, Ok("first")), (10, Err("no")), (10, Err("no"))];
    for steps in [transient, &[(900, Ok("first")), (10, Err("never"))]] {
        let script = Script::of(steps);
        let report = hedge::hedge(&HEDGE, || script.next()).when(|error| *error == "no").with_report().await;
        assert_eq!((report.result, report.winner), (Ok("first"), Some(0)));
        // A permanent failure of a copy is the end of copies.
        assert_eq!(report.launched as usize, steps.len());
    }
}

#[tokio::test(start_paused = true)]
async fn a_first_attempt_that_fails_brings_the_copy_on_at_once() {
    let (script, began) = (Script::of(&[(10, Err("no")), (20, Ok("second"))]), Instant::now());
    let report = hedge::hedge(&Hedge::after(Duration::from_secs(3600)), || script.next()).with_report().await;
    assert_eq!((report.result, report.winner, report.launched), (Ok("second"), Some(1), 2));
    assert_eq!(began.elapsed(), ms(30));
}

#[tokio::test(start_paused = true)]
async fn a_permanent_failure_of_the_first_ends_the_call() {
    let (script, began) = (Script::of(&[(150, Err("never")), (900, Ok("second"))]), Instant::now());
    let report = hedge::hedge(&HEDGE, || script.next()).when(|_| false).with_report().await;
    assert_eq!((report.result, report.winner, report.launched), (Err("never"), None, 2));
    assert_eq!(began.elapsed(), ms(150));
}

#[tokio::test(start_paused = true)]
async fn if_all_fail_the_error_is_that_of_the_first() {
    let script = Script::of(&[(500, Err("first")), (10, Err("second")), (10, Err("third"))]);
    assert_eq!(hedge::hedge(&HEDGE, || script.next()).await, Err("first"));
    assert_eq!(script.launched.get(), 3);
}

#[tokio::test(start_paused = true)]
async fn a_copy_waits_for_what_the_server_asked_for() {
    let (script, began) = (Script::of(&[(10, Err("busy")), (20, Ok("second"))]), Instant::now());
    let busy = |_: &&str| Outcome::throttled(Some(stagger::ServerHint::AtLeast(ms(2_000))));
    assert_eq!(hedge::hedge(&HEDGE, || script.next()).classify(busy).await, Ok("second"));
    assert_eq!(began.elapsed(), ms(2_030));
}

#[tokio::test(start_paused = true)]
async fn what_the_budget_refuses_is_not_launched_and_nothing_else_changes() {
    let (bank, script) = (RecordingBudget::new(1), Script::of(&[(900, Ok("first")), (900, Ok("second"))]));
    let report = hedge::hedge(&HEDGE, || script.next()).budget(&bank).with_report().await;
    assert_eq!((report.result, report.winner, report.launched), (Ok("first"), Some(0), 2));
    let books = bank.snapshot();
    assert_eq!((books.retries_left, bank.in_flight()), (0, 0));
    assert_eq!(books.recorded, [Outcome::Success, Outcome::Cancelled]);
}

#[tokio::test(start_paused = true)]
async fn wherever_it_is_dropped_every_loan_is_settled() {
    for polls in 1..6 {
        let bank = RecordingBudget::new(9);
        let script = Script::of(&[(300, Err("no")), (300, Err("no")), (300, Ok("third"))]);
        let mut call = Box::pin(hedge::hedge(&HEDGE, || script.next()).budget(&bank));
        for _ in 0..polls {
            let _ = poll_times(call.as_mut(), 1);
            sleep(ms(90)).await;
        }
        assert!(bank.in_flight() > 0, "{polls}");
        drop(call);
        assert_eq!(bank.in_flight(), 0, "{polls}");
    }
}

#[tokio::test(start_paused = true)]
async fn losers_are_counted_with_the_time_they_had_taken() {
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
async fn a_delay_by_quantile_follows_what_was_seen() {
    let tail = Hedge::at_quantile(Ratio::percent(95), ms(500));
    let latencies = Latencies::default();
    for _ in 0..100 {
        latencies.record(ms(20));
    }
    let (script, began) = (Script::of(&[(900, Ok("first")), (10, Ok("second"))]), Instant::now());
    assert_eq!(hedge::hedge(&tail, || script.next()).latencies(&latencies).await, Ok("second"));
    assert!(began.elapsed() < ms(40), "{:?}", began.elapsed());
}

/// A call that has ended launches nothing more, whoever polls it.
#[tokio::test(start_paused = true)]
async fn after_its_end_it_is_over() {
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
    assert_eq!(tokio::spawn(call.with_marks()).await.unwrap(), Ok(5));
}
