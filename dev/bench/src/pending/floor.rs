//! The lower bound for a delay queue: a hashed timing wheel in a slab, for delays up to one turn of the wheel.

use core::hint::black_box;

use super::load::{Delays, Item, LONGEST_MS, PENDING, Pending, cancelled, due, on};
use crate::case::{Case, Role};

/// Returns the hand-written rows.
pub(super) fn cases() -> Vec<Case> {
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
