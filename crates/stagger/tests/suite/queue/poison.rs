//! Items whose attempts kill their worker: each attempt counts, waits for its delay, and the limit ends it.

use core::time::Duration;
use std::sync::{Arc, Mutex};

use futures_lite::future::block_on;
use stagger::observe::Action;
use stagger::queue::{GiveUpReason, Interrupted, Pending, RetryQueue};
use stagger::testing::VirtualClock;
use stagger::{DelaySource, Outcome, Policy, Retrier, StopReason, policy};

use super::super::support::{RecordingBreaker, RecordingBudget, guarded, ms};

/// Delays of 10, 20, 40 and 80 ms.
const DOUBLING: Policy = policy!(exponential(ms(10), secs(10)).jitter(Jitter::None).max_attempts(5));

/// Returns what the worker stored before attempt number `attempt` of an item, which killed it.
fn stored_before(attempt: u32) -> Pending<&'static str> {
    let mut queue = RetryQueue::with_timer(VirtualClock::new(), DOUBLING);
    queue.push("poison", Duration::ZERO).unwrap();
    loop {
        let job = block_on(queue.next()).unwrap().unwrap();
        if job.number() == attempt {
            let Pending { item, left, paused, .. } = job.pending();
            return Pending::new(*item, left, paused);
        }
        queue.push_retry(job, Outcome::TRANSIENT).unwrap();
    }
}

/// Otherwise an item that kills its worker at once restarts it as fast as the system can.
#[test]
fn an_interrupted_attempt_is_followed_by_the_delay_of_a_failed_one() {
    for (attempt, delay) in [(1, ms(10)), (2, ms(20)), (3, ms(40)), (4, ms(80))] {
        let clock = VirtualClock::new();
        let mut queue = RetryQueue::with_timer(clock.clone(), DOUBLING);
        queue.restore(stored_before(attempt)).unwrap();
        let job = block_on(queue.next()).unwrap().unwrap();
        assert_eq!((job.number(), clock.elapsed()), (attempt + 1, delay), "killed in attempt {attempt}");
    }
}

#[test]
fn listeners_hear_of_each_interrupted_attempt_and_of_the_end() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let events = Arc::clone(&heard);
    let retrier = || {
        let events = Arc::clone(&events);
        Retrier::new(DOUBLING).on_event(move |event| {
            assert_eq!(event.error_as::<Interrupted>(), Some(&Interrupted));
            events.lock().unwrap().push((event.attempt, event.action));
        })
    };
    let mut on_disk = stored_before(1);
    loop {
        let mut queue = RetryQueue::with_timer(VirtualClock::new(), retrier());
        if let Err(gave_up) = queue.restore(on_disk) {
            assert_eq!((gave_up.item, gave_up.attempts), (on_disk, 5));
            assert_eq!(gave_up.reason, GiveUpReason::Stop(StopReason::Attempts));
            break;
        }
        let job = block_on(queue.next()).unwrap().unwrap();
        let Pending { item, left, paused, .. } = job.pending();
        on_disk = Pending::new(*item, left, paused);
        core::mem::forget(job);
    }
    let retry = |attempt, after| (attempt, Action::Retry { after, source: DelaySource::Schedule });
    assert_eq!(
        *heard.lock().unwrap(),
        [
            retry(1, ms(10)),
            retry(2, ms(20)),
            retry(3, ms(40)),
            retry(4, ms(80)),
            (5, Action::Stop(StopReason::Attempts))
        ]
    );
}

/// Its permits were lost with the process, so nothing can be settled; but the retry is not free.
#[test]
fn an_interrupted_attempt_is_charged_and_reported_to_no_guard() {
    let budget = Arc::new(RecordingBudget::new(1));
    let breaker = Arc::new(RecordingBreaker::new(u32::MAX, ms(1)));
    let mut queue = RetryQueue::with_timer(VirtualClock::new(), guarded(DOUBLING, &budget, &breaker));
    queue.restore(stored_before(2)).unwrap();
    assert_eq!((budget.snapshot().retries_left, budget.in_flight()), (0, 1));
    let gave_up = queue.restore(stored_before(2)).unwrap_err();
    assert_eq!(gave_up.reason, GiveUpReason::Stop(StopReason::BUDGET));
    assert_eq!(gave_up.item, stored_before(2), "unchanged, for another try or a dead-letter store");
    assert_eq!((budget.snapshot().recorded.len(), breaker.snapshot().recorded.len()), (0, 0));
    drop(queue);
    assert_eq!((budget.snapshot().retries_left, budget.in_flight()), (1, 0));
}

#[test]
fn a_snapshot_after_the_restore_waits_and_is_no_longer_in_flight() {
    let clock = VirtualClock::new();
    let mut queue = RetryQueue::with_timer(clock.clone(), DOUBLING);
    let key = queue.restore(stored_before(3)).unwrap();
    clock.advance(ms(15));
    let Pending { item, left, paused, .. } = queue.pending(key).unwrap();
    assert_eq!((*item, left, paused.attempt(), paused.is_in_flight()), ("poison", ms(25), 3, false));
    let again = Pending::new(*item, left, paused);
    let mut queue = RetryQueue::with_timer(clock.clone(), DOUBLING);
    queue.restore(again).unwrap();
    assert_eq!(block_on(queue.next()).unwrap().unwrap().number(), 4);
    assert_eq!(clock.elapsed(), ms(40), "the rest of the delay, and no new one");
}

#[cfg(feature = "serde")]
mod killed {
    use std::collections::BTreeMap;
    use std::path::Path;

    use stagger_kit::{Ledger, Program};

    use super::*;

    const LIMIT: u32 = 5;
    const QUICK: Policy = policy!(exponential(ms(5), ms(40)).max_attempts(LIMIT));
    const LEDGER: &str = "POISON_LEDGER";
    const TIMEOUT: Duration = Duration::from_secs(30);
    const SIGKILL: i32 = 9;

    /// A real process, a real kill, and a store that is synced to disk.
    #[test]
    fn a_job_that_kills_its_worker_does_so_as_often_as_the_policy_has_attempts() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("ledger");
        let worker = Program::this_test("suite::queue::poison::killed::worker").unwrap().env(LEDGER, &path);
        let mut kills = 0;
        loop {
            let ended = worker.run(TIMEOUT).unwrap();
            if ended.signal() != Some(SIGKILL) {
                assert!(ended.status.success(), "{ended}");
                break;
            }
            kills += 1;
            assert!(kills <= LIMIT, "killed more often than the policy allows");
        }
        assert_eq!(kills, LIMIT);
        let records = Ledger::read(&path).unwrap();
        let starting = |prefix| records.iter().filter_map(|record| record.strip_prefix(prefix)).collect::<Vec<_>>();
        assert_eq!(starting("dead "), ["poison after 5: gave up after 5 attempts: every attempt was used"]);
        assert_eq!(starting("done "), ["plain", "simple"]);
    }

    /// Returns the unfinished messages, each with its last stored state.
    fn unfinished(ledger: &Ledger) -> BTreeMap<String, Option<Pending<String>>> {
        let mut left: BTreeMap<_, _> = ["plain", "poison", "simple"].map(|name| (name.to_owned(), None)).into();
        for record in ledger.records() {
            match record.split_once(' ').unwrap() {
                ("stored", pending) => {
                    let pending: Pending<String> = serde_json::from_str(pending).unwrap();
                    left.insert(pending.item.clone(), Some(pending));
                }
                ("done", name) => drop(left.remove(name)),
                ("dead", letter) => drop(left.remove(letter.split(' ').next().unwrap())),
                other => panic!("{other:?}"),
            }
        }
        left
    }

    #[tokio::test]
    #[ignore = "the child of another test"]
    async fn worker() {
        let Some(path) = std::env::var_os(LEDGER) else { return };
        let mut ledger = Ledger::open(Path::new(&path)).unwrap();
        let mut queue = RetryQueue::new(QUICK);
        for (name, pending) in unfinished(&ledger) {
            match pending {
                None => drop(queue.push(name, Duration::ZERO).unwrap()),
                Some(pending) => {
                    if let Err(gave_up) = queue.restore(pending) {
                        ledger.append(&format!("dead {name} after {}: {gave_up}", gave_up.attempts)).unwrap();
                    }
                }
            }
        }
        while let Some(due) = queue.next().await {
            let job = due.unwrap();
            ledger.append(&format!("stored {}", serde_json::to_string(&job.pending()).unwrap())).unwrap();
            if job.item == "poison" {
                let id = std::process::id().to_string();
                std::process::Command::new("kill").args(["-9", &id]).status().unwrap();
            }
            ledger.append(&format!("done {}", job.succeeded())).unwrap();
        }
    }

    /// Returns JSON as Node.js reads and writes it again.
    fn through_node(json: &str) -> String {
        let script = "process.stdout.write(JSON.stringify(JSON.parse(process.argv[1])))";
        let done = Program::find("node").unwrap().args(["-e", script, json]).run(TIMEOUT).unwrap();
        assert!(done.status.success(), "{done}");
        done.stdout_text()
    }

    #[test]
    fn a_pending_retry_survives_javascript() {
        let mut stored = vec![stored_before(1), stored_before(3)];
        stored.push(Pending::new("late", Duration::new((1 << 53) - 1, 999_999_999), stored[1].paused));
        let json = serde_json::to_string(&stored).unwrap();
        let through = through_node(&json);
        assert_eq!(through, json);
        let read: Vec<Pending<String>> = serde_json::from_str(&through).unwrap();
        for (read, stored) in read.iter().zip(&stored) {
            assert_eq!((read.left, read.paused), (stored.left.min(Duration::from_secs((1 << 53) - 1)), stored.paused));
        }
    }
}
