//! A simple model of a timing wheel, run alongside a real one that must behave the same.

use core::time::Duration;
use std::collections::BTreeMap;

use stagger::queue::{Key, QueueFull, Wheel};
use stagger::{Instant, Seed};

/// A wheel that is compared with a sorted map after every step.
pub(super) struct CheckedWheel {
    wheel: Wheel<u64>,
    resolution: u64,
    capacity: usize,
    now: u64,
    /// The current tick: nothing is pending before it.
    present: u64,
    /// The item and its exact due time, by tick and insertion order.
    pending: BTreeMap<(u64, u64), (u64, u64)>,
    /// Every key ever returned, with the position of its entry in `pending`.
    keys: Vec<(Key, Option<(u64, u64)>)>,
    insertions: u64,
}

/// A step, encoded as numbers that are valid in every state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) operation: u8,
    pub(super) index: u64,
    pub(super) time: u64,
}

impl Step {
    /// Returns the `n`-th random step of this seed.
    pub(super) fn random(seed: Seed, n: u64) -> Self {
        let [operation, index, time] = [0, 1, 2].map(|k| seed.for_call(3 * n + k).get());
        Self { operation: operation as u8, index, time }
    }
}

impl CheckedWheel {
    pub(super) fn new(resolution: Duration, capacity: usize, now: u64) -> Self {
        let wheel = Wheel::new(resolution, Instant::from_nanos(now)).capacity(capacity);
        let resolution = (resolution.as_nanos() as u64).max(1);
        let present = now / resolution;
        let (pending, keys) = (BTreeMap::new(), Vec::new());
        Self { wheel, resolution, capacity, now, present, pending, keys, insertions: 0 }
    }

    pub(super) fn step(&mut self, Step { operation, index, time }: Step) {
        match operation % 16 {
            0..=5 => self.insert(self.instant(time)),
            6 | 7 => self.cancel(index),
            8 | 9 => self.reschedule(index, self.instant(time)),
            10..=13 => {
                self.now = self.later(time);
                for _ in 0..index % 8 {
                    self.pop();
                }
            }
            // The clock steps back.
            14 => self.now = self.now.saturating_sub(time % self.ticks(3)),
            _ if index % 64 == 0 => self.pop_first(),
            _ => self.check_reads(index),
        }
        assert_eq!(self.wheel.len(), self.pending.len());
    }

    /// Maps a number to a time in the past, in this tick, in any level of the wheel, years away, or at the maximum.
    fn instant(&self, time: u64) -> u64 {
        let far = time >> 8;
        match time % 256 {
            0 => u64::MAX,
            1 => u64::MAX - far % self.ticks(3),
            2..=15 => self.now.saturating_sub(far % self.ticks(4)),
            16..=31 => self.now,
            bits => self.now.saturating_add(far >> (8 + bits % 48)),
        }
    }

    fn later(&self, time: u64) -> u64 {
        let far = time >> 8;
        match time % 256 {
            0..=3 => self.now.saturating_add(far >> 16),
            4..=63 => self.now,
            64..=159 => self.pending.keys().next().map_or(self.now, |(tick, _)| {
                (tick.saturating_mul(self.resolution)).saturating_sub(far % 3).max(self.now)
            }),
            _ => self.now.saturating_add(far % self.ticks(400)),
        }
    }

    const fn ticks(&self, count: u64) -> u64 {
        count.saturating_mul(self.resolution)
    }

    fn position(&mut self, due: u64) -> (u64, u64) {
        self.insertions += 1;
        (due.div_ceil(self.resolution).max(self.present), self.insertions)
    }

    fn insert(&mut self, due: u64) {
        let item = self.insertions;
        match self.wheel.insert(item, Instant::from_nanos(due)) {
            Ok(key) => {
                assert!(self.pending.len() < self.capacity, "the item exceeds the capacity");
                let position = self.position(due);
                self.pending.insert(position, (item, due));
                self.keys.push((key, Some(position)));
            }
            Err(QueueFull(rejected)) => assert_eq!((self.pending.len(), rejected), (self.capacity, item)),
        }
    }

    fn key(&self, index: u64) -> Option<(usize, Key, Option<(u64, u64)>)> {
        // Mostly a recent key, whose entry may still be pending.
        let range = self.keys.len().min(if index % 4 == 0 { usize::MAX } else { 64 }) as u64;
        let back = (index / 4).checked_rem(range)? as usize;
        let index = self.keys.len() - 1 - back;
        let (key, position) = self.keys[index];
        Some((index, key, position.filter(|position| self.pending.contains_key(position))))
    }

    fn cancel(&mut self, index: u64) {
        let Some((_, key, position)) = self.key(index) else { return };
        let want = position.and_then(|position| self.pending.remove(&position)).map(|(item, _)| item);
        assert_eq!(self.wheel.get(key).copied(), want);
        assert_eq!(self.wheel.cancel(key), want);
        assert_eq!(self.wheel.get(key), None);
        assert_eq!(self.wheel.cancel(key), None);
    }

    fn reschedule(&mut self, index: u64, due: u64) {
        let Some((index, key, position)) = self.key(index) else { return };
        let entry = position.and_then(|position| self.pending.remove(&position));
        assert_eq!(self.wheel.reschedule(key, Instant::from_nanos(due)), entry.is_some());
        if let Some((item, _)) = entry {
            let position = self.position(due);
            self.pending.insert(position, (item, due));
            self.keys[index].1 = Some(position);
        }
    }

    pub(super) fn pop(&mut self) {
        let last = self.now == u64::MAX;
        let tick = if last { u64::MAX } else { self.now / self.resolution };
        let first = self.pending.first_entry().filter(|first| first.key().0 <= tick);
        let want = first.map(|first| first.remove_entry());
        assert_eq!(self.wheel.pop(Instant::from_nanos(self.now)), want.map(|(_, (item, _))| item));
        match want {
            Some(((tick, _), (_, due))) => {
                assert!(due <= self.now, "early: due at {due}, popped at {}", self.now);
                self.present = tick;
            }
            None if !last => self.present = self.present.max(tick),
            None => {}
        }
    }

    fn pop_first(&mut self) {
        let want = self.pending.pop_first();
        let due = |tick: u64| Instant::from_nanos(tick.saturating_mul(self.resolution));
        assert_eq!(self.wheel.pop_first(), want.map(|((tick, _), (item, _))| (due(tick), item)));
        self.present = want.map_or(self.present, |((tick, _), _)| tick);
        self.now = self.now.max(self.present.saturating_mul(self.resolution));
    }

    fn check_reads(&self, index: u64) {
        let tick = self.pending.keys().next().map(|(tick, _)| tick.saturating_mul(self.resolution));
        let want = tick.map(Instant::from_nanos);
        assert_eq!(self.wheel.next_due(), want);
        let wake = self.wheel.wake_at();
        assert!(wake <= want && wake.is_some() == want.is_some(), "{wake:?}, {want:?}");
        if let (Some(first), Some(wake)) = (want, wake) {
            let near = self.present.saturating_add(256) & !255;
            assert!(wake == first || first.as_nanos() / self.resolution >= near, "{wake:?}, {first:?}");
        }
        if let Some((_, key, position)) = self.key(index) {
            assert_eq!(self.wheel.get(key), position.map(|position| &self.pending[&position].0));
        }
    }

    /// Checks that the remaining items are popped in order.
    pub(super) fn finish(mut self) {
        while !self.pending.is_empty() {
            self.pop_first();
        }
        assert!(self.wheel.is_empty());
        assert_eq!((self.wheel.next_due(), self.wheel.wake_at()), (None, None));
    }
}
