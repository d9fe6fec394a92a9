//! Storage of the entries: two parallel arrays with a free list.

use core::error::Error;
use core::fmt;

/// Identifies an entry of the queue that returned it; meaningless to any other queue. Once the entry has been yielded
/// or cancelled the key identifies nothing: slots are reused, keys are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key {
    pub(super) index: u32,
    generation: u32,
}

/// The index that stands for no entry.
pub(super) const NIL: u32 = u32::MAX;

/// Links are stored apart from the entries. Walking a list means waiting for memory, one link after another; so links
/// lie close together, while the entries they refer to are fetched in parallel.
pub(super) struct Slab<T> {
    links: Vec<Link>,
    entries: Vec<Entry<T>>,
    free: u32,
    len: usize,
}

#[derive(Clone, Copy)]
pub(super) struct Link {
    pub(super) prev: u32,
    pub(super) next: u32,
}

/// The tag of a flat enum fits into its padding; an `Option` of the item would take another 8 bytes.
enum Entry<T> {
    Free { generation: u32 },
    Pending { generation: u32, tick: u64, item: T },
}

impl<T> Entry<T> {
    #[inline]
    const fn generation(&self) -> u32 {
        match self {
            Self::Free { generation } | Self::Pending { generation, .. } => *generation,
        }
    }
}

impl<T> Slab<T> {
    /// Indexes are `u32`, and one value stands for no entry.
    pub(super) const MAX_LEN: usize = NIL as usize;

    pub(super) const fn new() -> Self {
        Self { links: Vec::new(), entries: Vec::new(), free: NIL, len: 0 }
    }

    pub(super) const fn len(&self) -> usize {
        self.len
    }

    pub(super) fn reserve(&mut self, additional: usize) {
        let further = additional.saturating_sub(self.entries.len() - self.len);
        self.links.reserve(further);
        self.entries.reserve(further);
    }

    #[inline]
    pub(super) fn insert(&mut self, item: T, tick: u64) -> Result<Key, QueueFull<T>> {
        let index = if self.free == NIL { self.entries.len() } else { self.free as usize };
        if index >= Self::MAX_LEN {
            return Err(QueueFull(item));
        }
        let generation = match self.entries.get_mut(index) {
            Some(entry) => {
                self.free = self.links[index].next;
                let generation = entry.generation();
                *entry = Entry::Pending { generation, tick, item };
                generation
            }
            None => {
                self.links.push(Link { prev: NIL, next: NIL });
                self.entries.push(Entry::Pending { generation: 0, tick, item });
                0
            }
        };
        self.len += 1;
        Ok(Key { index: index as u32, generation })
    }

    /// Removes an entry that is no longer in any list.
    #[inline]
    pub(super) fn remove(&mut self, index: u32) -> Option<T> {
        let entry = self.entries.get_mut(index as usize)?;
        let before = entry.generation();
        let Entry::Pending { item, .. } = core::mem::replace(entry, Entry::Free { generation: before.wrapping_add(1) })
        else {
            return None;
        };
        // A slot that has used up its generations is retired, so that no key ever refers to two entries.
        if before != u32::MAX {
            self.links[index as usize].next = core::mem::replace(&mut self.free, index);
        }
        self.len -= 1;
        Some(item)
    }

    /// Returns the tick at which the entry is due, or `None` if the key is stale.
    #[inline]
    pub(super) fn due(&self, key: Key) -> Option<u64> {
        self.pending(key).map(|(tick, _)| tick)
    }

    pub(super) fn get(&self, key: Key) -> Option<&T> {
        self.pending(key).map(|(_, item)| item)
    }

    #[inline]
    fn pending(&self, key: Key) -> Option<(u64, &T)> {
        match self.entries.get(key.index as usize)? {
            Entry::Pending { generation, tick, item } if *generation == key.generation => Some((*tick, item)),
            _ => None,
        }
    }

    #[inline]
    pub(super) fn set_due(&mut self, key: Key, to: u64) {
        if let Some(Entry::Pending { tick, .. }) = self.entries.get_mut(key.index as usize) {
            *tick = to;
        }
    }

    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        match self.entries.get_mut(key.index as usize) {
            Some(Entry::Pending { generation, item, .. }) if *generation == key.generation => Some(item),
            _ => None,
        }
    }

    /// Returns the key of the entry at this index.
    pub(super) fn key(&self, index: u32) -> Option<Key> {
        let generation = self.entries.get(index as usize)?.generation();
        Some(Key { index, generation })
    }

    /// Returns the tick at which the entry at this index is due.
    #[inline]
    pub(super) fn tick_at(&self, index: u32) -> Option<u64> {
        match self.entries.get(index as usize) {
            Some(Entry::Pending { tick, .. }) => Some(*tick),
            _ => None,
        }
    }

    /// Returns the neighbors of the entry at this index.
    #[inline]
    pub(super) fn link(&self, index: u32) -> Link {
        self.links[index as usize]
    }

    #[inline]
    pub(super) fn link_mut(&mut self, index: u32) -> &mut Link {
        &mut self.links[index as usize]
    }
}

/// The error of a push to a queue at capacity; contains the rejected item.
///
/// Complete, like the errors of the standard library's channels: the item is all there is to return.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct QueueFull<T>(pub T);

impl<T> fmt::Debug for QueueFull<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("QueueFull(..)")
    }
}

impl<T> fmt::Display for QueueFull<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the queue is at capacity; raise its capacity, or push again when items have completed")
    }
}

impl<T> Error for QueueFull<T> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_takes_24_bytes_beside_the_item() {
        assert_eq!(size_of::<Link>() + size_of::<Entry<u64>>(), 8 + 24);
        assert_eq!(size_of::<Link>() + size_of::<Entry<[u64; 6]>>(), 48 + 24);
        assert_eq!(size_of::<Link>() + size_of::<Entry<String>>(), size_of::<String>() + 24);
    }

    #[test]
    fn a_slot_with_used_up_generations_is_retired() {
        let mut slab = Slab::new();
        let mut last = slab.insert("first", 1).unwrap();
        slab.entries[0] = Entry::Pending { generation: u32::MAX, tick: 1, item: "last" };
        last.generation = u32::MAX;
        assert_eq!(slab.get(last), Some(&"last"));
        assert_eq!((slab.remove(0), slab.len()), (Some("last"), 0));
        let other = slab.insert("other", 1).unwrap();
        assert_eq!((other.index, slab.get(last), slab.get(other)), (1, None, Some(&"other")));
    }
}
