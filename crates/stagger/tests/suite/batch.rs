//! Batches: only the failed are sent again, nothing is lost, and no round is begun in vain.

use core::num::NonZeroU32;
use core::pin::pin;
use core::time::Duration;
use std::sync::{Arc, Mutex};

use futures_lite::future::block_on;
use proptest::collection::vec;
use proptest::prelude::*;
use stagger::batch::{Batch, Failed, UnknownItem};
use stagger::testing::VirtualClock;
use stagger::{FailureKind, Guards, Instant, Outcome, Policy, ServerHint, StopReason, policy, time::Clock};

use super::support::{PendingTimer, RecordingBreaker, RecordingBudget, ms, poll_times};

const POLICY: Policy = policy!(constant(ms(10)).jitter(Jitter::None).max_attempts(3));

type Items = Vec<(String, usize)>;

fn items(count: usize) -> Items {
    (0..count).map(|n| (format!("id-{n}"), n)).collect()
}

fn ids<T, E>(failed: &[Failed<T, E>]) -> Vec<&str> {
    failed.iter().map(|failed| failed.id.as_str()).collect()
}

fn at(length: Duration) -> Instant {
    Instant::ZERO.saturating_add(length)
}

/// Runs it to its end; says after which round which item fails with what. Gives the items of each round.
fn run(
    batch: &mut Batch<'_, usize, u32, VirtualClock>,
    mut fate: impl FnMut(u32, usize) -> Option<Outcome>,
) -> Vec<Vec<usize>> {
    let mut rounds = Vec::new();
    while block_on(batch.next_attempt()) {
        let round = rounds.len() as u32 + 1;
        let sent: Vec<_> = batch.entries().iter().map(|entry| (entry.id.clone(), entry.item)).collect();
        for (id, item) in &sent {
            if let Some(outcome) = fate(round, *item) {
                batch.failed(id, outcome, round).unwrap();
            }
        }
        rounds.push(sent.into_iter().map(|(_, item)| item).collect());
    }
    rounds
}

#[test]
fn only_the_failed_are_sent_again() {
    let clock = VirtualClock::new();
    let mut batch = Batch::with_timer(clock.clone(), &POLICY, items(6));
    let rounds = run(&mut batch, |round, item| (item as u32 >= 2 * round).then_some(Outcome::TRANSIENT));
    assert_eq!(rounds, [vec![0, 1, 2, 3, 4, 5], vec![2, 3, 4, 5], vec![4, 5]]);
    assert_eq!(clock.elapsed(), ms(20));
    let finished = batch.finish();
    assert_eq!((finished.succeeded, finished.dead_lettered, finished.failed.len()), (6, 0, 0));
    assert_eq!(finished.response().to_string(), r#"{"batchItemFailures":[]}"#);
}

#[test]
fn what_never_works_comes_back_with_its_last_error() {
    let mut batch = Batch::with_timer(VirtualClock::new(), &POLICY, items(3));
    run(&mut batch, |_, item| match item {
        0 => None,
        1 => Some(Outcome::Permanent),
        _ => Some(Outcome::TRANSIENT),
    });
    let finished = batch.finish();
    let failed: Vec<_> =
        finished.failed.iter().map(|failed| (failed.item, failed.attempts, failed.error, failed.stop)).collect();
    assert_eq!(failed, [(1, 1, Some(1), StopReason::Permanent), (2, 3, Some(3), StopReason::Attempts)]);
    assert_eq!(
        finished.response().to_string(),
        r#"{"batchItemFailures":[{"itemIdentifier":"id-1"},{"itemIdentifier":"id-2"}]}"#
    );
}

#[test]
fn ids_are_escaped_as_json_wants_it() {
    for (id, json) in [
        ("plain", r#""plain""#),
        ("a\"b\\c/d", r#""a\"b\\c/d""#),
        ("\u{0}\n\r\t\u{8}\u{c}\u{b}\u{1f}\u{7f}", "\"\\u0000\\n\\r\\t\\b\\f\\u000b\\u001f\u{7f}\""),
        ("é😀\u{2028}", "\"é😀\u{2028}\""),
    ] {
        let batch: Batch<'_, (), (), _> = Batch::with_timer(VirtualClock::new(), &POLICY, [(id, ())]);
        let want = format!("{{\"batchItemFailures\":[{{\"itemIdentifier\":{json}}}]}}");
        assert_eq!(batch.finish().response().to_string(), want, "{id:?}");
    }
}

#[test]
fn one_round_is_one_attempt_and_one_payment() {
    let (bank, gate) = (RecordingBudget::new(10), RecordingBreaker::new(u32::MAX, ms(1)));
    let mut batch =
        Batch::with_timer(VirtualClock::new(), &POLICY, items(100)).guards(Guards::none().budget(&bank).breaker(&gate));
    let rounds = run(&mut batch, |round, item| (round == 1 && item > 50).then_some(Outcome::TRANSIENT));
    assert_eq!((rounds.len(), batch.finish().succeeded), (2, 100));
    assert_eq!((bank.snapshot().retries_left, bank.in_flight(), gate.in_flight()), (9, 0, 0));
    assert_eq!(gate.snapshot().recorded, [Outcome::TRANSIENT, Outcome::Success]);
    assert_eq!(bank.snapshot().recorded, gate.snapshot().recorded);
}

#[test]
fn a_round_is_as_bad_as_its_worst_item() {
    let floor = |length| Some(ServerHint::AtLeast(ms(length)));
    let failed = |kind, hint| Outcome::Failed { kind, hint };
    let (local, unprocessed) = (failed(FailureKind::LocalExhaustion, None), Outcome::NotProcessed);
    for (items, whole) in [
        (vec![None, None], Outcome::Success),
        (vec![None, Some(Outcome::Permanent)], Outcome::Permanent),
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
        (vec![Some(unprocessed), Some(unprocessed)], unprocessed),
        (vec![Some(unprocessed), None], Outcome::TRANSIENT),
        (vec![Some(unprocessed), Some(Outcome::throttled(floor(5)))], Outcome::throttled(floor(5))),
        (vec![Some(Outcome::throttled(floor(5))), Some(unprocessed)], Outcome::throttled(floor(5))),
    ] {
        let gate = RecordingBreaker::new(u32::MAX, ms(1));
        let mut batch = Batch::with_timer(VirtualClock::new(), &POLICY, (0..items.len()).map(|n| (n.to_string(), n)))
            .guards(Guards::none().breaker(&gate));
        run(&mut batch, |round, item| items[item].filter(|_| round == 1));
        assert_eq!(gate.snapshot().recorded[0], whole, "{items:?}");
        drop(batch);
        assert_eq!(gate.in_flight(), 0);
    }
}

#[test]
fn what_was_not_processed_at_all_is_sent_again_at_once_and_does_not_count() {
    let clock = VirtualClock::new();
    let mut batch = Batch::with_timer(clock.clone(), &POLICY, items(2));
    let rounds = run(&mut batch, |_, _| Some(Outcome::NotProcessed));
    assert_eq!((rounds.len(), clock.elapsed()), (4, ms(20)));
    assert_eq!(batch.finish().failed[0].attempts, 3);
}

#[test]
fn one_item_that_shall_never_come_again_does_not_stop_the_others() {
    let mut batch = Batch::with_timer(VirtualClock::new(), &POLICY, items(2));
    let rounds = run(&mut batch, |round, item| match (round, item) {
        (1, 0) => Some(Outcome::throttled(Some(ServerHint::DoNotRetry))),
        (1, _) => Some(Outcome::TRANSIENT),
        _ => None,
    });
    let finished = batch.finish();
    assert_eq!((rounds, finished.succeeded), (vec![vec![0, 1], vec![1]], 1));
    assert_eq!((ids(&finished.failed), finished.failed[0].stop), (vec!["id-0"], StopReason::Hint));
}

#[test]
fn an_item_over_its_attempts_is_a_dead_letter() {
    let dead = Arc::new(Mutex::new(Vec::new()));
    let letters = dead.clone();
    let mut batch = Batch::with_timer(VirtualClock::new(), &POLICY, items(4))
        .attempts_before(|item| if *item == 1 { 4 } else { 0 })
        .dead_letter(NonZeroU32::new(5).unwrap(), move |failed: Failed<usize, u32>| {
            letters.lock().unwrap().push(failed)
        });
    let rounds = run(&mut batch, |_, item| match item {
        0 => None,
        2 => Some(Outcome::Permanent),
        _ => Some(Outcome::TRANSIENT),
    });
    assert_eq!(rounds, [vec![0, 1, 2, 3], vec![3], vec![3]]);
    let finished = batch.finish();
    let dead: Vec<_> = dead.lock().unwrap().iter().map(|failed| (failed.item, failed.attempts, failed.stop)).collect();
    assert_eq!(dead, [(1, 5, StopReason::Attempts), (2, 1, StopReason::Permanent)]);
    assert_eq!((finished.succeeded, finished.dead_lettered, ids(&finished.failed)), (1, 2, vec!["id-3"]));
}

#[test]
fn no_round_begins_when_the_lease_is_about_to_end() {
    const PATIENT: Policy = policy!(constant(ms(10)).jitter(Jitter::None).max_attempts(99));
    for (lease, rounds) in [(54, 0), (55, 1), (64, 1), (65, 2), (74, 2), (75, 3)] {
        let clock = VirtualClock::new();
        clock.advance(ms(50));
        let mut batch = Batch::with_timer(clock.clone(), &PATIENT, items(1)).lease(at(ms(lease)), ms(5));
        let made = run(&mut batch, |_, _| Some(Outcome::TRANSIENT)).len();
        let finished = batch.finish();
        assert_eq!((made, finished.failed[0].stop), (rounds, StopReason::Elapsed), "lease of {lease} ms");
        assert_eq!(clock.elapsed(), ms(50 + 10 * (rounds as u64).saturating_sub(1)), "it waited in vain");
    }
}

#[test]
fn an_id_that_was_not_sent_is_an_error() {
    let mut batch = Batch::<_, (), _>::with_timer(VirtualClock::new(), &POLICY, items(2));
    let unknown = |id: &str| Err(UnknownItem(id.to_owned()));
    assert_eq!(batch.failed("id-0", Outcome::TRANSIENT, ()), unknown("id-0"));
    assert!(block_on(batch.next_attempt()));
    assert_eq!(batch.failed("id-1", Outcome::TRANSIENT, ()), Ok(()));
    assert_eq!(batch.failed("id-0", Outcome::Permanent, ()), Ok(()));
    assert_eq!(batch.failed("id-2", Outcome::TRANSIENT, ()), unknown("id-2"));
    assert!(block_on(batch.next_attempt()));
    assert_eq!(batch.failed("id-0", Outcome::TRANSIENT, ()), unknown("id-0"));
    assert_eq!(
        UnknownItem("x".to_owned()).to_string(),
        "unknown item id \"x\"; report only ids of `entries()`, and only during an attempt"
    );
}

#[test]
fn a_request_that_fails_as_a_whole_fails_every_item() {
    let mut batch = Batch::with_timer(VirtualClock::new(), &POLICY, items(3));
    while block_on(batch.next_attempt()) {
        batch.all_failed(Outcome::TRANSIENT, |item| *item);
    }
    let finished = batch.finish();
    assert_eq!(
        finished.failed.iter().map(|failed| (failed.error, failed.attempts)).collect::<Vec<_>>(),
        [(Some(0), 3), (Some(1), 3), (Some(2), 3)]
    );
}

#[test]
fn an_empty_batch_makes_no_round() {
    let gate = RecordingBreaker::new(1, ms(1));
    let mut batch: Batch<'_, usize, u32, _> =
        Batch::with_timer(VirtualClock::new(), &POLICY, items(0)).guards(Guards::none().breaker(&gate));
    assert!(!block_on(batch.next_attempt()));
    assert_eq!((batch.finish().succeeded, gate.snapshot().recorded.len()), (0, 0));
}

#[test]
fn an_open_breaker_refuses_the_batch_and_gives_it_back() {
    let (bank, gate) = (RecordingBudget::new(9), RecordingBreaker::open(ms(50)));
    let mut batch: Batch<'_, usize, u32, _> =
        Batch::with_timer(VirtualClock::new(), &POLICY, items(2)).guards(Guards::none().budget(&bank).breaker(&gate));
    assert!(!block_on(batch.next_attempt()));
    let finished = batch.finish();
    assert_eq!((finished.failed[1].stop, finished.failed[1].attempts, bank.in_flight()), (StopReason::Breaker, 0, 0));
}

#[test]
fn a_batch_that_ends_in_the_middle_gives_everything_back() {
    let timer = PendingTimer::default();
    let (bank, gate) = (RecordingBudget::new(9), RecordingBreaker::new(u32::MAX, ms(1)));
    let guards = Guards::none().budget(&bank).breaker(&gate);
    // In a round: what is in it may have worked, and counts as failed.
    let mut batch: Batch<'_, usize, u32, _> = Batch::with_timer(timer.clone(), &POLICY, items(2)).guards(guards);
    assert!(block_on(batch.next_attempt()));
    let finished = batch.finish();
    assert_eq!((finished.succeeded, ids(&finished.failed), bank.in_flight()), (0, vec!["id-0", "id-1"], 0));
    assert_eq!(gate.snapshot().recorded, [Outcome::Cancelled]);
    // In a wait, which can be interrupted and goes on.
    let mut batch = Batch::with_timer(timer.clone(), &POLICY, items(2)).guards(guards);
    assert!(block_on(batch.next_attempt()));
    batch.failed("id-1", Outcome::TRANSIENT, 7).unwrap();
    assert!(poll_times(pin!(batch.next_attempt()), 1).is_pending());
    assert_eq!(bank.snapshot().retries_left, 8);
    timer.clock.advance(ms(10));
    assert!(poll_times(pin!(batch.next_attempt()), 1).is_ready());
    batch.failed("id-1", Outcome::TRANSIENT, 8).unwrap();
    assert!(poll_times(pin!(batch.next_attempt()), 1).is_pending());
    let finished = batch.finish();
    assert_eq!((finished.succeeded, finished.failed[0].error, finished.failed[0].attempts), (1, Some(8), 2));
    // The retry that was made is paid for, the one that was not is given back.
    assert_eq!((bank.snapshot().retries_left, bank.in_flight(), gate.in_flight()), (8, 0, 0));
    assert_eq!(timer.now(), at(ms(10)));
}

#[cfg(feature = "serde")]
proptest! {
    /// Control characters, quotes and backslashes more often than chance would have them.
    #[test]
    fn a_response_is_the_same_to_the_byte_however_it_is_printed(
        ids in vec(vec(prop_oneof![any::<char>(), (0_u8..0x80).prop_map(char::from), Just('"'), Just('\\')], 0..20), 0..5)
    ) {
        let ids: Vec<String> = ids.into_iter().map(|id| id.into_iter().collect()).collect();
        let batch: Batch<'_, (), (), _> = Batch::with_timer(VirtualClock::new(), &POLICY, ids.iter().map(|id| (id.as_str(), ())));
        let finished = batch.finish();
        let (by_hand, by_serde) = (finished.response().to_string(), serde_json::to_string(&finished.response()).unwrap());
        prop_assert_eq!(&by_hand, &by_serde);
        let read: serde_json::Value = serde_json::from_str(&by_hand).unwrap();
        let read = read["batchItemFailures"].as_array().unwrap().iter().map(|failure| failure["itemIdentifier"].as_str().unwrap());
        prop_assert!(read.eq(ids.iter().map(String::as_str)));
    }
}

proptest! {
    /// Whatever happens to it: every item works, dies or fails, exactly once, and none is sent after it has worked.
    #[test]
    fn no_item_is_lost_or_done_twice(fates in vec(vec(0_u8..8, 6), 0..30), leave_after in 0_u32..6) {
        const LONG: Policy = policy!(constant(ms(10)).max_attempts(5));
        let fate = |round: u32, item: usize| match fates[item][round as usize] {
            0..=2 => None,
            3 => Some(Outcome::Permanent),
            4 => Some(Outcome::throttled(Some(ServerHint::AtLeast(ms(20))))),
            5 => Some(Outcome::NotProcessed),
            6 => Some(Outcome::throttled(Some(ServerHint::DoNotRetry))),
            _ => Some(Outcome::TRANSIENT),
        };
        let bank = RecordingBudget::new(3);
        let dead = Arc::new(Mutex::new(Vec::new()));
        let letters = dead.clone();
        let mut batch = Batch::with_timer(VirtualClock::new(), &LONG, items(fates.len()))
            .guards(Guards::none().budget(&bank))
            .dead_letter(NonZeroU32::new(3).unwrap(), move |failed: Failed<usize, ()>| letters.lock().unwrap().push(failed.item));
        let mut worked = Vec::new();
        let mut rounds = 0;
        while block_on(batch.next_attempt()) {
            let sent: Vec<_> = batch.entries().iter().map(|entry| entry.item).collect();
            prop_assert!(sent.iter().all(|item| !worked.contains(item)), "sent again after it had worked");
            if rounds == leave_after {
                break;
            }
            for item in sent {
                match fate(rounds, item) {
                    Some(outcome) => batch.failed(&format!("id-{item}"), outcome, ()).unwrap(),
                    None => worked.push(item),
                }
            }
            rounds += 1;
        }
        let finished = batch.finish();
        prop_assert_eq!((finished.succeeded, finished.dead_lettered), (worked.len(), dead.lock().unwrap().len()));
        let failed = finished.failed.iter().map(|failed| failed.item);
        let mut all: Vec<_> = worked.into_iter().chain(dead.lock().unwrap().iter().copied()).chain(failed).collect();
        all.sort_unstable();
        prop_assert_eq!(all, (0..fates.len()).collect::<Vec<_>>());
        prop_assert_eq!(bank.in_flight(), 0);
    }
}
