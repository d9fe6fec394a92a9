//! What a wheel is, in the most obvious way, and a wheel beside it that must do the same.

use core::time::Duration;
use std::collections::BTreeMap;

use stagger::queue::{Key, QueueFull, Wheel};
use stagger::{Instant, Seed};

/// A wheel that is compared with a sorted map at every step.
pub(super) struct Checked {
    wheel: Wheel<u64>,
    resolution: u64,
    most: usize,
    now: u64,
    /// The tick before which nothing is pending.
    present: u64,
    /// By tick, then by the order of arrival: the item, and the exact time it was due.
    pending: BTreeMap<(u64, u64), (u64, u64)>,
    /// Every key that was ever given, with where its entry is now.
    keys: Vec<(Key, Option<(u64, u64)>)>,
    arrivals: u64,
}

/// A step, as numbers that mean something whatever the state is.
#[derive(Clone, Copy, Debug)]
pub(super) struct Step {
    pub(super) what: u8,
    pub(super) which: u64,
    pub(super) time: u64,
}

impl Step {
    /// The `n`-th random step of this seed.
    pub(super) fn random(seed: Seed, n: u64) -> Self {
        let [what, which, time] = [0, 1, 2].map(|k| seed.for_call(3 * n + k).get());
        Self { what: what as u8, which, time }
    }
}

impl Checked {
    pub(super) fn new(resolution: Duration, most: usize, now: u64) -> Self {
        let wheel = Wheel::new(resolution, Instant::from_nanos(now)).capacity(most);
        let resolution = (resolution.as_nanos() as u64).max(1);
        let present = now / resolution;
        let (pending, keys) = (BTreeMap::new(), Vec::new());
        Self { wheel, resolution, most, now, present, pending, keys, arrivals: 0 }
    }

    pub(super) fn step(&mut self, Step { what, which, time }: Step) {
        match what % 16 {
            0..=5 => self.insert(self.instant(time)),
            6 | 7 => self.cancel(which),
            8 | 9 => self.reschedule(which, self.instant(time)),
            10..=13 => {
                self.now = self.later(time);
                for _ in 0..which % 8 {
                    self.pop();
                }
            }
            // A clock that steps back.
            14 => self.now = self.now.saturating_sub(time % self.ticks(3)),
            _ if which % 64 == 0 => self.pop_first(),
            _ => self.look(which),
        }
        assert_eq!(self.wheel.len(), self.pending.len());
    }

    /// Times of every size: in the past, in this tick, in every level of the wheel, years away, the last of all.
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

    fn place(&mut self, due: u64) -> (u64, u64) {
        self.arrivals += 1;
        (due.div_ceil(self.resolution).max(self.present), self.arrivals)
    }

    fn insert(&mut self, due: u64) {
        let item = self.arrivals;
        match self.wheel.insert(item, Instant::from_nanos(due)) {
            Ok(key) => {
                assert!(self.pending.len() < self.most, "one more than may be");
                let place = self.place(due);
                self.pending.insert(place, (item, due));
                self.keys.push((key, Some(place)));
            }
            Err(QueueFull(given_back)) => assert_eq!((self.pending.len(), given_back), (self.most, item)),
        }
    }

    fn key(&self, which: u64) -> Option<(usize, Key, Option<(u64, u64)>)> {
        // Mostly one of the last, which may still be pending.
        let most = self.keys.len().min(if which % 4 == 0 { usize::MAX } else { 64 }) as u64;
        let back = (which / 4).checked_rem(most)? as usize;
        let index = self.keys.len() - 1 - back;
        let (key, place) = self.keys[index];
        Some((index, key, place.filter(|place| self.pending.contains_key(place))))
    }

    fn cancel(&mut self, which: u64) {
        let Some((_, key, place)) = self.key(which) else { return };
        let want = place.and_then(|place| self.pending.remove(&place)).map(|(item, _)| item);
        assert_eq!(self.wheel.get(key).copied(), want);
        assert_eq!(self.wheel.cancel(key), want);
        assert_eq!(self.wheel.get(key), None);
        assert_eq!(self.wheel.cancel(key), None);
    }

    fn reschedule(&mut self, which: u64, due: u64) {
        let Some((index, key, place)) = self.key(which) else { return };
        let entry = place.and_then(|place| self.pending.remove(&place));
        assert_eq!(self.wheel.reschedule(key, Instant::from_nanos(due)), entry.is_some());
        if let Some((item, _)) = entry {
            let place = self.place(due);
            self.pending.insert(place, (item, due));
            self.keys[index].1 = Some(place);
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
                assert!(due <= self.now, "early: due at {due}, came at {}", self.now);
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

    fn look(&self, which: u64) {
        let tick = self.pending.keys().next().map(|(tick, _)| tick.saturating_mul(self.resolution));
        let want = tick.map(Instant::from_nanos);
        assert_eq!(self.wheel.next_due(), want);
        let wake = self.wheel.wake_at();
        assert!(wake <= want && wake.is_some() == want.is_some(), "{wake:?}, {want:?}");
        if let (Some(first), Some(wake)) = (want, wake) {
            let near = self.present.saturating_add(256) & !255;
            assert!(wake == first || first.as_nanos() / self.resolution >= near, "{wake:?}, {first:?}");
        }
        if let Some((_, key, place)) = self.key(which) {
            assert_eq!(self.wheel.get(key), place.map(|place| &self.pending[&place].0));
        }
    }

    /// Everything that is left comes, in order.
    pub(super) fn finish(mut self) {
        while !self.pending.is_empty() {
            self.pop_first();
        }
        assert!(self.wheel.is_empty());
        assert_eq!((self.wheel.next_due(), self.wheel.wake_at()), (None, None));
    }
}
