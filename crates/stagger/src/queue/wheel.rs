use core::fmt;
use core::iter::from_fn;
use core::num::NonZeroU64;
use core::time::Duration;

use super::slab::{Key, NIL, Slab};
use super::{QueueFull, lists::Lists};
use crate::Instant;

/// What waits for its time, a million of it if need be: a hierarchical timing wheel in a slab.
///
/// It has no clock and no timer: instants are arguments, all from one clock. [`DelayQueue`](super::DelayQueue) is this
/// with a timer, [`RetryQueue`](super::RetryQueue) the same with decisions.
///
/// - **Never early.** An entry comes at the first multiple of the resolution at or after its time, so late by less than
///   one tick. Only what is due before what has come already, or in the past, comes at once.
/// - **Order**: by tick, and within a tick first in, first out, by the time of insertion or of the last rescheduling.
///   Two entries of one tick come in that order even if the second is due some nanoseconds before the first.
/// - **Cost**: inserting, cancelling and rescheduling take constant time, however many are pending and however far away
///   they are. An entry is moved once for every power of 256 ticks that it had to wait, so not at all for a wait
///   within 256 ticks, and once for a minute of milliseconds.
/// - **Memory**: 24 bytes for each entry beside the item (for items that are aligned to 8 bytes), and 16 KiB. After
///   [`reserve`](Self::reserve) nothing is allocated. What was taken is used again, and given back with the wheel.
/// - **Range**: all of it. At the last instant that can be told everything is due.
/// - **Time moves on**: after a pop at `now`, what is inserted with an earlier time comes at `now`.
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
    /// The tick at which entries came last, or to which there was nothing to come: none is pending before it, and where
    /// an entry hangs follows from it and from the entry's own tick alone.
    cursor: u64,
    /// Nanoseconds to a tick.
    resolution: NonZeroU64,
    most: usize,
}

impl<T> Wheel<T> {
    /// Nothing is pending. A `resolution` of zero is taken for a nanosecond; `now` is where it begins, and only saves
    /// work: nothing that is due earlier is wrong.
    #[must_use]
    pub fn new(resolution: Duration, now: Instant) -> Self {
        let nanos = u64::try_from(resolution.as_nanos()).unwrap_or(u64::MAX);
        let resolution = NonZeroU64::new(nanos).unwrap_or(NonZeroU64::MIN);
        let cursor = now.as_nanos() / resolution;
        Self { slab: Slab::new(), lists: Lists::new(), cursor, resolution, most: Slab::<T>::MOST }
    }

    /// At most so many may be pending. Default, and most: 2³² − 1.
    #[must_use]
    pub fn capacity(mut self, most: usize) -> Self {
        self.bound(most);
        self
    }

    pub(super) fn bound(&mut self, most: usize) {
        self.most = most.min(Slab::<T>::MOST);
    }

    /// Makes room for so many more, so that inserting them allocates nothing.
    pub fn reserve(&mut self, additional: usize) {
        self.slab.reserve(additional.min(self.most.saturating_sub(self.len())));
    }

    /// How many are pending.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.slab.len()
    }

    /// Whether none is pending.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts an item in, to come at `due`.
    ///
    /// # Errors
    /// [`QueueFull`] gives the item back if as many are pending as may be.
    #[inline]
    pub fn insert(&mut self, item: T, due: Instant) -> Result<Key, QueueFull<T>> {
        if self.len() >= self.most {
            return Err(QueueFull(item));
        }
        let tick = self.tick_of(due);
        let key = self.slab.insert(item, tick)?;
        self.lists.append(&mut self.slab, place(self.cursor, tick), key.index);
        Ok(key)
    }

    /// Takes an item out before its time; `None` if it is not pending any more.
    #[inline]
    pub fn cancel(&mut self, key: Key) -> Option<T> {
        let tick = self.slab.due(key)?;
        Some(self.take(tick, key.index)?.1)
    }

    /// Puts it at another time, earlier or later, behind what is due in the same tick already. `false` if it is not
    /// pending any more.
    #[inline]
    pub fn reschedule(&mut self, key: Key, due: Instant) -> bool {
        let Some(before) = self.slab.due(key) else { return false };
        let after = self.tick_of(due);
        self.lists.unlink(&mut self.slab, place(self.cursor, before), key.index);
        self.slab.set_due(key, after);
        self.lists.append(&mut self.slab, place(self.cursor, after), key.index);
        true
    }

    /// The item, if it is still pending.
    #[must_use]
    pub fn get(&self, key: Key) -> Option<&T> {
        self.slab.get(key)
    }

    /// The item, if it is still pending.
    pub fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.slab.get_mut(key)
    }

    /// When the entry comes, if it is still pending.
    #[must_use]
    pub fn due(&self, key: Key) -> Option<Instant> {
        self.slab.due(key).map(|tick| self.instant_of(tick))
    }

    /// When the first entry comes. To know it, up to all entries of one slot are looked at; a timer is better set by
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

    /// When to ask again: no entry comes before. It is the time of the first one if that is less than 256 ticks away,
    /// or else possibly earlier, about once for every power of 256. Constant time.
    #[must_use]
    pub fn wake_at(&self) -> Option<Instant> {
        self.lists.first(self.cursor).map(|first| self.instant_of(first.tick))
    }

    /// The next entry that is due at `now`, if one is.
    #[inline]
    pub fn pop(&mut self, now: Instant) -> Option<T> {
        self.pop_until(self.present(now)).map(|(_, item)| item)
    }

    /// Everything that is due at `now`, one by one: what is not asked for stays.
    pub fn pop_due(&mut self, now: Instant) -> impl Iterator<Item = T> {
        let tick = self.present(now);
        from_fn(move || self.pop_until(tick).map(|(_, item)| item))
    }

    /// The first entry and when it is due, whatever the time. What is inserted afterwards comes after it.
    pub fn pop_first(&mut self) -> Option<(Instant, T)> {
        self.pop_until(END).map(|(tick, item)| (self.instant_of(tick), item))
    }

    /// The next entry that is due at this tick, if one is. [`END`] is for everything, and is no present.
    #[inline]
    fn pop_until(&mut self, tick: u64) -> Option<(u64, T)> {
        loop {
            let first = self.lists.first(self.cursor);
            let Some(first) = first.filter(|first| first.tick <= tick) else {
                // Nothing hangs differently from there: the beginning of a slot would have been met before.
                if tick != END {
                    self.cursor = self.cursor.max(tick);
                }
                return None;
            };
            self.cursor = first.tick;
            if first.level == 0 {
                let head = self.lists.head(first.list);
                return self.take(first.tick, head);
            }
            self.spread_out(first.list);
        }
    }

    /// Hangs the entries of one slot, which the cursor has just entered, where they belong now, in their order.
    fn spread_out(&mut self, list: usize) {
        let mut index = self.lists.clear(list);
        while index != NIL {
            let Some(tick) = self.slab.tick_at(index) else { return };
            let next = self.slab.link(index).next;
            self.lists.append(&mut self.slab, place(self.cursor, tick), index);
            index = next;
        }
    }

    #[inline]
    fn take(&mut self, tick: u64, index: u32) -> Option<(u64, T)> {
        self.lists.unlink(&mut self.slab, place(self.cursor, tick), index);
        Some((tick, self.slab.remove(index)?))
    }

    /// The last tick that has come, as an instant: what is due then is due at once.
    pub(super) fn last_tick(&self, now: Instant) -> Instant {
        self.instant_of(now.as_nanos() / self.resolution)
    }

    /// The last tick that is not after `now`.
    #[inline]
    fn present(&self, now: Instant) -> u64 {
        if now.as_nanos() == u64::MAX { END } else { now.as_nanos() / self.resolution }
    }

    /// The first tick that is not before `due`, or the present one if that has passed.
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

/// Not before any tick.
const END: u64 = u64::MAX;

/// Where an entry hangs: in the level of the highest byte in which its tick differs from the cursor, in the slot that
/// this byte names. So everything in one level comes before everything in the next, and a slot begins when the cursor
/// has reached its byte.
#[inline]
const fn place(cursor: u64, tick: u64) -> usize {
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
