//! Section F: a million pending retries, each in its own task or all in a queue.

#[cfg(feature = "peers")]
mod peers;

use core::future::Future;
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use stagger::queue::{DelayQueue, Key, RetryQueue, Wheel};
use stagger::time::Tokio;
use stagger::{Instant, Outcome, Policy, policy};
use tokio::runtime::Runtime;

use crate::case::{Case, Role, Table};
use crate::operation;
use crate::operation::{Failure, Script};

/// Returns the rows of the two tables.
pub(crate) fn cases() -> Vec<Case> {
    [
        floor_cases(),
        stagger_cases(),
        #[cfg(feature = "peers")]
        peers::cases(),
    ]
    .concat()
}

// The lower bound for a delay queue: a hashed timing wheel in a slab, for delays up to one turn of the wheel.

/// Returns the hand-written rows.
fn floor_cases() -> Vec<Case> {
    let name = "hashed wheel in a slab";
    vec![
        due(Role::Floor, name, on!(SinglyLinked, SinglyLinked::due)).note("no clock, cannot cancel"),
        cancelled(Role::Floor, name, on!(DoublyLinked, DoublyLinked::cancel)),
    ]
}

/// One slot for each millisecond of the longest delay.
const SLOTS: usize = (LONGEST_MS + 1).next_power_of_two() as usize;
const NIL: u32 = u32::MAX;

/// A wheel with singly linked slots, from which only the first entry of a slot can be removed.
struct SinglyLinked {
    heads: Vec<u32>,
    entries: Vec<Link>,
    now: u64,
    delays: Delays,
}

#[derive(Clone, Copy)]
struct Link {
    next: u32,
    item: Item,
}

impl SinglyLinked {
    fn link(&mut self, index: u32) {
        let slot = (self.now + self.delays.next_ms()) as usize % SLOTS;
        self.entries[index as usize].next = core::mem::replace(&mut self.heads[slot], index);
    }
}

impl Pending for SinglyLinked {
    fn full() -> Self {
        let entries = (0..PENDING).map(|item| Link { next: NIL, item: Item::from(item) }).collect();
        let mut wheel = Self { heads: vec![NIL; SLOTS], entries, now: 0, delays: Delays::new() };
        (0..PENDING).for_each(|index| wheel.link(index));
        wheel
    }
}

impl SinglyLinked {
    fn due(&mut self, times: u64) {
        for _ in 0..times {
            let first = loop {
                match self.heads[self.now as usize % SLOTS] {
                    NIL => self.now += 1,
                    first => break first,
                }
            };
            let Link { next, item } = self.entries[first as usize];
            self.heads[self.now as usize % SLOTS] = next;
            black_box(item);
            self.link(first);
        }
    }
}

/// A wheel with doubly linked slots, from which any entry can be removed.
struct DoublyLinked {
    heads: Vec<u32>,
    entries: Vec<Links>,
    delays: Delays,
}

/// An entry. Items have the same numbers as their entries.
#[derive(Clone, Copy)]
struct Links {
    prev: u32,
    next: u32,
    slot: u32,
    item: u32,
}

impl DoublyLinked {
    fn link(&mut self, index: u32) {
        let slot = self.delays.next_ms() as usize % SLOTS;
        let next = core::mem::replace(&mut self.heads[slot], index);
        if let Some(next) = self.entries.get_mut(next as usize) {
            next.prev = index;
        }
        let entry = &mut self.entries[index as usize];
        *entry = Links { prev: NIL, next, slot: slot as u32, item: entry.item };
    }

    fn unlink(&mut self, index: u32) -> u32 {
        let Links { prev, next, slot, item } = self.entries[index as usize];
        match self.entries.get_mut(prev as usize) {
            Some(prev) => prev.next = next,
            None => self.heads[slot as usize] = next,
        }
        if let Some(next) = self.entries.get_mut(next as usize) {
            next.prev = prev;
        }
        item
    }
}

impl Pending for DoublyLinked {
    fn full() -> Self {
        let entries = (0..PENDING).map(|item| Links { prev: NIL, next: NIL, slot: 0, item }).collect();
        let mut wheel = Self { heads: vec![NIL; SLOTS], entries, delays: Delays::new() };
        (0..PENDING).for_each(|index| wheel.link(index));
        wheel
    }
}

impl DoublyLinked {
    fn cancel(&mut self, times: u64) {
        for _ in 0..times {
            let index = self.delays.pick() as u32;
            black_box(self.unlink(index));
            self.link(index);
        }
    }
}

// The queues of this project, and a task per retry.

const WHEEL: &str = "Wheel";
const DELAY_QUEUE: &str = "DelayQueue";
const TASKS: &str = "retry(&POLICY, …), a task per retry";

const POLICY: Policy = policy!(exponential(secs(60), secs(60)).unlimited_attempts());

/// Returns the rows of this project.
fn stagger_cases() -> Vec<Case> {
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
        let runtime = operation::paused();
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

// The items that every row of section F keeps, and their delays.

/// The number of items that are pending at any time. Tests only check that a case runs, which takes fewer.
const PENDING: u32 = if cfg!(test) { 1_000 } else { 1_000_000 };

/// The number of operations of a run: enough that on average each entry becomes due once, with all its moves between
/// the levels of a wheel.
pub(crate) const BULK: u64 = PENDING as u64;

/// The longest delay in milliseconds. Delays are uniformly distributed.
const LONGEST_MS: u64 = 60_000;

/// An item, which is its number.
type Item = u64;

/// The delays of a case, the same sequence in every case.
struct Delays(fastrand::Rng);

impl Delays {
    fn new() -> Self {
        Self::with_seed(7)
    }

    fn with_seed(seed: u64) -> Self {
        Self(fastrand::Rng::with_seed(seed))
    }

    /// Returns the next delay in milliseconds, at least 1.
    fn next_ms(&mut self) -> u64 {
        self.0.u64(1..=LONGEST_MS)
    }

    fn next(&mut self) -> Duration {
        Duration::from_millis(self.next_ms())
    }

    /// Returns the index of a random pending item.
    fn pick(&mut self) -> usize {
        self.0.usize(..PENDING as usize)
    }
}

/// A structure in which a million items are pending.
trait Pending {
    /// Creates the structure with [`PENDING`] items.
    fn full() -> Self;
}

/// Creates a case on a queue that is filled once for all turns of the case.
macro_rules! on {
    ($queue:ty, $turns:expr) => {
        |times| {
            thread_local! {
                static QUEUE: core::cell::RefCell<$queue> = core::cell::RefCell::new(Pending::full());
            }
            QUEUE.with_borrow_mut(|queue| $turns(queue, times));
        }
    };
}

use on;

/// Creates a row of the first table.
const fn due(role: Role, name: &'static str, run: fn(u64)) -> Case {
    Case::work(Table::PendingDue, role, name, run).keeping(PENDING as u64)
}

/// Creates a row of the first table with a task per entry. Only its time is measured: a million tasks take minutes
/// under callgrind.
const fn task(role: Role, name: &'static str, run: fn(u64)) -> Case {
    Case::wait(Table::PendingDue, role, name, run).keeping(PENDING as u64)
}

/// Creates a row of the second table.
const fn cancelled(role: Role, name: &'static str, run: fn(u64)) -> Case {
    Case::work(Table::PendingCancelled, role, name, run)
}

// A task per pending retry, whose attempts always fail.

/// The number of attempts of all tasks together.
static ATTEMPTS: AtomicU64 = AtomicU64::new(0);

/// Makes an attempt, which fails.
async fn fail() -> Result<u64, Failure> {
    static FAILURE: Script = Script::failing(u32::MAX);
    attempted();
    FAILURE.step()
}

/// Counts an attempt.
fn attempted() {
    ATTEMPTS.fetch_add(1, Ordering::Relaxed);
}

/// A million tasks on a runtime with a paused clock, which advances when all tasks wait.
struct Tasks(Runtime);

impl Tasks {
    /// Starts one task for each number with the future that `future` returns, and returns when all tasks wait.
    fn start<F: Future<Output: Send> + Send + 'static>(future: impl Fn(u64) -> F) -> Self {
        let runtime = operation::paused();
        for number in 0..PENDING {
            runtime.spawn(future(u64::from(number)));
        }
        runtime.block_on(tokio::task::yield_now());
        Self(runtime)
    }

    /// Advances the clock until `times` more attempts were made, including all others of the same millisecond.
    fn due(&self, times: u64) {
        let before = ATTEMPTS.load(Ordering::Relaxed);
        self.0.block_on(async {
            while ATTEMPTS.load(Ordering::Relaxed) - before < times {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
    }
}

/// Creates a case with a task per number, started once for all turns of the case.
macro_rules! on_tasks {
    ($future:expr) => {
        |times| {
            thread_local! {
                static TASKS: Tasks = Tasks::start($future);
            }
            TASKS.with(|tasks| tasks.due(times));
        }
    };
}

use on_tasks;

// Queues with a tokio timer, on a paused clock, which advances when the queue waits.

/// A queue that returns an item when it is due, or earlier if the item is cancelled.
trait Queue {
    /// Identifies a pending item.
    type Key;

    /// Creates a queue with capacity for `items`.
    fn for_items(items: usize) -> Self;

    /// Schedules an item.
    fn push(&mut self, item: Item, delays: &mut Delays) -> Self::Key;

    /// Removes an item.
    fn cancel(&mut self, key: &Self::Key) -> Option<Item>;

    /// Waits until an item is due and returns it.
    fn next(&mut self) -> impl Future<Output = Option<Item>>;
}

/// A queue with its runtime.
struct Timed<Q: Queue> {
    queue: Q,
    keys: Vec<Q::Key>,
    delays: Delays,
    runtime: Runtime,
}

impl<Q: Queue> Pending for Timed<Q> {
    fn full() -> Self {
        let runtime = operation::paused();
        let mut delays = Delays::new();
        let (queue, keys) = runtime.block_on(async {
            let mut queue = Q::for_items(PENDING as usize);
            let keys = (0..PENDING).map(|item| queue.push(Item::from(item), &mut delays)).collect();
            (queue, keys)
        });
        Self { queue, keys, delays, runtime }
    }
}

impl<Q: Queue> Timed<Q> {
    fn due(&mut self, times: u64) {
        let Self { queue, delays, runtime, .. } = self;
        runtime.block_on(async {
            for _ in 0..times {
                let Some(item) = queue.next().await else { return };
                black_box(&queue.push(black_box(item), delays));
            }
        });
    }

    fn cancel(&mut self, times: u64) {
        let Self { queue, keys, delays, runtime } = self;
        runtime.block_on(async {
            for _ in 0..times {
                let key = &mut keys[delays.pick()];
                if let Some(item) = queue.cancel(key) {
                    *key = queue.push(black_box(item), delays);
                }
            }
        });
    }
}
