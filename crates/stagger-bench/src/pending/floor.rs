//! The least that a queue of delays can be: a hashed timing wheel in a slab, for waits up to its circumference.

use core::hint::black_box;

use super::load::{Item, LONGEST_MS, PENDING, Pending, Waits, cancelled, due, on};
use crate::case::{Case, Role};

/// Rows written by hand.
pub(super) fn cases() -> Vec<Case> {
    let name = "hashed wheel in a slab";
    vec![
        due(Role::Floor, name, on!(OneWay, OneWay::due)).note("no clock, cannot cancel"),
        cancelled(Role::Floor, name, on!(BothWays, BothWays::cancel)),
    ]
}

/// A slot for every millisecond of the longest wait.
const SLOTS: usize = (LONGEST_MS + 1).next_power_of_two() as usize;
const NIL: u32 = u32::MAX;

/// A wheel out of which nothing can be taken but what is first in its slot.
struct OneWay {
    heads: Vec<u32>,
    entries: Vec<Link>,
    now: u64,
    waits: Waits,
}

#[derive(Clone, Copy)]
struct Link {
    next: u32,
    item: Item,
}

impl OneWay {
    fn hang(&mut self, index: u32) {
        let slot = (self.now + self.waits.next_ms()) as usize % SLOTS;
        self.entries[index as usize].next = core::mem::replace(&mut self.heads[slot], index);
    }
}

impl Pending for OneWay {
    fn full() -> Self {
        let entries = (0..PENDING).map(|item| Link { next: NIL, item: Item::from(item) }).collect();
        let mut wheel = Self { heads: vec![NIL; SLOTS], entries, now: 0, waits: Waits::new() };
        (0..PENDING).for_each(|index| wheel.hang(index));
        wheel
    }
}

impl OneWay {
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
            self.hang(first);
        }
    }
}

/// A wheel whose entries know where they hang.
struct BothWays {
    heads: Vec<u32>,
    entries: Vec<Links>,
    waits: Waits,
}

/// The items are numbered like their places.
#[derive(Clone, Copy)]
struct Links {
    prev: u32,
    next: u32,
    slot: u32,
    item: u32,
}

impl BothWays {
    fn hang(&mut self, index: u32) {
        let slot = self.waits.next_ms() as usize % SLOTS;
        let next = core::mem::replace(&mut self.heads[slot], index);
        if let Some(next) = self.entries.get_mut(next as usize) {
            next.prev = index;
        }
        let entry = &mut self.entries[index as usize];
        *entry = Links { prev: NIL, next, slot: slot as u32, item: entry.item };
    }

    fn take(&mut self, index: u32) -> u32 {
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

impl Pending for BothWays {
    fn full() -> Self {
        let entries = (0..PENDING).map(|item| Links { prev: NIL, next: NIL, slot: 0, item }).collect();
        let mut wheel = Self { heads: vec![NIL; SLOTS], entries, waits: Waits::new() };
        (0..PENDING).for_each(|index| wheel.hang(index));
        wheel
    }
}

impl BothWays {
    fn cancel(&mut self, times: u64) {
        for _ in 0..times {
            let index = self.waits.pick() as u32;
            black_box(self.take(index));
            self.hang(index);
        }
    }
}
