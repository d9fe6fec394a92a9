//! The queues of this project, and a task per retry.

use core::hint::black_box;
use core::time::Duration;

use stagger::queue::{DelayQueue, Key, RetryQueue, Wheel};
use stagger::{Instant, Outcome, Policy, policy, time::Tokio};
use tokio::runtime::Runtime;

use super::load::{Delays, Item, PENDING, Pending, cancelled, due, on, task};
use super::tasks::{Tasks, fail, on_tasks};
use super::timed::{Queue, Timed};
use crate::case::{Case, Role};
use crate::tokio_runtime;

/// The rows of the goals.
pub(crate) const WHEEL: &str = "Wheel";
pub(crate) const DELAY_QUEUE: &str = "DelayQueue";
/// The row of the goal for a task per retry.
pub(crate) const TASKS: &str = "retry(&POLICY, …), a task per retry";

const POLICY: Policy = policy!(exponential(secs(60), secs(60)).unlimited_attempts());

/// Returns the rows of this project.
pub(super) fn cases() -> Vec<Case> {
    vec![
        due(Role::Stagger, WHEEL, on!(Wheels, Wheels::due)).note("no clock"),
        due(Role::Stagger, DELAY_QUEUE, on!(Timed<DelayQueue<Item, Tokio>>, Timed::due)),
        due(Role::Stagger, "RetryQueue", on!(Retries, Retries::due)).note("with begin and decide"),
        task(Role::Stagger, TASKS, on_tasks!(|_| stagger::retry(&POLICY, fail))).note("with begin and decide"),
        cancelled(Role::Stagger, WHEEL, on!(Wheels, Wheels::cancel)),
        cancelled(Role::Stagger, DELAY_QUEUE, on!(Timed<DelayQueue<Item, Tokio>>, Timed::cancel))
            .note("reads the clock"),
    ]
}

struct Wheels {
    wheel: Wheel<Item>,
    keys: Vec<Key>,
    now: Instant,
    delays: Delays,
}

impl Wheels {
    fn insert(&mut self, item: Item) -> Key {
        let due = self.now.saturating_add(self.delays.next());
        self.wheel.insert(item, due).expect("the queue is unbounded")
    }
}

impl Pending for Wheels {
    fn full() -> Self {
        let wheel = Wheel::new(Duration::from_millis(1), Instant::ZERO);
        let mut full = Self { wheel, keys: Vec::new(), now: Instant::ZERO, delays: Delays::new() };
        full.wheel.reserve(PENDING as usize);
        full.keys = (0..PENDING).map(|item| full.insert(Item::from(item))).collect();
        full
    }
}

impl Wheels {
    fn due(&mut self, times: u64) {
        for _ in 0..times {
            let item = loop {
                match self.wheel.pop(self.now) {
                    Some(item) => break item,
                    None => self.now = self.wheel.wake_at().unwrap_or(self.now),
                }
            };
            black_box(self.insert(black_box(item)));
        }
    }
}

impl Wheels {
    fn cancel(&mut self, times: u64) {
        for _ in 0..times {
            let at = self.delays.pick();
            if let Some(item) = self.wheel.cancel(self.keys[at]) {
                self.keys[at] = self.insert(black_box(item));
            }
        }
    }
}

impl Queue for DelayQueue<Item, Tokio> {
    type Key = Key;

    fn for_items(items: usize) -> Self {
        let mut queue = Self::new();
        queue.reserve(items);
        queue
    }

    fn push(&mut self, item: Item, delays: &mut Delays) -> Key {
        Self::push(self, item, delays.next()).expect("the queue is unbounded")
    }

    fn cancel(&mut self, key: &Key) -> Option<Item> {
        Self::cancel(self, *key)
    }

    fn next(&mut self) -> impl Future<Output = Option<Item>> {
        Self::next(self)
    }
}

struct Retries {
    queue: RetryQueue<Item, Tokio>,
    runtime: Runtime,
}

impl Pending for Retries {
    fn full() -> Self {
        let runtime = tokio_runtime::paused();
        let queue = runtime.block_on(async {
            let mut queue = RetryQueue::new(POLICY);
            queue.reserve(PENDING as usize);
            for item in 0..PENDING {
                let job = queue.begin(Item::from(item)).expect("there are no guards");
                queue.push_retry(job, Outcome::TRANSIENT).expect("the policy has no limit");
            }
            queue
        });
        Self { queue, runtime }
    }
}

impl Retries {
    fn due(&mut self, times: u64) {
        let Self { queue, runtime } = self;
        runtime.block_on(async {
            for _ in 0..times {
                let Some(Ok(job)) = queue.next().await else { return };
                black_box(&queue.push_retry(job, Outcome::TRANSIENT).is_ok());
            }
        });
    }
}
