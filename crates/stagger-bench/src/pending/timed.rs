//! Queues with a timer of tokio's, on a clock that goes on by itself.

use core::future::Future;
use core::hint::black_box;

use tokio::runtime::Runtime;

use super::load::{Item, PENDING, Pending, Waits};
use crate::tokio_runtime;

/// A queue that gives an item when its time has come, or before it if it is asked to.
pub(super) trait Queue {
    /// Names an item that is pending.
    type Key;

    /// With room for this many.
    fn with_room(items: usize) -> Self;

    /// Puts an item in.
    fn push(&mut self, item: Item, waits: &mut Waits) -> Self::Key;

    /// Takes an item out.
    fn cancel(&mut self, key: &Self::Key) -> Option<Item>;

    /// The next item, when it is due.
    fn next(&mut self) -> impl Future<Output = Option<Item>>;
}

/// A queue, and where it runs.
pub(super) struct Timed<Q: Queue> {
    queue: Q,
    keys: Vec<Q::Key>,
    waits: Waits,
    runtime: Runtime,
}

impl<Q: Queue> Pending for Timed<Q> {
    fn full() -> Self {
        let runtime = tokio_runtime::paused();
        let mut waits = Waits::new();
        let (queue, keys) = runtime.block_on(async {
            let mut queue = Q::with_room(PENDING as usize);
            let keys = (0..PENDING).map(|item| queue.push(Item::from(item), &mut waits)).collect();
            (queue, keys)
        });
        Self { queue, keys, waits, runtime }
    }
}

impl<Q: Queue> Timed<Q> {
    pub(super) fn due(&mut self, times: u64) {
        let Self { queue, waits, runtime, .. } = self;
        runtime.block_on(async {
            for _ in 0..times {
                let Some(item) = queue.next().await else { return };
                black_box(&queue.push(black_box(item), waits));
            }
        });
    }

    pub(super) fn cancel(&mut self, times: u64) {
        let Self { queue, keys, waits, runtime } = self;
        runtime.block_on(async {
            for _ in 0..times {
                let key = &mut keys[waits.pick()];
                if let Some(item) = queue.cancel(key) {
                    *key = queue.push(black_box(item), waits);
                }
            }
        });
    }
}
