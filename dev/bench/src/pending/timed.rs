//! Queues with a tokio timer, on a paused clock, which advances when the queue waits.

use core::future::Future;
use core::hint::black_box;

use tokio::runtime::Runtime;

use super::load::{Delays, Item, PENDING, Pending};
use crate::tokio_runtime;

/// A queue that returns an item when it is due, or earlier if the item is cancelled.
pub(super) trait Queue {
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
pub(super) struct Timed<Q: Queue> {
    queue: Q,
    keys: Vec<Q::Key>,
    delays: Delays,
    runtime: Runtime,
}

impl<Q: Queue> Pending for Timed<Q> {
    fn full() -> Self {
        let runtime = tokio_runtime::paused();
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
    pub(super) fn due(&mut self, times: u64) {
        let Self { queue, delays, runtime, .. } = self;
        runtime.block_on(async {
            for _ in 0..times {
                let Some(item) = queue.next().await else { return };
                black_box(&queue.push(black_box(item), delays));
            }
        });
    }

    pub(super) fn cancel(&mut self, times: u64) {
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
