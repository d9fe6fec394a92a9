use core::pin::pin;
use core::time::Duration;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use futures_lite::future::block_on;
use stagger::queue::{GaveUp, GiveUpReason, RetryQueue};
use stagger::testing::{NoSleep, VirtualClock};
use stagger::{DelaySource, Instant, Outcome, Policy, Retrier, Seed, ServerHint, StopReason, blocking, policy, scope};

use super::super::support::{PendingTimer, RecordingBreaker, RecordingBudget, guarded, ms, poll_times};

const POLICY: Policy = policy!(constant(ms(10)).jitter(Jitter::None).max_attempts(3));

/// Creates queues in virtual time whose guards record every permit.
struct Fixture {
    clock: VirtualClock,
    budget: Arc<RecordingBudget>,
    breaker: Arc<RecordingBreaker>,
}

impl Fixture {
    fn new(retries: u64) -> Self {
        Self {
            clock: VirtualClock::new(),
            budget: Arc::new(RecordingBudget::new(retries)),
            breaker: Arc::new(RecordingBreaker::new(u32::MAX, ms(1))),
        }
    }

    fn queue<T>(&self, policy: Policy) -> RetryQueue<T, VirtualClock> {
        RetryQueue::with_timer(self.clock.clone(), guarded(policy, &self.budget, &self.breaker))
    }

    fn assert_all_recorded(&self, retries_left: u64, outcomes: &[Outcome]) {
        assert_eq!((self.budget.in_flight(), self.breaker.in_flight()), (0, 0));
        assert_eq!(self.budget.snapshot().retries_left, retries_left, "{:?}", self.budget.snapshot());
        assert_eq!(self.budget.snapshot().recorded, outcomes);
        assert_eq!(self.breaker.snapshot().recorded, outcomes);
    }
}

/// Fails every attempt with this outcome until nothing is pending, and returns the items given up.
fn fail_all<T, S: stagger::time::Sleep + Clone>(queue: &mut RetryQueue<T, S>, outcome: Outcome) -> Vec<GaveUp<T>> {
    let mut stopped = Vec::new();
    while let Some(due) = block_on(queue.next()) {
        stopped.extend(due.and_then(|job| queue.push_retry(job, outcome)).err());
    }
    stopped
}

#[test]
fn each_item_gets_the_attempts_of_the_policy() {
    let mut queue = RetryQueue::with_timer(VirtualClock::new(), POLICY);
    for item in 0..100 {
        queue.push(item, ms(item)).unwrap();
    }
    let mut made = HashMap::new();
    let mut given_up = Vec::new();
    while let Some(due) = block_on(queue.next()) {
        let job = due.unwrap();
        *made.entry(job.item).or_insert(0) += 1;
        assert_eq!((job.number(), job.is_last()), (made[&job.item], made[&job.item] == 3));
        if job.item % 2 == 0 {
            job.succeeded();
        } else if let Err(stopped) = queue.push_retry(job, Outcome::TRANSIENT) {
            assert_eq!((stopped.reason, stopped.attempts), (GiveUpReason::Stop(StopReason::Attempts), 3));
            given_up.push(stopped.item);
        }
    }
    assert!(made.iter().all(|(item, made)| *made == if item % 2 == 0 { 1 } else { 3 }), "{made:?}");
    assert_eq!(given_up, (1..100).step_by(2).collect::<Vec<_>>());
}

/// The queue draws the same delays from a seed as the other drivers.
#[test]
fn delays_match_those_of_the_policy() {
    const JITTERED: Policy = policy!(exponential(ms(100), secs(10)).max_attempts(6));
    let seed = Seed::new(7);
    let mut queue = RetryQueue::with_timer(VirtualClock::new(), Retrier::new(JITTERED).seed(seed));
    queue.push((), Duration::ZERO).unwrap();
    let mut delays = Vec::new();
    while let Some(due) = block_on(queue.next()) {
        delays.extend(queue.push_retry(due.unwrap(), Outcome::TRANSIENT).map(|queued| queued.after).ok());
    }
    assert_eq!(delays, JITTERED.delays(seed.for_call(1)).collect::<Vec<_>>());
}

#[test]
fn an_item_draws_a_seed_only_if_a_delay_depends_on_it() {
    for (policy, draws) in [(policy!(zero()), false), (POLICY, false), (policy!(constant(ms(10))), true)] {
        let mut queue = RetryQueue::with_timer(VirtualClock::new(), policy);
        let job = queue.begin(()).unwrap();
        let key = queue.push_retry(job, Outcome::TRANSIENT).unwrap().key;
        assert_eq!(queue.pending(key).unwrap().paused.seed() != Seed::new(0), draws, "{policy}");
    }
}

#[test]
fn each_item_draws_its_own_delays() {
    const JITTERED: Policy = policy!(exponential(secs(1), secs(10)));
    let mut queue = RetryQueue::with_timer(VirtualClock::new(), JITTERED);
    let mut delays: Vec<_> = (0..100)
        .map(|item| {
            let job = queue.begin(item).unwrap();
            queue.push_retry(job, Outcome::TRANSIENT).unwrap().after
        })
        .collect();
    delays.sort();
    delays.dedup();
    assert_eq!(delays.len(), 100);
}

#[test]
fn the_budget_limits_the_retries_of_all_items() {
    let fixture = Fixture::new(5);
    let mut queue = fixture.queue(POLICY);
    for item in 0..20 {
        queue.push(item, Duration::ZERO).unwrap();
    }
    let stopped = fail_all(&mut queue, Outcome::TRANSIENT);
    let by_budget = stopped.iter().filter(|stopped| stopped.reason == GiveUpReason::Stop(StopReason::BUDGET)).count();
    assert_eq!((stopped.len(), by_budget), (20, 20));
    fixture.assert_all_recorded(0, &[Outcome::TRANSIENT; 25]);
}

#[test]
fn an_open_breaker_keeps_due_items_in_the_queue_and_lets_none_begin() {
    let fixture = Fixture::new(5);
    let mut queue = fixture.queue(POLICY);
    let job = queue.begin("an item").unwrap();
    assert!(queue.push_retry(job, Outcome::TRANSIENT).is_ok());
    fixture.breaker.open_until(Instant::ZERO.saturating_add(ms(60_000)));
    let gave_up = queue.begin("another").unwrap_err();
    assert_eq!((gave_up.reason, gave_up.attempts), (GiveUpReason::Stop(StopReason::BREAKER), 0));
    let job = block_on(queue.next()).unwrap().unwrap();
    assert_eq!((job.item, job.number()), ("an item", 2));
    assert!((ms(60_000)..ms(60_020)).contains(&fixture.clock.elapsed()), "{:?}", fixture.clock.elapsed());
    assert_eq!(job.succeeded(), "an item");
    fixture.assert_all_recorded(4, &[Outcome::TRANSIENT, Outcome::Success]);
}

#[test]
fn every_way_to_remove_an_item_releases_its_permits() {
    let cases: [(&str, fn(RetryQueue<u8, VirtualClock>)); 4] = [
        ("dropped", drop),
        ("shut down", |queue| assert_eq!(queue.into_pending().count(), 3)),
        ("shut down, pending items dropped", |queue| drop(queue.into_pending())),
        ("cancelled, then dropped", |mut queue| {
            let job = queue.begin(9).unwrap();
            let key = queue.push_retry(job, Outcome::TRANSIENT).unwrap().key;
            assert_eq!((queue.cancel(key), queue.cancel(key)), (Some(9), None));
        }),
    ];
    for (name, remove) in cases {
        let fixture = Fixture::new(10);
        let mut queue = fixture.queue(POLICY);
        for item in 0..3 {
            let job = queue.begin(item).unwrap();
            queue.push_retry(job, Outcome::TRANSIENT).unwrap();
        }
        assert_eq!((fixture.budget.snapshot().retries_left, fixture.budget.in_flight()), (7, 3));
        remove(queue);
        assert_eq!(
            (fixture.budget.snapshot().retries_left, fixture.budget.in_flight(), fixture.breaker.in_flight()),
            (10, 0, 0),
            "{name}"
        );
    }
}

#[test]
fn a_dropped_job_is_recorded_as_cancelled_once() {
    let fixture = Fixture::new(10);
    let mut queue = fixture.queue(POLICY);
    drop(queue.begin("first").unwrap());
    let taken_out = queue.begin("second").unwrap().item;
    let job = queue.begin("third").unwrap();
    assert_eq!((taken_out, job.succeeded()), ("second", "third"));
    fixture.assert_all_recorded(10, &[Outcome::Cancelled, Outcome::Cancelled, Outcome::Success]);
}

#[test]
fn a_full_queue_returns_the_item_and_releases_its_permit() {
    let fixture = Fixture::new(10);
    let mut queue = fixture.queue(POLICY).capacity(1);
    queue.push("waits", ms(1)).unwrap();
    assert_eq!(queue.push("no room", ms(1)).map_err(|full| full.0), Err("no room"));
    let job = queue.begin("failed").unwrap();
    let stopped = queue.push_retry(job, Outcome::TRANSIENT).unwrap_err();
    assert_eq!((stopped.item, stopped.reason, stopped.attempts), ("failed", GiveUpReason::Full, 1));
    assert_eq!(stopped.to_string(), "gave up after 1 attempt: the queue is at capacity; raise its capacity");
    drop(queue);
    fixture.assert_all_recorded(10, &[Outcome::TRANSIENT]);
}

#[test]
fn a_retry_is_never_earlier_than_its_hint() {
    let clock = VirtualClock::new();
    let mut queue = RetryQueue::with_timer(clock.clone(), POLICY);
    let job = queue.begin(()).unwrap();
    let hint = Duration::from_millis(1_234);
    let queued = queue.push_retry(job, Outcome::throttled(Some(ServerHint::Reserved(hint)))).unwrap();
    assert_eq!((queued.after, queued.source), (hint, DelaySource::Hint));
    let job = block_on(queue.next()).unwrap().unwrap();
    assert_eq!((job.number(), clock.elapsed()), (2, hint));
}

#[test]
fn an_unprocessed_attempt_is_repeated_at_once_and_not_counted() {
    let fixture = Fixture::new(0);
    let mut queue = fixture.queue(POLICY);
    let job = queue.begin(()).unwrap();
    assert_eq!(queue.push_retry(job, Outcome::NotProcessed).unwrap().source, DelaySource::Transparent);
    let job = block_on(queue.next()).unwrap().unwrap();
    assert_eq!((job.number(), fixture.clock.elapsed()), (1, Duration::ZERO));
    let stopped = queue.push_retry(job, Outcome::NotProcessed).unwrap_err();
    assert_eq!(stopped.reason, GiveUpReason::Stop(StopReason::BUDGET));
}

#[test]
fn push_retry_with_a_success_outcome_is_permanent() {
    let mut queue = RetryQueue::with_timer(NoSleep, POLICY);
    for outcome in [Outcome::Success, Outcome::Permanent] {
        let job = queue.begin(()).unwrap();
        assert_eq!(queue.push_retry(job, outcome).unwrap_err().reason, GiveUpReason::Stop(StopReason::Permanent));
    }
}

#[test]
fn max_elapsed_starts_at_the_first_attempt() {
    const LIMITED: Policy = policy!(constant(ms(10)).jitter(Jitter::None).max_attempts(99).max_elapsed(ms(35)));
    let clock = VirtualClock::new();
    let mut queue = RetryQueue::with_timer(clock.clone(), LIMITED);
    queue.push((), ms(500)).unwrap();
    let stopped = fail_all(&mut queue, Outcome::TRANSIENT);
    assert_eq!((stopped[0].reason, stopped[0].attempts), (GiveUpReason::Stop(StopReason::Elapsed), 4));
    assert_eq!(clock.elapsed(), ms(530));
}

#[test]
fn events_count_the_spread_as_elapsed_but_not_the_wait_before_it() {
    const SPREAD: Policy = policy!(constant(ms(10)).spread(secs(10)));
    let (clock, seen) = (VirtualClock::new(), Arc::new(Mutex::new(Vec::new())));
    let recorded = Arc::clone(&seen);
    let retrier = Retrier::new(SPREAD).on_event(move |event| recorded.lock().unwrap().push(event.elapsed));
    let mut queue = RetryQueue::with_timer(clock.clone(), retrier);
    queue.push((), ms(5_000)).unwrap();
    block_on(queue.next()).unwrap().unwrap().succeeded();
    assert!(clock.elapsed() > ms(5_000));
    assert_eq!(*seen.lock().unwrap(), [clock.elapsed() - ms(5_000)]);
}

#[test]
fn first_attempts_are_spread() {
    const SPREAD: Policy = policy!(constant(ms(10)).spread(secs(10)));
    let clock = VirtualClock::new();
    let mut queue = RetryQueue::with_timer(clock.clone(), SPREAD);
    for item in 0..1_000 {
        queue.push(item, Duration::from_secs(5)).unwrap();
    }
    let mut by_second = [0; 16];
    while let Some(due) = block_on(queue.next()) {
        due.unwrap().succeeded();
        by_second[clock.elapsed().as_secs() as usize] += 1;
    }
    assert_eq!(by_second[..5], [0; 5]);
    assert!(by_second[5..15].iter().all(|count| (60..150).contains(count)), "{by_second:?}");
}

#[test]
fn dropping_next_loses_nothing() {
    let timer = PendingTimer::default();
    let budget = Arc::new(RecordingBudget::new(3));
    let mut queue = RetryQueue::with_timer(timer, Retrier::new(POLICY).shared_guard(budget.clone()));
    let job = queue.begin("an item").unwrap();
    queue.push_retry(job, Outcome::TRANSIENT).unwrap();
    for _ in 0..2 {
        let mut next = pin!(queue.next());
        if let core::task::Poll::Ready(due) = poll_times(next.as_mut(), 1) {
            assert_eq!(due.unwrap().unwrap().succeeded(), "an item");
            assert_eq!((budget.snapshot().retries_left, budget.in_flight()), (2, 0));
            return;
        }
    }
    panic!("the sleep was not resumed");
}

#[test]
fn calls_inside_an_attempt_do_not_retry() {
    let mut queue = RetryQueue::with_timer(NoSleep, POLICY);
    let job = queue.begin(()).unwrap();
    let mut calls = 0;
    let inner = async {
        assert_eq!(scope::depth(), 1);
        blocking::retry(&POLICY, || {
            calls += 1;
            Err::<(), _>("no")
        })
        .timer(NoSleep)
        .run()
    };
    assert_eq!(block_on(job.scoped(inner)), Err("no"));
    assert_eq!((calls, scope::depth()), (1, 0));
}

/// A typical consumer: new work and retries in one `select!`, with a shared budget.
#[tokio::test(start_paused = true)]
async fn a_consumer_selects_between_new_work_and_retries() {
    let budget = Arc::new(RecordingBudget::new(1_000));
    let (sender, mut incoming) = tokio::sync::mpsc::channel(10);
    tokio::spawn(async move {
        for message in 0..200_u32 {
            sender.send(message).await.unwrap();
            tokio::time::sleep(ms(1)).await;
        }
    });
    let mut queue = RetryQueue::new(Retrier::new(POLICY).shared_guard(budget.clone())).capacity(50);
    let mut done = Vec::new();
    let mut dead = Vec::new();
    loop {
        let begun = tokio::select! {
            Some(message) = incoming.recv() => queue.begin(message),
            Some(due) = queue.next() => due,
            else => break,
        };
        let job = begun.unwrap();
        // A third of the messages succeed at once, a third at the last attempt, and a third never.
        if job.item % 3 == 0 || (job.item % 3 == 1 && job.is_last()) {
            done.push(job.succeeded());
        } else if let Err(stopped) = queue.push_retry(job, Outcome::TRANSIENT) {
            dead.push(stopped.item);
        }
    }
    done.sort_unstable();
    assert_eq!(done, (0..200).filter(|message| message % 3 != 2).collect::<Vec<_>>());
    assert_eq!(dead, (0..200).filter(|message| message % 3 == 2).collect::<Vec<_>>());
    assert_eq!(budget.in_flight(), 0);
}

#[test]
fn a_pending_retry_takes_120_bytes_besides_the_item() {
    const MANY: usize = 10_000;
    let bytes_of = |items| {
        let info = allocation_counter::measure(|| {
            let mut queue = RetryQueue::<u64, _>::with_timer(NoSleep, POLICY);
            queue.reserve(items);
            core::hint::black_box(&queue);
        });
        info.bytes_max as usize
    };
    let (none, many) = (bytes_of(0), bytes_of(MANY));
    assert_eq!((many - none) / MANY - size_of::<u64>(), 120, "{none} and {many}");
    assert!(none <= 18 * 1024, "{none}");
}
