//! Other queues, and a task per retry with other crates.

use core::cmp::Reverse;
use core::future::poll_fn;
use core::hint::black_box;
use core::time::Duration;
use std::collections::BinaryHeap;

use backon::{ConstantBuilder, Retryable as _};
use tokio_util::time::DelayQueue;
use tokio_util::time::delay_queue::{Expired, Key};

use super::{Delays, Item, LONGEST_MS, PENDING, Pending, cancelled, due, on, task};
use super::{Queue, Timed};
use super::{Tasks, attempted, fail, on_tasks};
use crate::case::{Case, Role, Table};

const LONGEST: Duration = Duration::from_millis(LONGEST_MS);

/// Returns the rows of other crates.
pub(super) fn cases() -> Vec<Case> {
    let queue = "tokio-util DelayQueue";
    vec![
        due(Role::Peer, "std BinaryHeap", on!(Heap, Heap::due)).note("no clock"),
        due(Role::Peer, queue, on!(Timed<DelayQueue<Item>>, Timed::due)),
        task(Role::Peer, "tokio sleep, a task per retry", on_tasks!(sleep)).note("no retry decision"),
        task(Role::Peer, "backon, a task per retry", on_tasks!(backon)).note("delays of 30 s to 60 s"),
        task(Role::Peer, "tokio-retry, a task per retry", on_tasks!(tokio_retry)),
        cancelled(Role::Peer, queue, on!(Timed<DelayQueue<Item>>, Timed::cancel)).note("reads the clock"),
        Case::absent(Table::PendingCancelled, "std BinaryHeap", "removes the first entry only"),
    ]
}

struct Heap {
    heap: BinaryHeap<Reverse<(u64, Item)>>,
    delays: Delays,
}

impl Pending for Heap {
    fn full() -> Self {
        let mut delays = Delays::new();
        let heap = (0..PENDING).map(|item| Reverse((delays.next_ms(), Item::from(item)))).collect();
        Self { heap, delays }
    }
}

impl Heap {
    fn due(&mut self, times: u64) {
        for _ in 0..times {
            let Some(Reverse((now, item))) = self.heap.pop() else { return };
            self.heap.push(Reverse((now + self.delays.next_ms(), black_box(item))));
        }
    }
}

impl Queue for DelayQueue<Item> {
    type Key = Key;

    fn for_items(items: usize) -> Self {
        Self::with_capacity(items)
    }

    fn push(&mut self, item: Item, delays: &mut Delays) -> Key {
        self.insert(item, delays.next())
    }

    fn cancel(&mut self, key: &Key) -> Option<Item> {
        self.try_remove(key).map(Expired::into_inner)
    }

    async fn next(&mut self) -> Option<Item> {
        poll_fn(|cx| self.poll_expired(cx)).await.map(Expired::into_inner)
    }
}

async fn sleep(number: u64) {
    let mut delays = Delays::with_seed(number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    loop {
        tokio::time::sleep(delays.next()).await;
        attempted();
    }
}

fn backon(_number: u64) -> impl Future<Output: Send> + Send {
    const BUILDER: ConstantBuilder =
        ConstantBuilder::new().with_delay(Duration::from_millis(LONGEST_MS / 2)).with_jitter().without_max_times();
    fail.retry(BUILDER)
}

fn tokio_retry(_number: u64) -> impl Future<Output: Send> + Send {
    use tokio_retry::strategy::{FixedInterval, jitter};

    tokio_retry::Retry::start(FixedInterval::new(LONGEST).map(jitter), fail)
}
