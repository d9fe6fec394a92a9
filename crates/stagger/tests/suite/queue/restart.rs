//! A consumer that is shut down or killed and then restarted loses no items.

use core::time::Duration;
use std::sync::{Arc, Mutex};

use futures_lite::future::block_on;
use proptest::collection::vec;
use proptest::prelude::*;
use stagger::observe::Action;
use stagger::queue::{GiveUpReason, Pending, RetryQueue};
use stagger::testing::VirtualClock;
use stagger::time::{Clock, Sleep, SystemClock, Tokio};
use stagger::{Outcome, Policy, Retrier, Seed, StopReason, policy};

use super::super::support::{RecordingBudget, ms};

const POLICY: Policy = policy!(constant(ms(10)).jitter(Jitter::None).max_attempts(3));
const JITTERED: Policy = policy!(exponential(ms(100), secs(10)).max_attempts(6));

/// Pushes an item whose first attempt has failed.
fn push_failed<T, S: Sleep + Clone>(queue: &mut RetryQueue<T, S>, item: T) {
    let job = queue.begin(item).unwrap();
    queue.push_retry(job, Outcome::TRANSIENT).unwrap();
}

/// Restores the pending items in a new queue whose clock shows another time.
fn restarted<T: core::fmt::Debug>(queue: RetryQueue<T, VirtualClock>, policy: Policy) -> RetryQueue<T, VirtualClock> {
    let clock = VirtualClock::new();
    clock.advance(Duration::from_secs(86_400));
    let mut restored = RetryQueue::with_timer(clock, policy);
    for pending in queue.into_pending() {
        restored.restore(pending).unwrap();
    }
    restored
}

#[test]
fn into_pending_returns_items_in_order_with_their_remaining_wait() {
    let clock = VirtualClock::new();
    let mut queue = RetryQueue::with_timer(clock.clone(), POLICY);
    push_failed(&mut queue, "tried");
    let key = queue.push("new", ms(3)).unwrap();
    assert_eq!((queue.len(), queue.get(key)), (2, Some(&"new")));
    assert!(queue.reschedule(key, ms(60)));
    assert_eq!(queue.next_due(), Some(clock.now().saturating_add(ms(10))));
    clock.advance(ms(4));
    assert_eq!(queue.pending(key).map(|pending| (*pending.item, pending.left)), Some(("new", ms(56))));
    let pending: Vec<_> = queue.into_pending().collect();
    let parts = |pending: &Pending<&'static str>| (pending.item, pending.left, pending.paused.attempt());
    assert_eq!(pending.iter().map(parts).collect::<Vec<_>>(), [("tried", ms(6), 1), ("new", ms(56), 0)]);

    let advanced: Vec<_> = pending.into_iter().map(|pending| pending.advanced_by(ms(20))).collect();
    assert_eq!(advanced.iter().map(parts).collect::<Vec<_>>(), [("tried", ms(0), 1), ("new", ms(36), 0)]);
}

proptest! {
    /// Restarts after any of the attempts must not change the delays or the number of attempts.
    #[test]
    fn restarts_do_not_change_delays_or_attempts(restarts in vec(any::<bool>(), 6), seed: u64) {
        let seed = Seed::new(seed);
        let mut queue = RetryQueue::with_timer(VirtualClock::new(), Retrier::new(JITTERED).seed(seed));
        queue.push("an item", Duration::ZERO).unwrap();
        let (mut delays, mut attempts) = (Vec::new(), 0);
        while let Some(due) = block_on(queue.next()) {
            let job = due.unwrap();
            attempts += 1;
            prop_assert_eq!(job.number(), attempts);
            if let Ok(queued) = queue.push_retry(job, Outcome::TRANSIENT) {
                delays.push(queued.after);
                if restarts[attempts as usize] {
                    queue = restarted(queue, JITTERED);
                }
            }
        }
        prop_assert_eq!(delays, JITTERED.delays(seed.for_call(1)).collect::<Vec<_>>());
    }
}

#[test]
fn max_elapsed_continues_after_a_restart() {
    const LIMITED: Policy = policy!(constant(ms(10)).jitter(Jitter::None).max_attempts(99).max_elapsed(ms(35)));
    for restarts in [false, true] {
        let mut queue = RetryQueue::with_timer(VirtualClock::new(), LIMITED);
        push_failed(&mut queue, ());
        let stopped = loop {
            if restarts {
                queue = restarted(queue, LIMITED);
            }
            let job = block_on(queue.next()).unwrap().unwrap();
            if let Err(stopped) = queue.push_retry(job, Outcome::TRANSIENT) {
                break stopped;
            }
        };
        assert_eq!(
            (stopped.reason, stopped.attempts),
            (GiveUpReason::Stop(StopReason::Elapsed), 4),
            "restarts: {restarts}"
        );
    }
}

/// The worker persists the job before the attempt, and the attempt kills it: nothing is dropped in an orderly way.
#[test]
fn an_item_that_kills_every_worker_is_given_up_after_max_attempts() {
    for policy in [POLICY, JITTERED] {
        let max_attempts = policy.max_attempts().unwrap().get();
        let mut on_disk = Pending::new(
            "poison",
            Duration::ZERO,
            stagger::machine::RetryState::new().pause(Seed::new(0), Tokio.now()),
        );
        for worker in 1..=max_attempts {
            let mut queue = RetryQueue::with_timer(VirtualClock::new(), policy);
            queue.restore(on_disk).unwrap();
            let job = block_on(queue.next()).unwrap().unwrap();
            assert_eq!((job.number(), job.is_last()), (worker, worker == max_attempts));
            let pending = job.pending();
            on_disk = Pending::new(*pending.item, pending.left, pending.paused);
            core::mem::forget(job);
        }
        let mut queue = RetryQueue::with_timer(VirtualClock::new(), policy);
        let gave_up = queue.restore(on_disk).unwrap_err();
        assert_eq!(
            (gave_up.item.item, gave_up.reason, gave_up.attempts),
            ("poison", GiveUpReason::Stop(StopReason::Attempts), max_attempts)
        );
    }
}

#[test]
fn listeners_hear_of_an_item_that_is_given_up_when_it_is_restored() {
    let budget = Arc::new(RecordingBudget::new(0));
    let heard = Arc::new(Mutex::new(Vec::new()));
    let events = Arc::clone(&heard);
    let retrier = Retrier::new(POLICY)
        .shared_guard(budget)
        .on_event(move |event| events.lock().unwrap().push((event.attempt, event.action)));
    let after = |attempts| {
        let mut queue = RetryQueue::with_timer(VirtualClock::new(), POLICY);
        queue.push((), Duration::ZERO).unwrap();
        for _ in 0..attempts {
            let job = block_on(queue.next()).unwrap().unwrap();
            let pending = job.pending();
            let pending = Pending::new((), pending.left, pending.paused);
            if job.number() == attempts {
                return pending;
            }
            queue.push_retry(job, Outcome::TRANSIENT).unwrap();
        }
        unreachable!("the last attempt returns")
    };
    let mut queue = RetryQueue::with_timer(VirtualClock::new(), retrier);
    queue.restore(after(3)).unwrap_err();
    queue.restore(after(2)).unwrap_err();
    let stopped = |attempt, reason| (attempt, Action::Stop(reason));
    assert_eq!(*heard.lock().unwrap(), [stopped(3, StopReason::Attempts), stopped(2, StopReason::BUDGET)]);
}

/// Otherwise a call that began before the process started could exceed its time limit.
#[test]
fn clocks_can_represent_times_before_the_process_started() {
    const CENTURY: u64 = 100 * 365 * 86_400 * 1_000_000_000;
    assert!(SystemClock.now().as_nanos() > CENTURY && Tokio.now().as_nanos() > CENTURY);
}

#[test]
fn restore_acquires_a_permit_or_returns_the_item_unchanged() {
    let mut queue = RetryQueue::with_timer(VirtualClock::new(), POLICY);
    (0..3).for_each(|item| push_failed(&mut queue, item));
    queue.push(9, ms(5)).unwrap();
    let pending: Vec<_> = queue.into_pending().collect();

    let budget = Arc::new(RecordingBudget::new(2));
    let queue = || RetryQueue::with_timer(VirtualClock::new(), Retrier::new(POLICY).shared_guard(budget.clone()));
    let mut restored = queue();
    for pending in &pending[..3] {
        // The new item needs no permit for its first attempt.
        restored.restore(*pending).unwrap();
    }
    let (mut full, last) = (queue().capacity(0), pending[3]);
    for (queue, reason) in
        [(&mut restored, GiveUpReason::Stop(StopReason::BUDGET)), (&mut full, GiveUpReason::Stop(StopReason::BUDGET))]
    {
        let stopped = queue.restore(last).unwrap_err();
        assert_eq!((stopped.item, stopped.reason, stopped.attempts), (last, reason, 1));
    }
    drop(restored);
    assert_eq!((budget.snapshot().retries_left, budget.in_flight()), (2, 0), "permits of pending items are released");
    assert_eq!(full.restore(last).map_err(|stopped| (stopped.item, stopped.reason)), Err((last, GiveUpReason::Full)));
    assert_eq!((budget.snapshot().retries_left, budget.in_flight()), (2, 0), "a rejected item holds no permit");
}

#[cfg(feature = "serde")]
mod killed {
    use std::collections::BTreeMap;
    use std::path::Path;

    use stagger_kit::{Ledger, Program, Stream};

    use super::*;

    const ITEMS: u32 = 8;
    /// The number of the attempt that succeeds.
    const SUCCEEDS_AT: u32 = 4;
    const SLOW: Policy = policy!(constant(ms(30)).max_attempts(SUCCEEDS_AT));
    const LEDGER: &str = "RETRY_LEDGER";
    const TIMEOUT: Duration = Duration::from_secs(30);

    #[test]
    fn a_consumer_killed_repeatedly_makes_each_attempt() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ledger");
        let child =
            Program::this_test("suite::queue::restart::killed::child_that_consumes").unwrap().env(LEDGER, &path);
        for attempts in [3, 9, 5] {
            let mut running = child.spawn().unwrap();
            for _ in 0..attempts {
                running.wait_for(Stream::Stdout, "attempt", TIMEOUT).unwrap();
            }
            running.kill();
        }
        let done = child.run(TIMEOUT).unwrap();
        assert!(done.status.success(), "{done}");

        let records = Ledger::read(&path).unwrap();
        assert_eq!(records.iter().filter(|record| record.starts_with("done")).count(), ITEMS as usize);
        let mut made: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for (item, number) in records.iter().filter_map(|record| record.strip_prefix("attempt ")?.split_once(' ')) {
            made.entry(item.parse().unwrap()).or_default().push(number.parse().unwrap());
        }
        let repeated: usize = made.values().map(|made| made.windows(2).filter(|pair| pair[0] == pair[1]).count()).sum();
        assert!(repeated <= 3, "only interrupted attempts may be repeated: {made:?}");
        for (item, mut numbers) in made {
            assert!(numbers.is_sorted(), "{item}: {numbers:?}");
            numbers.dedup();
            assert_eq!(numbers, (1..=SUCCEEDS_AT).collect::<Vec<_>>(), "{item}");
        }
    }

    /// Returns the unfinished items, each with its last state in the ledger.
    fn unfinished(ledger: &Ledger) -> BTreeMap<u32, Option<Pending<u32>>> {
        let mut left: BTreeMap<_, _> = (0..ITEMS).map(|item| (item, None)).collect();
        for record in ledger.records() {
            if let Some(item) = record.strip_prefix("done ") {
                left.remove(&item.parse().unwrap());
            } else if let Some(pending) = record.strip_prefix("pending ") {
                let pending: Pending<u32> = serde_json::from_str(pending).unwrap();
                left.insert(pending.item, Some(pending));
            }
        }
        left
    }

    #[tokio::test]
    #[ignore = "the child of another test"]
    async fn child_that_consumes() {
        let Some(path) = std::env::var_os(LEDGER) else { return };
        let mut ledger = Ledger::open(Path::new(&path)).unwrap();
        let mut queue = RetryQueue::new(SLOW);
        for (item, pending) in unfinished(&ledger) {
            match pending {
                Some(pending) => queue.restore(pending).unwrap(),
                None => queue.push(item, Duration::ZERO).unwrap(),
            };
        }
        while let Some(due) = queue.next().await {
            let job = due.unwrap();
            ledger.append(&format!("attempt {} {}", job.item, job.number())).unwrap();
            println!("attempt");
            if job.number() == SUCCEEDS_AT {
                ledger.append(&format!("done {}", job.succeeded())).unwrap();
            } else {
                let key = queue.push_retry(job, Outcome::TRANSIENT).unwrap().key;
                let pending = serde_json::to_string(&queue.pending(key).unwrap()).unwrap();
                ledger.append(&format!("pending {pending}")).unwrap();
            }
        }
    }
}
