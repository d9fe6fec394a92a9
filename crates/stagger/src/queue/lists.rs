//! The slots of the wheel: eight levels of 256 lists, with bitmaps of the occupied ones.

use super::slab::{Link, NIL, Slab};

const LEVELS: usize = 8;
const SLOTS: usize = 256;
const WORDS: usize = SLOTS / 64;

pub(super) struct Lists {
    lists: Box<[List; LEVELS * SLOTS]>,
    /// A bit for each non-empty list.
    occupied: [[u64; WORDS]; LEVELS],
    /// A bit for each level with a non-empty list.
    levels: u8,
}

#[derive(Clone, Copy)]
struct List {
    head: u32,
    tail: u32,
}

/// The first occupied slot.
pub(super) struct FirstSlot {
    pub(super) level: u32,
    /// First tick of the slot; in level 0, the tick of all its entries.
    pub(super) tick: u64,
    pub(super) list: usize,
}

impl Lists {
    pub(super) fn new() -> Self {
        let lists = Box::new([List { head: NIL, tail: NIL }; LEVELS * SLOTS]);
        Self { lists, occupied: [[0; WORDS]; LEVELS], levels: 0 }
    }

    /// Returns the first occupied slot. All entries of a level are due before those of the next, and none is due before
    /// the cursor, so it is the first bit of the first level.
    #[inline]
    pub(super) fn first(&self, cursor: u64) -> Option<FirstSlot> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros();
        let words = &self.occupied[level as usize];
        let word = words.iter().position(|word| *word != 0)?;
        let slot = word * 64 + words[word].trailing_zeros() as usize;
        let shift = 8 * level;
        let tick = (((cursor >> shift) & !0xff) | slot as u64) << shift;
        Some(FirstSlot { level, tick, list: ((level as usize) << 8) | slot })
    }

    pub(super) fn head(&self, list: usize) -> u32 {
        self.lists[list].head
    }

    #[inline]
    pub(super) fn append<T>(&mut self, slab: &mut Slab<T>, list: usize, index: u32) {
        let List { head, tail } = self.lists[list];
        *slab.link_mut(index) = Link { prev: tail, next: NIL };
        if head == NIL {
            self.lists[list] = List { head: index, tail: index };
            let (level, slot) = (list >> 8, list & 0xff);
            self.occupied[level][slot / 64] |= 1 << (slot % 64);
            self.levels |= 1 << level;
        } else {
            slab.link_mut(tail).next = index;
            self.lists[list].tail = index;
        }
    }

    #[inline]
    pub(super) fn unlink<T>(&mut self, slab: &mut Slab<T>, list: usize, index: u32) {
        let Link { prev, next } = slab.link(index);
        match prev {
            NIL => self.lists[list].head = next,
            _ => slab.link_mut(prev).next = next,
        }
        match next {
            NIL => self.lists[list].tail = prev,
            _ => slab.link_mut(next).prev = prev,
        }
        if self.lists[list].head == NIL {
            self.vacate(list);
        }
    }

    /// Empties the list, and returns its first entry.
    pub(super) fn clear(&mut self, list: usize) -> u32 {
        let head = core::mem::replace(&mut self.lists[list], List { head: NIL, tail: NIL }).head;
        self.vacate(list);
        head
    }

    fn vacate(&mut self, list: usize) {
        let (level, slot) = (list >> 8, list & 0xff);
        self.occupied[level][slot / 64] &= !(1 << (slot % 64));
        if self.occupied[level] == [0; WORDS] {
            self.levels &= !(1 << level);
        }
    }
}
