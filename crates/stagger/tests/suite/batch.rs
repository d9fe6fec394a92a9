//! Batches: only failed items are retried, no item is lost, and no attempt starts that cannot finish.

use core::num::NonZeroU32;
use core::pin::pin;
use core::time::Duration;
use std::sync::{Arc, Mutex};

use futures_lite::future::block_on;
use proptest::collection::vec;
use proptest::prelude::*;
use stagger::batch::{Batch, BatchResult, Failed, UnknownItem};
use stagger::testing::VirtualClock;
use stagger::time::Clock;
use stagger::{FailureKind, Instant, Outcome, Policy, Retrier, ServerHint, StopReason, policy};

use super::support::{PendingTimer, RecordingBreaker, RecordingBudget, guarded, ms, poll_times};

const POLICY: Policy = policy!(constant(ms(10)).jitter(Jitter::None).max_attempts(3));

type Items = Vec<(String, usize)>;

fn items(count: usize) -> Items {
    (0..count).map(|n| (format!("id-{n}"), n)).collect()
}

fn ids<T, E>(result: &BatchResult<T, E>) -> Vec<&str> {
    result.failed().map(|failed| failed.id.as_str()).collect()
}

/// Returns the item to be delivered again with this number.
fn failed<T, E>(result: &BatchResult<T, E>, n: usize) -> &Failed<T, E> {
    result.failed().nth(n).unwrap()
}

fn guards(retries: u64, breaker: RecordingBreaker) -> (Arc<RecordingBudget>, Arc<RecordingBreaker>) {
    (Arc::new(RecordingBudget::new(retries)), Arc::new(breaker))
}

fn at(length: Duration) -> Instant {
    Instant::ZERO.saturating_add(length)
}

/// Runs the batch to completion and returns the items of each attempt; `fate` decides the outcome of each item.
fn run(
    batch: &mut Batch<usize, u32, VirtualClock>,
    mut fate: impl FnMut(u32, usize) -> Option<Outcome>,
) -> Vec<Vec<usize>> {
    let mut attempts = Vec::new();
    while block_on(batch.next_attempt()) {
        let attempt = attempts.len() as u32 + 1;
        let sent: Vec<_> = batch.entries().iter().map(|entry| (entry.id.clone(), entry.item)).collect();
        for (id, item) in &sent {
            if let Some(outcome) = fate(attempt, *item) {
                batch.failed(id, outcome, attempt).unwrap();
            }
        }
        attempts.push(sent.into_iter().map(|(_, item)| item).collect());
    }
    attempts
}

#[test]
fn only_failed_items_are_retried() {
    let clock = VirtualClock::new();
    let mut batch = Batch::with_timer(clock.clone(), POLICY, items(6));
    let attempts = run(&mut batch, |attempt, item| (item as u32 >= 2 * attempt).then_some(Outcome::TRANSIENT));
    assert_eq!(attempts, [vec![0, 1, 2, 3, 4, 5], vec![2, 3, 4, 5], vec![4, 5]]);
    assert_eq!(clock.elapsed(), ms(20));
    let finished = batch.finish();
    assert_eq!((finished.succeeded(), finished.dead_lettered(), finished.failed().count()), (6, 0, 0));
    assert_eq!(finished.response().to_string(), r#"{"batchItemFailures":[]}"#);
}

#[test]
fn failed_items_carry_their_last_error() {
    let mut batch = Batch::with_timer(VirtualClock::new(), POLICY, items(3));
    run(&mut batch, |_, item| match item {
        0 => None,
        1 => Some(Outcome::Permanent),
        _ => Some(Outcome::TRANSIENT),
    });
    let finished = batch.finish();
    let failed: Vec<_> =
        finished.failed().map(|failed| (failed.item, failed.attempts, failed.error, failed.stop)).collect();
    assert_eq!(failed, [(1, 1, Some(1), StopReason::Permanent), (2, 3, Some(3), StopReason::Attempts)]);
    assert_eq!(
        finished.response().to_string(),
        r#"{"batchItemFailures":[{"itemIdentifier":"id-1"},{"itemIdentifier":"id-2"}]}"#
    );
}

#[test]
fn ids_are_escaped_as_json() {
    for (id, json) in [
        ("plain", r#""plain""#),
        ("a\"b\\c/d", r#""a\"b\\c/d""#),
        ("\u{0}\n\r\t\u{8}\u{c}\u{b}\u{1f}\u{7f}", "\"\\u0000\\n\\r\\t\\b\\f\\u000b\\u001f\u{7f}\""),
        ("é😀\u{2028}", "\"é😀\u{2028}\""),
    ] {
        let batch: Batch<(), (), _> = Batch::with_timer(VirtualClock::new(), POLICY, [(id, ())]);
        let want = format!("{{\"batchItemFailures\":[{{\"itemIdentifier\":{json}}}]}}");
        assert_eq!(batch.finish().response().to_string(), want, "{id:?}");
    }
}

#[test]
fn an_attempt_at_a_batch_takes_one_permit_per_guard() {
    let (budget, breaker) = guards(10, RecordingBreaker::new(u32::MAX, ms(1)));
    let mut batch = Batch::with_timer(VirtualClock::new(), guarded(POLICY, &budget, &breaker), items(100));
    let attempts = run(&mut batch, |attempt, item| (attempt == 1 && item > 50).then_some(Outcome::TRANSIENT));
    assert_eq!((attempts.len(), batch.finish().succeeded()), (2, 100));
    assert_eq!((budget.snapshot().retries_left, budget.in_flight(), breaker.in_flight()), (9, 0, 0));
    assert_eq!(breaker.snapshot().recorded, [Outcome::TRANSIENT, Outcome::Success]);
    assert_eq!(budget.snapshot().recorded, breaker.snapshot().recorded);
}

#[test]
fn the_worst_item_decides_the_outcome_of_the_attempt() {
    let floor = |length| Some(ServerHint::AtLeast(ms(length)));
    let failed = |kind, hint| Outcome::Failed { kind, hint };
    let (local, not_processed) = (failed(FailureKind::LocalExhaustion, None), Outcome::NotProcessed);
    let do_not_retry = Some(ServerHint::DoNotRetry);
    let failed_for_good = failed(FailureKind::LocalExhaustion, do_not_retry);
    for (items, expected) in [
        (vec![None, None], Outcome::Success),
        (vec![None, Some(Outcome::Permanent)], Outcome::Permanent),
        (vec![None, Some(Outcome::Cancelled)], Outcome::Cancelled),
        (vec![Some(Outcome::Permanent), Some(Outcome::Cancelled)], Outcome::Permanent),
        (vec![Some(Outcome::Permanent), Some(local)], local),
        (vec![Some(local), Some(Outcome::TRANSIENT)], Outcome::TRANSIENT),
        (vec![Some(Outcome::TRANSIENT), Some(Outcome::throttled(None))], Outcome::throttled(None)),
        (
            vec![Some(Outcome::throttled(floor(5))), Some(failed(FailureKind::LocalExhaustion, floor(9)))],
            Outcome::throttled(floor(9)),
        ),
        (
            vec![Some(Outcome::throttled(floor(9))), Some(failed(FailureKind::LocalExhaustion, floor(5)))],
            Outcome::throttled(floor(9)),
        ),
        (
            vec![Some(Outcome::throttled(Some(ServerHint::DoNotRetry))), Some(Outcome::throttled(floor(5)))],
            Outcome::throttled(floor(5)),
        ),
        (vec![Some(Outcome::throttled(do_not_retry)), None], Outcome::throttled(do_not_retry)),
        (vec![Some(local), Some(failed_for_good)], local),
        (
            vec![Some(Outcome::throttled(do_not_retry)), Some(Outcome::Permanent), Some(failed_for_good)],
            Outcome::throttled(do_not_retry),
        ),
        (vec![Some(failed_for_good), Some(not_processed)], Outcome::TRANSIENT),
        (vec![Some(Outcome::throttled(do_not_retry)), Some(not_processed)], Outcome::throttled(None)),
        (vec![Some(not_processed), Some(not_processed)], not_processed),
        (vec![Some(not_processed), None], Outcome::TRANSIENT),
        (vec![Some(not_processed), Some(Outcome::throttled(floor(5)))], Outcome::throttled(floor(5))),
        (vec![Some(Outcome::throttled(floor(5))), Some(not_processed)], Outcome::throttled(floor(5))),
    ] {
        let breaker = Arc::new(RecordingBreaker::new(u32::MAX, ms(1)));
        let retrier = Retrier::new(POLICY).shared_guard(breaker.clone());
        let mut batch = Batch::with_timer(VirtualClock::new(), retrier, (0..items.len()).map(|n| (n.to_string(), n)));
        run(&mut batch, |attempt, item| items[item].filter(|_| attempt == 1));
        // A batch that was not processed is repeated at once, and the guards are told of the repeat alone.
        let told = if expected == not_processed { Outcome::Success } else { expected };
        assert_eq!(breaker.snapshot().recorded[0], told, "{items:?}");
        drop(batch);
        assert_eq!(breaker.in_flight(), 0);
    }
}

#[test]
fn listeners_receive_the_error_of_the_item_that_decided_or_else_the_first() {
    let do_not_retry = Some(Outcome::throttled(Some(ServerHint::DoNotRetry)));
    let (permanent, transient) = (Some(Outcome::Permanent), Some(Outcome::TRANSIENT));
    let not_processed = Some(Outcome::NotProcessed);
    for (outcomes, want) in [
        ([None, permanent, transient], 2),
        ([None, transient, transient], 1),
        // Combined from both, so it is the outcome of neither.
        ([None, do_not_retry, not_processed], 1),
        ([None, not_processed, do_not_retry], 1),
        ([not_processed, None, None], 0),
    ] {
        let errors = Arc::new(Mutex::new(Vec::new()));
        let recorded = Arc::clone(&errors);
        let retrier = Retrier::new(POLICY)
            .on_event(move |event| recorded.lock().unwrap().push(event.error_as::<usize>().copied()));
        let mut batch = Batch::with_timer(VirtualClock::new(), retrier, items(3));
        assert!(block_on(batch.next_attempt()));
        for (item, outcome) in outcomes.into_iter().enumerate() {
            if let Some(outcome) = outcome {
                batch.failed(&format!("id-{item}"), outcome, item).unwrap();
            }
        }
        block_on(batch.next_attempt());
        assert_eq!(errors.lock().unwrap()[0], Some(want), "{outcomes:?}");
    }
}

#[test]
fn unprocessed_items_are_resent_at_once_and_uncounted() {
    let clock = VirtualClock::new();
    let mut batch = Batch::with_timer(clock.clone(), POLICY, items(2));
    let attempts = run(&mut batch, |_, _| Some(Outcome::NotProcessed));
    assert_eq!((attempts.len(), clock.elapsed()), (4, ms(20)));
    assert_eq!(failed(&batch.finish(), 0).attempts, 3);
}

#[test]
fn do_not_retry_for_one_item_does_not_stop_the_others() {
    let mut batch = Batch::with_timer(VirtualClock::new(), POLICY, items(2));
    let attempts = run(&mut batch, |attempt, item| match (attempt, item) {
        (1, 0) => Some(Outcome::throttled(Some(ServerHint::DoNotRetry))),
        (1, _) => Some(Outcome::TRANSIENT),
        _ => None,
    });
    let finished = batch.finish();
    assert_eq!((attempts, finished.succeeded()), (vec![vec![0, 1], vec![1]], 1));
    assert_eq!((ids(&finished), failed(&finished, 0).stop), (vec!["id-0"], StopReason::Hint));
}

#[test]
fn items_out_of_attempts_are_dead_lettered() {
    let dead_letters = Arc::new(Mutex::new(Vec::new()));
    let letters = dead_letters.clone();
    let mut batch = Batch::with_timer(VirtualClock::new(), POLICY, items(4))
        .attempts_before(|item| if *item == 1 { 4 } else { 0 })
        .dead_letter(NonZeroU32::new(5).unwrap(), move |failed: &Failed<usize, u32>| {
            letters.lock().unwrap().push(failed.clone())
        });
    let attempts = run(&mut batch, |_, item| match item {
        0 => None,
        2 => Some(Outcome::Permanent),
        _ => Some(Outcome::TRANSIENT),
    });
    assert_eq!(attempts, [vec![0, 1, 2, 3], vec![3], vec![3]]);
    let finished = batch.finish();
    let dead_letters: Vec<_> =
        dead_letters.lock().unwrap().iter().map(|failed| (failed.item, failed.attempts, failed.stop)).collect();
    assert_eq!(dead_letters, [(1, 5, StopReason::Attempts), (2, 1, StopReason::Permanent)]);
    assert_eq!((finished.succeeded(), finished.dead_lettered(), ids(&finished)), (1, 2, vec!["id-3"]));
}

#[test]
fn no_attempt_starts_shortly_before_the_lease_expires() {
    const MANY: Policy = policy!(constant(ms(10)).jitter(Jitter::None).max_attempts(99));
    for (lease, attempts) in [(54, 0), (55, 1), (64, 1), (65, 2), (74, 2), (75, 3)] {
        let clock = VirtualClock::new();
        clock.advance(ms(50));
        let mut batch = Batch::with_timer(clock.clone(), MANY, items(1)).lease(at(ms(lease)), ms(5));
        let attempts_made = run(&mut batch, |_, _| Some(Outcome::TRANSIENT)).len();
        let finished = batch.finish();
        assert_eq!((attempts_made, failed(&finished, 0).stop), (attempts, StopReason::Deadline), "lease of {lease} ms");
        assert_eq!(clock.elapsed(), ms(50 + 10 * (attempts as u64).saturating_sub(1)), "no sleep before the stop");
    }
}

#[test]
fn reporting_an_id_that_was_not_sent_is_an_error() {
    let mut batch = Batch::<_, (), _>::with_timer(VirtualClock::new(), POLICY, items(2));
    let unknown = |id: &str| Err(UnknownItem(id.to_owned()));
    assert_eq!(batch.failed("id-0", Outcome::TRANSIENT, ()), unknown("id-0"));
    assert!(block_on(batch.next_attempt()));
    assert_eq!(batch.failed("id-1", Outcome::TRANSIENT, ()), Ok(()));
    assert_eq!(batch.failed("id-0", Outcome::Permanent, ()), Ok(()));
    assert_eq!(batch.failed("id-2", Outcome::TRANSIENT, ()), unknown("id-2"));
    assert!(block_on(batch.next_attempt()));
    assert_eq!(batch.failed("id-0", Outcome::TRANSIENT, ()), unknown("id-0"));
    assert_eq!(batch.failed("id-1", Outcome::Permanent, ()), Ok(()));
    assert!(!block_on(batch.next_attempt()));
    assert_eq!(batch.failed("id-1", Outcome::TRANSIENT, ()), unknown("id-1"));
    assert_eq!(
        UnknownItem("x".to_owned()).to_string(),
        "unknown item id \"x\"; report only ids of `entries()`, and only during an attempt"
    );
}

#[test]
fn all_failed_fails_every_item() {
    let mut batch = Batch::with_timer(VirtualClock::new(), POLICY, items(3));
    while block_on(batch.next_attempt()) {
        batch.all_failed(Outcome::TRANSIENT, |item| *item);
    }
    let finished = batch.finish();
    assert_eq!(
        finished.failed().map(|failed| (failed.error, failed.attempts)).collect::<Vec<_>>(),
        [(Some(0), 3), (Some(1), 3), (Some(2), 3)]
    );
}

#[test]
fn an_empty_batch_makes_no_attempt() {
    let breaker = Arc::new(RecordingBreaker::new(1, ms(1)));
    let retrier = Retrier::new(POLICY).shared_guard(breaker.clone());
    let mut batch: Batch<usize, u32, _> = Batch::with_timer(VirtualClock::new(), retrier, items(0));
    assert!(!block_on(batch.next_attempt()));
    assert_eq!((batch.finish().succeeded(), breaker.snapshot().recorded.len()), (0, 0));
}

#[test]
fn an_open_breaker_rejects_the_batch_and_returns_its_items() {
    let (budget, breaker) = guards(9, RecordingBreaker::open(ms(50)));
    let mut batch: Batch<usize, u32, _> =
        Batch::with_timer(VirtualClock::new(), guarded(POLICY, &budget, &breaker), items(2));
    assert!(!block_on(batch.next_attempt()));
    let finished = batch.finish();
    assert_eq!(
        (failed(&finished, 1).stop, failed(&finished, 1).attempts, budget.in_flight()),
        (StopReason::BREAKER, 0, 0)
    );
}

#[test]
fn a_batch_finished_early_releases_its_permits() {
    let timer = PendingTimer::default();
    let (budget, breaker) = guards(9, RecordingBreaker::new(u32::MAX, ms(1)));
    let retrier = guarded(POLICY, &budget, &breaker);
    // During an attempt: its items may have succeeded, and count as failed.
    let mut batch: Batch<usize, u32, _> = Batch::with_timer(timer.clone(), &retrier, items(2));
    assert!(block_on(batch.next_attempt()));
    let finished = batch.finish();
    assert_eq!((finished.succeeded(), ids(&finished), budget.in_flight()), (0, vec!["id-0", "id-1"], 0));
    assert_eq!(breaker.snapshot().recorded, [Outcome::Cancelled]);
    // During a sleep, which can be interrupted and resumed.
    let mut batch = Batch::with_timer(timer.clone(), &retrier, items(2));
    assert!(block_on(batch.next_attempt()));
    batch.failed("id-1", Outcome::TRANSIENT, 7).unwrap();
    assert!(poll_times(pin!(batch.next_attempt()), 1).is_pending());
    assert_eq!(budget.snapshot().retries_left, 8);
    assert!(poll_times(pin!(batch.next_attempt()), 1).is_ready());
    batch.failed("id-1", Outcome::TRANSIENT, 8).unwrap();
    assert!(poll_times(pin!(batch.next_attempt()), 1).is_pending());
    let finished = batch.finish();
    assert_eq!((finished.succeeded(), failed(&finished, 0).error, failed(&finished, 0).attempts), (1, Some(8), 2));
    // The retry that started is charged; the permit of the other is released.
    assert_eq!((budget.snapshot().retries_left, budget.in_flight(), breaker.in_flight()), (8, 0, 0));
    assert_eq!(timer.now(), at(ms(10)));
}

#[cfg(feature = "serde")]
proptest! {
    /// Control characters, quotes and backslashes are over-represented.
    #[test]
    fn display_and_serde_render_identical_responses(
        ids in vec(
            vec(prop_oneof![any::<char>(), (0_u8..0x80).prop_map(char::from), Just('"'), Just('\\')], 0..20),
            0..5,
        )
    ) {
        let ids: Vec<String> = ids.into_iter().map(|id| id.into_iter().collect()).collect();
        let items = ids.iter().map(|id| (id.as_str(), ()));
        let batch: Batch<(), (), _> = Batch::with_timer(VirtualClock::new(), POLICY, items);
        let finished = batch.finish();
        let by_hand = finished.response().to_string();
        let by_serde = serde_json::to_string(&finished.response()).unwrap();
        prop_assert_eq!(&by_hand, &by_serde);
        let read: serde_json::Value = serde_json::from_str(&by_hand).unwrap();
        let failures = read["batchItemFailures"].as_array().unwrap();
        let read = failures.iter().map(|failure| failure["itemIdentifier"].as_str().unwrap());
        prop_assert!(read.eq(ids.iter().map(String::as_str)));
    }
}

proptest! {
    /// Every item succeeds, is dead-lettered or fails exactly once, and none is sent again after it succeeded.
    #[test]
    fn no_item_is_lost_or_succeeds_twice(fates in vec(vec(0_u8..8, 6), 0..30), leave_after in 0_u32..6) {
        const LONG: Policy = policy!(constant(ms(10)).max_attempts(5));
        let fate = |attempt: u32, item: usize| match fates[item][attempt as usize] {
            0..=2 => None,
            3 => Some(Outcome::Permanent),
            4 => Some(Outcome::throttled(Some(ServerHint::AtLeast(ms(20))))),
            5 => Some(Outcome::NotProcessed),
            6 => Some(Outcome::throttled(Some(ServerHint::DoNotRetry))),
            _ => Some(Outcome::TRANSIENT),
        };
        let budget = Arc::new(RecordingBudget::new(3));
        let dead_letters = Arc::new(Mutex::new(Vec::new()));
        let letters = dead_letters.clone();
        let retrier = Retrier::new(LONG).shared_guard(budget.clone());
        let mut batch = Batch::with_timer(VirtualClock::new(), retrier, items(fates.len()))
            .dead_letter(NonZeroU32::new(3).unwrap(), move |failed: &Failed<usize, ()>| {
                letters.lock().unwrap().push(failed.item);
            });
        let mut succeeded = Vec::new();
        let mut attempts = 0;
        while block_on(batch.next_attempt()) {
            let sent: Vec<_> = batch.entries().iter().map(|entry| entry.item).collect();
            prop_assert!(sent.iter().all(|item| !succeeded.contains(item)), "sent again after it succeeded");
            if attempts == leave_after {
                break;
            }
            for item in sent {
                match fate(attempts, item) {
                    Some(outcome) => batch.failed(&format!("id-{item}"), outcome, ()).unwrap(),
                    None => succeeded.push(item),
                }
            }
            attempts += 1;
        }
        let finished = batch.finish();
        let dead = dead_letters.lock().unwrap().clone();
        prop_assert_eq!((finished.succeeded(), finished.dead_lettered()), (succeeded.len(), dead.len()));
        let failed = finished.failed().map(|failed| failed.item);
        let mut all: Vec<_> = succeeded.into_iter().chain(dead).chain(failed).collect();
        all.sort_unstable();
        prop_assert_eq!(all, (0..fates.len()).collect::<Vec<_>>());
        prop_assert_eq!(budget.in_flight(), 0);
    }
}
