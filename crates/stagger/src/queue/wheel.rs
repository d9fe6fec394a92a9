//! A timing wheel: eight levels of 256 lists each, with bitmaps of the occupied ones.

use core::fmt;
use core::iter::from_fn;
use core::num::NonZeroU64;
use core::time::Duration;

use stagger_core::Instant;

use super::QueueFull;
use super::slab::{Key, Link, NIL, Slab};

/// A hierarchical timing wheel in a slab: up to millions of items, each due at its own instant.
///
/// It has no clock and no timer: instants are arguments, all from one clock. [`DelayQueue`](super::DelayQueue) adds a
/// timer, [`RetryQueue`](super::RetryQueue) also adds decisions.
///
/// - **Never early.** An entry is yielded at the first multiple of the resolution at or after its due time, so it is
///   late by less than one tick. Only an entry due before one that was already yielded, or in the past, is yielded
///   immediately.
/// - **Order**: by tick, and within a tick first in, first out, by the time of insertion or of the last rescheduling.
///   Two entries of one tick keep that order even if the second is due some nanoseconds before the first.
/// - **Cost**: inserting, cancelling and rescheduling take constant time, however many entries are pending and however
///   far in the future they are due. An entry is moved once for each power of 256 ticks in its wait: never for a wait
///   within 256 ticks, once for a minute of milliseconds.
/// - **Memory**: 24 bytes per entry beside the item (for items aligned to 8 bytes), and 16 KiB. After
///   [`reserve`](Self::reserve) nothing is allocated. Memory is reused, and freed with the wheel.
/// - **Range**: every instant. At the last representable instant everything is due.
/// - **Monotonic**: after a pop at `now`, an entry inserted with an earlier due time is due at `now`.
///
/// ```
/// use std::time::Duration;
/// use stagger::Instant;
/// use stagger::queue::Wheel;
///
/// let at = |ms| Instant::ZERO.saturating_add(Duration::from_millis(ms));
/// let mut wheel = Wheel::new(Duration::from_millis(1), Instant::ZERO);
/// let late = wheel.insert("late", at(60_000))?;
/// wheel.insert("soon", at(20))?;
/// wheel.insert("never", at(30)).map(|key| wheel.cancel(key))?;
///
/// assert_eq!(wheel.next_due(), Some(at(20)));
/// assert_eq!(wheel.pop(at(19)), None);
/// assert_eq!(wheel.pop_due(at(50)).collect::<Vec<_>>(), ["soon"]);
/// assert!(wheel.reschedule(late, at(55)));
/// assert_eq!(wheel.pop(at(55)), Some("late"));
/// # Ok::<(), stagger::queue::QueueFull<&str>>(())
/// ```
pub struct Wheel<T> {
    slab: Slab<T>,
    lists: Lists,
    /// The tick up to which everything due has been yielded: no entry is pending before it, and the list of an entry
    /// follows from it and from the entry's own tick alone.
    cursor: u64,
    /// Nanoseconds per tick.
    resolution: NonZeroU64,
    capacity: usize,
}

impl<T> Wheel<T> {
    /// Creates an empty wheel. A `resolution` of zero is treated as one nanosecond. `now` is where the wheel starts; it
    /// only saves work, and entries due earlier are allowed.
    #[must_use]
    pub fn new(resolution: Duration, now: Instant) -> Self {
        let nanos = u64::try_from(resolution.as_nanos()).unwrap_or(u64::MAX);
        let resolution = NonZeroU64::new(nanos).unwrap_or(NonZeroU64::MIN);
        let cursor = now.as_nanos() / resolution;
        Self { slab: Slab::new(), lists: Lists::new(), cursor, resolution, capacity: Slab::<T>::MAX_LEN }
    }

    /// Sets how many entries may be pending; an insertion beyond that is rejected. Default and maximum: 2³² − 1.
    #[must_use]
    pub fn capacity(mut self, capacity: usize) -> Self {
        self.capacity = capacity.min(Slab::<T>::MAX_LEN);
        self
    }

    /// Reserves memory for at least `additional` more entries, so that inserting them does not allocate.
    pub fn reserve(&mut self, additional: usize) {
        self.slab.reserve(additional.min(self.capacity.saturating_sub(self.len())));
    }

    /// Returns the number of pending entries.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.slab.len()
    }

    /// Returns true if no entry is pending.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Adds an item that is due at `due`.
    ///
    /// # Errors
    /// Returns [`QueueFull`], with the item, if the wheel is at capacity.
    #[inline]
    pub fn insert(&mut self, item: T, due: Instant) -> Result<Key, QueueFull<T>> {
        if self.len() >= self.capacity {
            return Err(QueueFull(item));
        }
        let tick = self.tick_of(due);
        let key = self.slab.insert(item, tick)?;
        self.lists.append(&mut self.slab, list_of(self.cursor, tick), key.index);
        Ok(key)
    }

    /// Removes an item before it is due. Returns `None` if it is no longer pending.
    #[inline]
    pub fn cancel(&mut self, key: Key) -> Option<T> {
        let tick = self.slab.due(key)?;
        Some(self.take(tick, key.index)?.1)
    }

    /// Moves an entry to another due time, earlier or later, after those already due in the same tick. Returns `false`
    /// if it is no longer pending.
    #[inline]
    pub fn reschedule(&mut self, key: Key, due: Instant) -> bool {
        let Some(before) = self.slab.due(key) else { return false };
        let after = self.tick_of(due);
        self.lists.unlink(&mut self.slab, list_of(self.cursor, before), key.index);
        self.slab.set_due(key, after);
        self.lists.append(&mut self.slab, list_of(self.cursor, after), key.index);
        true
    }

    /// Returns the item, if it is still pending.
    #[must_use]
    pub fn get(&self, key: Key) -> Option<&T> {
        self.slab.get(key)
    }

    /// Returns a mutable reference to the item, if it is still pending.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.slab.get_mut(key)
    }

    /// Returns when the entry is due, if it is still pending.
    #[must_use]
    pub fn due(&self, key: Key) -> Option<Instant> {
        self.slab.due(key).map(|tick| self.instant_of(tick))
    }

    /// Returns when the first entry is due. This visits up to all entries of one slot; to arm a timer, prefer
    /// [`wake_at`](Self::wake_at).
    #[must_use]
    pub fn next_due(&self) -> Option<Instant> {
        let first = self.lists.first(self.cursor)?;
        let tick = match first.level {
            0 => first.tick,
            _ => self.ticks_of(first.list).min()?,
        };
        Some(self.instant_of(tick))
    }

    /// Returns when to call [`pop`](Self::pop) next: no entry is due before. This is the due time of the first entry if
    /// that is less than 256 ticks away, and possibly earlier otherwise, about once for each power of 256. Constant
    /// time.
    #[must_use]
    pub fn wake_at(&self) -> Option<Instant> {
        self.lists.first(self.cursor).map(|first| self.instant_of(first.tick))
    }

    /// Removes and returns the next entry that is due at `now`, if there is one.
    #[inline]
    pub fn pop(&mut self, now: Instant) -> Option<T> {
        self.pop_until(self.current_tick(now)).map(|(_, item)| item)
    }

    /// Removes and returns the entries that are due at `now`, one by one; entries that are not consumed stay.
    pub fn pop_due(&mut self, now: Instant) -> impl Iterator<Item = T> {
        let tick = self.current_tick(now);
        from_fn(move || self.pop_until(tick).map(|(_, item)| item))
    }

    /// Removes and returns the first entry and its due time, whether or not it is due. Entries inserted afterwards come
    /// after it.
    pub fn pop_first(&mut self) -> Option<(Instant, T)> {
        self.pop_until(END).map(|(tick, item)| (self.instant_of(tick), item))
    }

    /// Removes and returns the next entry that is due at this tick. [`END`] stands for all entries, and is not a
    /// current tick.
    #[inline]
    fn pop_until(&mut self, tick: u64) -> Option<(u64, T)> {
        let (due, index) = self.first_until(tick)?;
        self.take(due, index)
    }

    /// Returns whether an entry is due at `now`.
    #[inline]
    pub(super) fn is_due(&mut self, now: Instant) -> bool {
        self.first_until(self.current_tick(now)).is_some()
    }

    /// Returns the key of the next entry that is due at `now`, if there is one.
    pub(super) fn first_due(&mut self, now: Instant) -> Option<Key> {
        let (_, index) = self.first_until(self.current_tick(now))?;
        self.slab.key(index)
    }

    /// Returns the tick and the index of the next entry that is due at this tick.
    #[inline]
    fn first_until(&mut self, tick: u64) -> Option<(u64, u32)> {
        loop {
            let first = self.lists.first(self.cursor);
            let Some(first) = first.filter(|first| first.tick <= tick) else {
                // No entry changes its list: the start of a slot would have been reached before.
                if tick != END {
                    self.cursor = self.cursor.max(tick);
                }
                return None;
            };
            self.cursor = first.tick;
            if first.level == 0 {
                return Some((first.tick, self.lists.head(first.list)));
            }
            self.cascade(first.list);
        }
    }

    /// Moves the entries of one slot, which the cursor has just entered, to their lists of lower levels, in order.
    fn cascade(&mut self, list: usize) {
        let mut index = self.lists.clear(list);
        while index != NIL {
            let Some(tick) = self.slab.tick_at(index) else { return };
            let next = self.slab.link(index).next;
            self.lists.append(&mut self.slab, list_of(self.cursor, tick), index);
            index = next;
        }
    }

    #[inline]
    fn take(&mut self, tick: u64, index: u32) -> Option<(u64, T)> {
        self.lists.unlink(&mut self.slab, list_of(self.cursor, tick), index);
        Some((tick, self.slab.remove(index)?))
    }

    /// Returns the latest tick as an instant: an entry due at it is due immediately.
    pub(super) fn last_tick(&self, now: Instant) -> Instant {
        self.instant_of(now.as_nanos() / self.resolution)
    }

    /// Returns the last tick that is not after `now`.
    #[inline]
    fn current_tick(&self, now: Instant) -> u64 {
        if now.as_nanos() == u64::MAX { END } else { now.as_nanos() / self.resolution }
    }

    /// Returns the first tick that is not before `due`, or the current one if that has passed.
    #[inline]
    fn tick_of(&self, due: Instant) -> u64 {
        due.as_nanos().div_ceil(self.resolution.get()).max(self.cursor)
    }

    fn instant_of(&self, tick: u64) -> Instant {
        Instant::from_nanos(tick.saturating_mul(self.resolution.get()))
    }

    fn ticks_of(&self, list: usize) -> impl Iterator<Item = u64> {
        let mut index = self.lists.head(list);
        from_fn(move || {
            let tick = self.slab.tick_at(index)?;
            index = self.slab.link(index).next;
            Some(tick)
        })
    }
}

/// No tick is after it.
const END: u64 = u64::MAX;

/// Returns the list of an entry: in the level of the highest byte in which its tick differs from the cursor, in the
/// slot selected by that byte. So all entries of a level are due before those of the next, and a slot begins when the
/// cursor has reached its byte.
#[inline]
const fn list_of(cursor: u64, tick: u64) -> usize {
    let level = ((cursor ^ tick) | 1).ilog2() / 8;
    ((level as usize) << 8) | ((tick >> (8 * level)) & 0xff) as usize
}

impl<T> fmt::Debug for Wheel<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Wheel")
            .field("pending", &self.len())
            .field("resolution", &Duration::from_nanos(self.resolution.get()))
            .field("next_due", &self.next_due())
            .finish_non_exhaustive()
    }
}

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
