use super::event::Event;

/// Storage for events with the state of their clients, in any number of bins, in one allocation.
///
/// A bin is a linked list of chunks. A vector per bin would double its capacity when full and never release it; here a
/// bin wastes half a chunk on average. A bin itself is four bytes, so the bins in use stay in the cache.
///
/// The state of a client is stored with its event instead of at a fixed position, so that memory is written and read
/// sequentially. Only the sort within a bin, which fits into a cache, accesses it randomly.
pub(super) struct Chunks<C> {
    events: Vec<Event>,
    clients: Vec<C>,
    /// The previous chunk of the same bin, or the next one in the free list.
    links: Vec<u32>,
    /// The first free chunk; 0, which is never used, if there is none.
    free: u32,
    bits: u32,
    /// The value of unused entries.
    filler: C,
}

/// The events of one bin: the end position of its last event; 0 if the bin is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Bin(u32);

impl Bin {
    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl<C: Copy> Chunks<C> {
    /// Creates storage for about `events` events in `bins` bins.
    pub(super) fn new(events: usize, bins: usize, filler: C) -> Self {
        // A few events in many bins should not touch much more memory than they need.
        let bits = (events / bins).clamp(4, 1024).next_power_of_two().trailing_zeros();
        let enough = events + ((bins.min(events) + 1) << bits) / 2;
        let (events, clients) = (Vec::with_capacity(enough), Vec::with_capacity(enough));
        Self { events, clients, links: vec![0], free: 0, bits, filler }
    }

    #[inline]
    pub(super) fn push(&mut self, bin: &mut Bin, event: Event, client: &C) {
        let mask = (1 << self.bits) - 1;
        if bin.0 & mask == 0 {
            bin.0 = self.append_chunk(bin.0 >> self.bits);
        }
        self.events[bin.0 as usize] = event;
        self.clients[bin.0 as usize] = *client;
        bin.0 += 1;
    }

    /// Appends a chunk to the full one that ends where chunk `after` starts, or starts a new bin if `after` is 0.
    /// Returns the start position of the new chunk.
    #[inline(never)]
    fn append_chunk(&mut self, after: u32) -> u32 {
        let mut chunk = self.free;
        if chunk == 0 {
            chunk = self.links.len() as u32;
            self.links.push(0);
            self.events.resize(self.links.len() << self.bits, Event::new(0, 0));
            self.clients.resize(self.links.len() << self.bits, self.filler);
        }
        // 0, the link of a new chunk, stands for an empty list.
        self.free = self.links[chunk as usize];
        self.links[chunk as usize] = after.saturating_sub(1);
        chunk << self.bits
    }

    /// Returns the events of a bin with their clients, one chunk at a time.
    pub(super) fn slices(&self, bin: Bin) -> impl Iterator<Item = (&[Event], &[C])> {
        let mut end = bin.0;
        core::iter::from_fn(move || {
            let chunk = end.checked_sub(1)? >> self.bits;
            let range = (chunk << self.bits) as usize..end as usize;
            end = match self.links[chunk as usize] {
                0 => 0,
                before => (before + 1) << self.bits,
            };
            Some((&self.events[range.clone()], &self.clients[range]))
        })
    }

    pub(super) fn release(&mut self, bin: Bin) {
        let Some(last) = bin.0.checked_sub(1) else { return };
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

    /// Returns the times of the events; each event's client holds the same time.
    fn content(chunks: &Chunks<u64>, bin: Bin) -> Vec<u64> {
        let slices = chunks.slices(bin).flat_map(|(events, clients)| events.iter().zip(clients));
        let mut times: Vec<_> = slices.map(|(event, client)| (event.at(), *client)).collect();
        assert!(times.iter().all(|(at, client)| at == client), "{times:?}");
        times.sort_unstable();
        times.into_iter().map(|(at, _)| at).collect()
    }

    fn push(chunks: &mut Chunks<u64>, bin: &mut Bin, at: u64) {
        chunks.push(bin, Event::new(at, 0), &at);
    }

    #[test]
    fn a_bin_holds_exactly_its_own_events() {
        let mut chunks = Chunks::new(100, 3, 0);
        let mut bins = [Bin::default(); 3];
        for at in 0..3_000 {
            push(&mut chunks, &mut bins[(at % 3) as usize], at);
        }
        for (bin, rest) in bins.into_iter().zip(0..) {
            assert_eq!(content(&chunks, bin), (0..1_000).map(|n| n * 3 + rest).collect::<Vec<_>>());
        }
    }

    #[test]
    fn released_chunks_are_reused_before_memory_grows() {
        let mut chunks = Chunks::new(1_000, 1, 0);
        let mut kept = Bin::default();
        (0..100).for_each(|at| push(&mut chunks, &mut kept, at));
        let mut size = None;
        for round in 0..10 {
            let mut bin = Bin::default();
            (0..777).for_each(|at| push(&mut chunks, &mut bin, at + round));
            assert_eq!(content(&chunks, bin).len(), 777);
            chunks.release(bin);
            assert_eq!(*size.get_or_insert(chunks.events.len()), chunks.events.len(), "round {round}");
        }
        chunks.release(Bin::default());
        assert_eq!(content(&chunks, kept), (0..100).collect::<Vec<_>>());
    }
}
