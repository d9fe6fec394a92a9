use super::event::Event;

/// Events in any number of bins, in one piece of memory.
///
/// A bin is a chain of chunks. A vector for each would double when it is full and keep what it once needed; here an event
/// takes its eight bytes and a bin half a chunk, and a bin itself is four bytes, so those in use stay in the cache.
pub(super) struct Chunks {
    events: Vec<Event>,
    /// The chunk before this one in its bin, or behind it in the list of free ones.
    links: Vec<u32>,
    /// The first free chunk; 0, which is never used, for none.
    free: u32,
    bits: u32,
}

/// The events of one bin: where the last of them ends in the memory. 0 is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bin(u32);

impl Bin {
    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl Chunks {
    /// For about so many events in so many bins.
    pub(super) fn new(events: usize, bins: usize) -> Self {
        // From one cache line to one page of memory: a few events in many bins shall not touch more than they need.
        let bits = (events / bins).clamp(8, 512).next_power_of_two().trailing_zeros();
        let mut chunks = Self { events: Vec::new(), links: Vec::new(), free: 0, bits };
        chunks.events.reserve_exact(events + (bins.min(events) << bits) / 2);
        chunks.grow();
        chunks
    }

    #[inline]
    pub(super) fn push(&mut self, bin: &mut Bin, event: Event) {
        let mask = (1 << self.bits) - 1;
        if bin.0 & mask == 0 {
            bin.0 = self.chain(bin.0 >> self.bits);
        }
        self.events[bin.0 as usize] = event;
        bin.0 += 1;
    }

    /// Puts a new chunk behind the full one that ends where chunk `after` begins, or at the beginning of a bin if that
    /// is 0. Says where it begins.
    #[inline(never)]
    fn chain(&mut self, after: u32) -> u32 {
        let chunk = match self.free {
            0 => self.grow(),
            chunk => {
                self.free = self.links[chunk as usize];
                chunk
            }
        };
        self.links[chunk as usize] = after.saturating_sub(1);
        chunk << self.bits
    }

    fn grow(&mut self) -> u32 {
        let chunk = self.links.len() as u32;
        self.links.push(0);
        self.events.resize(self.events.len() + (1 << self.bits), Event::new(0, 0));
        chunk
    }

    /// The events of a bin, a chunk at a time, the last one first.
    pub(super) fn slices(&self, bin: Bin) -> impl Iterator<Item = &[Event]> {
        let mut end = bin.0;
        core::iter::from_fn(move || {
            let chunk = end.checked_sub(1)? >> self.bits;
            let slice = &self.events[(chunk << self.bits) as usize..end as usize];
            end = match self.links[chunk as usize] {
                0 => 0,
                before => (before + 1) << self.bits,
            };
            Some(slice)
        })
    }

    /// Empties a bin.
    pub(super) fn release(&mut self, bin: &mut Bin) {
        let Some(last) = core::mem::take(&mut bin.0).checked_sub(1) else { return };
        let first_free = core::mem::replace(&mut self.free, last >> self.bits);
        let mut chunk = self.free as usize;
        while self.links[chunk] != 0 {
            chunk = self.links[chunk] as usize;
        }
        self.links[chunk] = first_free;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(chunks: &Chunks, bin: Bin) -> Vec<u64> {
        let mut times: Vec<_> = chunks.slices(bin).flatten().map(|event| event.at()).collect();
        times.sort_unstable();
        times
    }

    #[test]
    fn a_bin_holds_what_was_put_into_it_and_no_other_does() {
        let mut chunks = Chunks::new(100, 3);
        let mut bins = [Bin::default(); 3];
        for at in 0..3_000 {
            chunks.push(&mut bins[(at % 3) as usize], Event::new(at, 0));
        }
        for (bin, rest) in bins.into_iter().zip(0..) {
            assert_eq!(content(&chunks, bin), (0..1_000).map(|n| n * 3 + rest).collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_was_released_is_used_again_before_memory_grows() {
        let mut chunks = Chunks::new(1_000, 1);
        let mut kept = Bin::default();
        (0..100).for_each(|at| chunks.push(&mut kept, Event::new(at, 1)));
        let mut size = None;
        for round in 0..10 {
            let mut bin = Bin::default();
            (0..777).for_each(|at| chunks.push(&mut bin, Event::new(at + round, 0)));
            assert_eq!(content(&chunks, bin).len(), 777);
            chunks.release(&mut bin);
            assert!(bin.is_empty());
            assert_eq!(*size.get_or_insert(chunks.events.len()), chunks.events.len(), "round {round}");
        }
        assert_eq!(content(&chunks, kept), (0..100).collect::<Vec<_>>());
    }
}
