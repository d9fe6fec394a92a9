//! Items that move between a queue and a batch keep their attempts, their start and their place in the schedule.

use core::num::NonZeroU32;
use core::time::Duration;
use std::sync::Arc;

use futures_lite::future::block_on;
use stagger::batch::{Batch, BatchResult, ItemResult};
use stagger::queue::{GiveUpReason, Pending, RetryQueue};
use stagger::testing::VirtualClock;
use stagger::{Outcome, Policy, Retrier, Seed, ServerHint, StopReason, policy};

use super::super::support::{PendingTimer, RecordingBreaker, RecordingBudget, ms, poll_times};

/// Delays of 10, 20, 40 and 80 ms.
const DOUBLING: Policy = policy!(exponential(ms(10), secs(10)).jitter(Jitter::None).max_attempts(5));
/// The same delays, in a batch that gives up earlier.
const BATCH: Policy = policy!(exponential(ms(10), secs(10)).jitter(Jitter::None).max_attempts(3));

type Queue = RetryQueue<&'static str, VirtualClock>;
type Messages = Batch<&'static str, u16, VirtualClock>;

/// Runs the batch to completion; every item in it fails with this outcome, and with the number of the attempt.
fn all_fail(mut batch: Messages, outcome: Outcome) -> BatchResult<&'static str, u16> {
    let mut attempt = 0;
    while block_on(batch.next_attempt()) {
        attempt += 1;
        batch.all_failed(outcome, |_| attempt);
    }
    batch.finish()
}

/// Fails the next job of the queue, and returns its number, the time, and why it was given up if it was.
fn fail_next(queue: &mut Queue, clock: &VirtualClock) -> (u32, Duration, Option<GiveUpReason>) {
    let job = block_on(queue.next()).unwrap().unwrap();
    let (number, at) = (job.number(), clock.elapsed());
    (number, at, queue.push_retry(job, Outcome::TRANSIENT).err().map(|gave_up| gave_up.reason))
}

#[test]
fn items_of_a_batch_continue_in_a_queue_with_their_attempts_and_delays() {
    let clock = VirtualClock::new();
    let result = all_fail(Batch::with_timer(clock.clone(), BATCH, [("a", "one")]), Outcome::TRANSIENT);
    assert_eq!(clock.elapsed(), ms(30), "attempts at 0, 10 and 30 ms");
    let mut queue = Queue::with_timer(clock.clone(), DOUBLING);
    for failed in result.into_failed() {
        queue.push_from_batch(failed).unwrap();
    }
    assert_eq!(fail_next(&mut queue, &clock), (4, ms(70), None));
    assert_eq!(fail_next(&mut queue, &clock), (5, ms(150), Some(GiveUpReason::Stop(StopReason::Attempts))));
}

#[test]
fn the_time_in_a_batch_counts_toward_the_time_limit_of_the_queue() {
    for (limit, is_queued) in [(ms(70), true), (ms(69), false)] {
        let clock = VirtualClock::new();
        clock.advance(ms(500));
        let result = all_fail(Batch::with_timer(clock.clone(), BATCH, [("a", "one")]), Outcome::TRANSIENT);
        let policy = DOUBLING.to_builder().max_elapsed(limit).build().unwrap();
        let mut queue = Queue::with_timer(clock, policy);
        let pushed = queue.push_from_batch(result.into_failed().next().unwrap());
        assert_eq!(pushed.is_ok(), is_queued, "{limit:?}");
        if let Err(gave_up) = pushed {
            assert_eq!((gave_up.reason, gave_up.attempts), (GiveUpReason::Stop(StopReason::Elapsed), 3));
            assert_eq!((gave_up.item.item, gave_up.item.error), ("one", Some(3)));
        }
    }
}

#[test]
fn items_of_a_queue_continue_in_a_batch_and_back() {
    let clock = VirtualClock::new();
    let policy = DOUBLING.to_builder().max_elapsed(ms(149)).build().unwrap();
    let mut queue = Queue::with_timer(clock.clone(), policy);
    queue.push("one", Duration::ZERO).unwrap();
    assert_eq!(fail_next(&mut queue, &clock), (1, ms(0), None));
    assert_eq!(fail_next(&mut queue, &clock), (2, ms(10), None));
    let due = block_on(queue.next_batch(10)).unwrap();
    assert_eq!((clock.elapsed(), due.len(), due[0].paused.attempt(), queue.len()), (ms(30), 1, 2, 0));

    let once = BATCH.to_builder().max_attempts(1).build().unwrap();
    let new: [(&str, &str); 0] = [];
    let batch = Messages::with_timer(clock.clone(), once, new).with_pending(due.into_iter().map(|one| (one.item, one)));
    assert_eq!((batch.entries()[0].id.as_str(), batch.entries()[0].attempts), ("one", 2));
    let result = all_fail(batch, Outcome::TRANSIENT);
    let failed = result.into_failed().next().unwrap();
    assert_eq!((failed.attempts, failed.stop), (3, StopReason::Attempts));
    queue.push_from_batch(failed).unwrap();
    // The retry after 80 ms would begin 150 ms after the first attempt.
    assert_eq!(fail_next(&mut queue, &clock), (4, ms(70), Some(GiveUpReason::Stop(StopReason::Elapsed))));
}

#[test]
fn jittered_delays_continue_with_the_seed_of_the_item() {
    const JITTERED: Policy = policy!(exponential(ms(100), secs(10)).jitter(Jitter::Decorrelated).max_attempts(6));
    let (clock, seed) = (VirtualClock::new(), Seed::new(9));
    let mut queue = Queue::with_timer(clock.clone(), Retrier::new(JITTERED).seed(seed));
    queue.push("one", Duration::ZERO).unwrap();
    let mut times = vec![fail_next(&mut queue, &clock).1];
    let once = BATCH.to_builder().max_attempts(1).build().unwrap();
    for _ in 0..3 {
        let due = block_on(queue.next_batch(1)).unwrap();
        times.push(clock.elapsed());
        let new: [(&str, &str); 0] = [];
        let batch = Messages::with_timer(clock.clone(), once, new).with_pending(due.into_iter().map(|one| ("a", one)));
        queue.push_from_batch(all_fail(batch, Outcome::TRANSIENT).into_failed().next().unwrap()).unwrap();
    }
    times.push(fail_next(&mut queue, &clock).1);
    let delays: Vec<_> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
    for (delay, drawn) in delays.iter().zip(JITTERED.delays(seed.for_call(1))) {
        // The queue is late by less than a tick.
        assert!(*delay >= drawn && *delay < drawn + ms(2), "{delay:?}, drawn {drawn:?}");
    }
    assert_eq!(delays.len(), 4);
}

#[test]
fn a_queue_decides_by_the_outcome_that_the_item_had_in_the_batch() {
    let (clock, once) = (VirtualClock::new(), BATCH.to_builder().max_attempts(1).build().unwrap());
    let hinted = Outcome::throttled(Some(ServerHint::Reserved(ms(700))));
    for (outcome, want) in [
        (Outcome::TRANSIENT, Ok(ms(10))),
        (Outcome::NotProcessed, Ok(ms(10))),
        (hinted, Ok(ms(700))),
        (Outcome::Permanent, Err(StopReason::Permanent)),
        (Outcome::throttled(Some(ServerHint::DoNotRetry)), Err(StopReason::Hint)),
        (Outcome::Cancelled, Err(StopReason::Cancelled)),
    ] {
        let result = all_fail(Batch::with_timer(clock.clone(), once, [("a", "one")]), outcome);
        let mut queue = Queue::with_timer(clock.clone(), DOUBLING);
        let before = clock.elapsed();
        match (queue.push_from_batch(result.into_failed().next().unwrap()), want) {
            (Ok(_), Ok(after)) => {
                let job = block_on(queue.next()).unwrap().unwrap();
                assert_eq!((job.number(), clock.elapsed() - before), (2, after), "{outcome:?}");
            }
            (Err(gave_up), Err(stop)) => assert_eq!(gave_up.reason, GiveUpReason::Stop(stop), "{outcome:?}"),
            (pushed, want) => panic!("{outcome:?}: {:?}, expected {want:?}", pushed.is_ok()),
        }
    }
}

/// Otherwise an open breaker would make queue and batch hand an item back and forth without a pause.
#[test]
fn an_item_that_was_not_attempted_waits_and_counts_no_attempt() {
    let clock = VirtualClock::new();
    let breaker = Arc::new(RecordingBreaker::open(ms(50)));
    let open = || Retrier::new(BATCH).shared_guard(breaker.clone());
    let mut queue = Queue::with_timer(clock.clone(), DOUBLING);
    queue.push("tried", Duration::ZERO).unwrap();
    assert_eq!(fail_next(&mut queue, &clock), (1, ms(0), None));
    assert_eq!(fail_next(&mut queue, &clock), (2, ms(10), None));
    let due = block_on(queue.next_batch(10)).unwrap();
    let batch = Messages::with_timer(clock.clone(), open(), [("b", "new")])
        .with_pending(due.into_iter().map(|one| (one.item, one)));
    let result = all_fail(batch, Outcome::TRANSIENT);
    assert!(result.items.iter().all(|item| matches!(item, ItemResult::NotAttempted(_))));
    for failed in result.into_failed() {
        assert_eq!(failed.stop, StopReason::BREAKER);
        queue.push_from_batch(failed).unwrap();
    }
    assert_eq!(clock.elapsed(), ms(30));
    assert_eq!(fail_next(&mut queue, &clock), (1, ms(40), None), "new: the first delay");
    let job = block_on(queue.next()).unwrap().unwrap();
    assert_eq!((job.item, job.number(), clock.elapsed()), ("tried", 3, ms(50)), "tried: the second delay");
    queue.push_retry(job, Outcome::TRANSIENT).unwrap();
    assert_eq!(block_on(queue.next()).unwrap().unwrap().item, "new");
    let job = block_on(queue.next()).unwrap().unwrap();
    assert_eq!((job.number(), clock.elapsed()), (4, ms(90)), "the third delay follows");
}

#[test]
fn a_batch_of_retries_is_charged_to_the_budget_and_a_mixed_one_is_not() {
    let clock = VirtualClock::new();
    for (new, budget_left, attempted) in [(None, 0, false), (None, 1, true), (Some(("b", "new")), 0, true)] {
        let budget = Arc::new(RecordingBudget::new(budget_left));
        let retrier = Retrier::new(BATCH.to_builder().max_attempts(1).build().unwrap()).shared_guard(budget.clone());
        let mut queue = Queue::with_timer(clock.clone(), DOUBLING);
        queue.push("tried", Duration::ZERO).unwrap();
        fail_next(&mut queue, &clock);
        let due = block_on(queue.next_batch(10)).unwrap();
        let batch =
            Messages::with_timer(clock.clone(), retrier, new).with_pending(due.into_iter().map(|one| (one.item, one)));
        let result = all_fail(batch, Outcome::TRANSIENT);
        let tried = result.items.last().unwrap();
        let want = if attempted { StopReason::Attempts } else { StopReason::BUDGET };
        assert_eq!(tried.failed().unwrap().stop, want, "{new:?} with {budget_left}");
        assert_eq!(matches!(tried, ItemResult::GaveUp(_)), attempted);
        assert_eq!((budget.snapshot().retries_left, budget.in_flight()), (0, 0), "{new:?} with {budget_left}");
    }
}

#[test]
fn results_are_in_the_order_of_the_items_whenever_they_ended() {
    let clock = VirtualClock::new();
    let ids = ["late", "dead", "ok", "out", "unsafe"].map(|id| (id, id));
    let mut batch = Messages::with_timer(clock, BATCH, ids).dead_letter(NonZeroU32::new(9).unwrap(), |_| {});
    let mut attempt = 0;
    while block_on(batch.next_attempt()) {
        attempt += 1;
        for id in batch.entries().iter().map(|entry| entry.item).collect::<Vec<_>>() {
            match (id, attempt) {
                ("late", 1) | ("out", _) => batch.failed(id, Outcome::TRANSIENT, attempt).unwrap(),
                ("dead", _) => batch.failed(id, Outcome::Permanent, attempt).unwrap(),
                ("unsafe", _) => batch.failed(id, Outcome::Cancelled, attempt).unwrap(),
                _ => {}
            }
        }
    }
    let result = batch.finish();
    let seen: Vec<_> = result
        .items
        .iter()
        .map(|item| match item {
            ItemResult::Succeeded(one) => ("succeeded", one.id.as_str(), one.attempts, None, None),
            ItemResult::GaveUp(one) => ("gave up", one.id.as_str(), one.attempts, one.error, Some(one.stop)),
            ItemResult::DeadLettered(one) => ("dead", one.id.as_str(), one.attempts, one.error, Some(one.stop)),
            ItemResult::NotAttempted(one) => {
                ("not attempted", one.id.as_str(), one.attempts, one.error, Some(one.stop))
            }
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("succeeded", "late", 2, None, None),
            ("dead", "dead", 1, Some(1), Some(StopReason::Permanent)),
            ("succeeded", "ok", 1, None, None),
            ("gave up", "out", 3, Some(3), Some(StopReason::Attempts)),
            ("gave up", "unsafe", 1, Some(1), Some(StopReason::Cancelled)),
        ]
    );
    assert!(result.items.iter().map(ItemResult::id).eq(["late", "dead", "ok", "out", "unsafe"]));
}

#[test]
fn a_batch_is_taken_from_what_is_due_and_no_more() {
    let timer = PendingTimer::default();
    let budget = Arc::new(RecordingBudget::new(9));
    let retrier = Retrier::new(DOUBLING).shared_guard(budget.clone());
    let mut queue = RetryQueue::with_timer(timer.clone(), retrier);
    assert_eq!(block_on(queue.next_batch(3)).map(|due| due.len()), None, "nothing is pending");
    for item in 0..4 {
        let job = queue.begin(item).unwrap();
        queue.push_retry(job, Outcome::TRANSIENT).unwrap();
    }
    queue.push(9, ms(60_000)).unwrap();
    // Cancelled while nothing is due: nothing is lost.
    assert!(poll_times(core::pin::pin!(queue.next_batch(3)), 1).is_pending());
    assert_eq!((queue.len(), budget.snapshot().retries_left), (5, 5));
    let mut took = |max| {
        let due = block_on(queue.next_batch(max)).unwrap();
        (due.iter().map(|one| one.item).collect::<Vec<_>>(), due.iter().all(|one| one.left.is_zero()), queue.len())
    };
    assert_eq!(took(3), (vec![0, 1, 2], true, 2));
    assert_eq!(took(0), (vec![3], true, 1), "at least one");
    assert_eq!((budget.snapshot().retries_left, budget.in_flight()), (9, 0), "their permits are released");
}

#[test]
fn the_snapshots_of_a_batch_count_the_attempt_in_progress() {
    let clock = VirtualClock::new();
    let mut batch: Messages = Batch::with_timer(clock.clone(), BATCH, [("a", "one"), ("b", "two")]);
    let attempts = |batch: &Messages| -> Vec<_> {
        batch.pending().map(|(id, one)| (id.to_owned(), one.paused.attempt(), one.paused.is_in_flight())).collect()
    };
    assert_eq!(attempts(&batch), [("a".to_owned(), 0, false), ("b".to_owned(), 0, false)]);
    assert!(block_on(batch.next_attempt()));
    assert_eq!(attempts(&batch), [("a".to_owned(), 1, true), ("b".to_owned(), 1, true)]);
    let on_disk: Vec<_> = batch.pending().map(|(_, one)| Pending::new(*one.item, one.left, one.paused)).collect();
    core::mem::forget(batch);

    let mut queue = Queue::with_timer(clock.clone(), DOUBLING);
    for pending in on_disk {
        queue.restore(pending).unwrap();
    }
    assert_eq!(fail_next(&mut queue, &clock), (2, ms(10), None));
    assert_eq!(fail_next(&mut queue, &clock), (2, ms(10), None));
}

#[test]
fn a_full_queue_returns_the_item_of_the_batch_whole() {
    let clock = VirtualClock::new();
    let failed = || all_fail(Batch::with_timer(clock.clone(), BATCH, [("a", "one")]), Outcome::TRANSIENT);
    let mut queue = Queue::with_timer(clock.clone(), DOUBLING).capacity(0);
    let gave_up = queue.push_from_batch(failed().into_failed().next().unwrap()).unwrap_err();
    assert_eq!((gave_up.reason, gave_up.attempts), (GiveUpReason::Full, 3));
    assert_eq!((gave_up.item.id.as_str(), gave_up.item.item, gave_up.item.error), ("a", "one", Some(3)));
    // It can be pushed again.
    let mut queue = Queue::with_timer(clock.clone(), DOUBLING);
    queue.push_from_batch(gave_up.item).unwrap();
    assert_eq!(block_on(queue.next()).unwrap().unwrap().number(), 4);
}
