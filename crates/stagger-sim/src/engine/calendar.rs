//! The calendar queue: an engine whose memory accesses are sequential.

use std::collections::BTreeMap;

use super::event::{CLIENT_BITS, Event, Simulation};
use super::progress::{Cancelled, Progress};

/// Logarithm of the maximum bin width, 16 ms. The sort within a bin needs one counter per microsecond.
const MAX_BIN_BITS: u32 = 14;

/// The ring of bins spans a minute, so that almost all events are inserted directly into their bins. Narrow bins need a
/// longer ring, up to 2 to this power.
const MAX_RING_BITS: u32 = 18;
const MINUTE_BITS: u32 = 26;

/// Number of clients loaded together: enough for parallel memory accesses, few enough for the first-level cache.
const BLOCK: usize = 64;

/// Number of bits of a key for the position of the client in its bin. Above them are the low bits of the event.
const INDEX_BITS: u32 = u64::BITS - MAX_BIN_BITS - CLIENT_BITS;

/// Runs a simulation with a calendar queue, in which two events of a client are at least `min_event_interval`
/// microseconds apart.
pub(super) fn run<W: Simulation>(
    simulation: &mut W,
    min_event_interval: u64,
    progress: &Progress,
) -> Result<(), Cancelled> {
    let count = simulation.client_count();
    let fresh = simulation.new_client();
    let mut calendar = Calendar::new(min_event_interval, count as usize, INDEX_BITS, fresh);
    for id in 0..count {
        let mut client = fresh;
        if let Some(at) = simulation.first_event(id, &mut client) {
            calendar.push(Event::new(at, id), &client);
        }
    }
    let mut run_progress = progress.start_run(u64::from(count));
    let (mut events, mut clients) = ([Event::new(0, 0); BLOCK], [fresh; BLOCK]);
    let (mut next, mut ids) = ([None; BLOCK], [0; BLOCK]);
    while calendar.take_bin() {
        for begin in (0..calendar.keys.len()).step_by(BLOCK) {
            let block = &calendar.keys[begin..];
            // These loads are independent of each other. Safe code has no other means of prefetching.
            for (&key, (event, client)) in block.iter().zip(events.iter_mut().zip(&mut clients)) {
                (*event, *client) = calendar.event_and_client(key);
            }
            let length = block.len().min(BLOCK);
            for (id, event) in ids.iter_mut().zip(&events).take(length) {
                *id = event.client();
            }
            let handled = next.iter_mut().zip(events.iter().zip(&ids).zip(&mut clients));
            for (next, ((event, &id), client)) in handled.take(length) {
                *next = simulation.handle_event(event.at(), id, client);
            }
            // Not in the loop above: reading a client as a whole right after writing parts of it would stall until all
            // earlier writes have reached memory (store forwarding fails).
            for (next, (&id, client)) in next.iter().zip(ids.iter().zip(&clients)).take(length) {
                if let Some(at) = *next {
                    calendar.push(Event::new(at, id), client);
                }
            }
        }
        run_progress.report(simulation.finished_clients())?;
    }
    run_progress.report(simulation.finished_clients())
}

/// A calendar queue: events in time bins, each with its client.
struct Calendar<C> {
    sorter: KeySorter,
    chunks: Chunks<C>,
    /// The bins from `next_bin` on, each at its number modulo the length of the ring.
    ring: Vec<Bin>,
    /// Events beyond the ring, by revolution of the ring.
    overflow: BTreeMap<u64, Bin>,
    ring_events: usize,
    next: u64,
    width_bits: u32,
    ring_bits: u32,
    index_bits: u32,
    /// The sorted keys of the events of the current bin.
    keys: Vec<u64>,
    /// The clients of the current bin in storage order, so that they are copied sequentially; keys hold their
    /// positions.
    clients: Vec<C>,
    /// The events of the current bin, if there are more than keys can index. Keys are then plain indices.
    crowded: Vec<Event>,
    bin_start: u64,
}

impl<C: Copy> Calendar<C> {
    fn new(shortest: u64, events: usize, index_bits: u32, fresh: C) -> Self {
        let width_bits = shortest.max(1).ilog2().min(MAX_BIN_BITS);
        let ring_bits = (MINUTE_BITS - width_bits).min(MAX_RING_BITS);
        Self {
            sorter: KeySorter::new(width_bits, CLIENT_BITS + index_bits),
            chunks: Chunks::new(events, 1 << ring_bits, fresh),
            ring: vec![Bin::default(); 1 << ring_bits],
            overflow: BTreeMap::new(),
            ring_events: 0,
            next: 0,
            width_bits,
            ring_bits,
            index_bits,
            keys: Vec::new(),
            clients: Vec::new(),
            crowded: Vec::new(),
            bin_start: 0,
        }
    }

    #[inline(always)]
    fn push(&mut self, event: Event, client: &C) {
        let bin = event.at() >> self.width_bits;
        debug_assert!(bin >= self.next, "the simulation respects its minimum event interval");
        let ahead = bin.wrapping_sub(self.next);
        if ahead < self.ring.len() as u64 {
            let slot = (bin & (self.ring.len() as u64 - 1)) as usize;
            self.chunks.push(&mut self.ring[slot], event, client);
            self.ring_events += 1;
        } else {
            self.push_overflow(event, client);
        }
    }

    #[cold]
    fn push_overflow(&mut self, event: Event, client: &C) {
        let revolution = event.at() >> (self.width_bits + self.ring_bits);
        self.chunks.push(self.overflow.entry(revolution).or_default(), event, client);
    }

    /// Takes the next bin with events and sorts its keys. Returns `false` if there are no events left.
    fn take_bin(&mut self) -> bool {
        let mask = self.ring.len() as u64 - 1;
        loop {
            if self.ring_events == 0 {
                let Some((&revolution, _)) = self.overflow.first_key_value() else { return false };
                self.next = revolution << self.ring_bits;
            }
            if self.next & mask == 0 {
                self.start_revolution();
            }
            let bin = core::mem::take(&mut self.ring[(self.next & mask) as usize]);
            self.bin_start = self.next << self.width_bits;
            self.next += 1;
            if !bin.is_empty() {
                self.sort(bin);
                self.chunks.release(bin);
                self.ring_events -= self.keys.len();
                return true;
            }
        }
    }

    /// Creates and sorts the keys of a bin's events, in the order of events.
    fn sort(&mut self, bin: Bin) {
        let Self { chunks, keys, clients, .. } = self;
        let width_bits = self.width_bits;
        keys.clear();
        clients.clear();
        self.crowded.clear();
        for (events, clients_of_chunk) in chunks.slices(bin) {
            let keyed = events.iter().zip(clients.len() as u64..);
            keys.extend(keyed.map(|(event, index)| event.offset(width_bits) << self.index_bits | index));
            clients.extend_from_slice(clients_of_chunk);
        }
        if keys.len() >> self.index_bits == 0 {
            self.sorter.sort(keys);
        } else {
            self.sort_crowded(bin);
        }
    }

    /// Sorts a bin with more events than keys can index: tens of millions within milliseconds.
    #[cold]
    fn sort_crowded(&mut self, bin: Bin) {
        let Self { chunks, keys, crowded, .. } = self;
        for (events, _) in chunks.slices(bin) {
            crowded.extend_from_slice(events);
        }
        keys.clear();
        keys.extend(0..crowded.len() as u64);
        keys.sort_unstable_by_key(|&index| crowded[index as usize]);
    }

    #[inline(always)]
    fn event_and_client(&self, key: u64) -> (Event, C) {
        if self.crowded.is_empty() {
            let index = key & ((1 << self.index_bits) - 1);
            (Event::from_offset(self.bin_start, key >> self.index_bits), self.clients[index as usize])
        } else {
            (self.crowded[key as usize], self.clients[key as usize])
        }
    }

    /// Starts a new revolution of the ring: moves the events of this revolution into the ring.
    fn start_revolution(&mut self) {
        let Some(bin) = self.overflow.remove(&(self.next >> self.ring_bits)) else { return };
        let mut entries = Vec::new();
        for (events, clients_of_chunk) in self.chunks.slices(bin) {
            entries.extend(events.iter().copied().zip(clients_of_chunk.iter().copied()));
        }
        self.chunks.release(bin);
        entries.iter().for_each(|(event, client)| self.push(*event, client));
    }
}

/// Storage for events with the state of their clients, in any number of bins, in one allocation.
///
/// A bin is a linked list of chunks. A vector per bin would double its capacity when full and never release it; here a
/// bin wastes half a chunk on average. A bin itself is four bytes, so the bins in use stay in the cache.
///
/// The state of a client is stored with its event instead of at a fixed position, so that memory is written and read
/// sequentially. Only the sort within a bin, which fits into a cache, accesses it randomly.
struct Chunks<C> {
    events: Vec<Event>,
    clients: Vec<C>,
    /// The previous chunk of the same bin, or the next one in the free list.
    links: Vec<u32>,
    /// The first free chunk; 0, which is never used, if there is none.
    free: u32,
    bits: u32,
    /// The bits of a position within its chunk: as a field, it costs no shift for every event.
    mask: u32,
    /// The value of unused entries.
    filler: C,
}

/// The events of one bin: the end position of its last event; 0 if the bin is empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Bin(u32);

impl Bin {
    const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl<C: Copy> Chunks<C> {
    /// Creates storage for about `events` events in `bins` bins.
    fn new(events: usize, bins: usize, filler: C) -> Self {
        // A few events in many bins should not touch much more memory than they need.
        let bits = (events / bins).clamp(4, 1024).next_power_of_two().trailing_zeros();
        let enough = events + ((bins.min(events) + 1) << bits) / 2;
        let (events, clients) = (Vec::with_capacity(enough), Vec::with_capacity(enough));
        Self { events, clients, links: vec![0], free: 0, bits, mask: (1 << bits) - 1, filler }
    }

    #[inline]
    fn push(&mut self, bin: &mut Bin, event: Event, client: &C) {
        if bin.0 & self.mask == 0 {
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
    fn slices(&self, bin: Bin) -> impl Iterator<Item = (&[Event], &[C])> {
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

    fn release(&mut self, bin: Bin) {
        let Some(last) = bin.0.checked_sub(1) else { return };
        let first_free = core::mem::replace(&mut self.free, last >> self.bits);
        let mut chunk = self.free as usize;
        while self.links[chunk] != 0 {
            chunk = self.links[chunk] as usize;
        }
        self.links[chunk] = first_free;
    }
}

/// Bins with fewer events are sorted by comparison, which costs less than clearing the counters.
const COMPARISON_SORT_BELOW: usize = 64;

/// Bins with at least this many events have several in each microsecond, so one pass over all microseconds is cheapest.
const SINGLE_PASS_FROM: usize = 1 << 13;

/// Sorts the keys of a bin, whose high bits are the microsecond within the bin.
///
/// Uses a counting sort by microsecond, then sorts the few keys that share a microsecond.
struct KeySorter {
    /// Number and position of the bits of the microsecond.
    bits: u32,
    from: u32,
    /// End position of the keys with each digit.
    ends: Vec<u32>,
    scratch: Vec<u64>,
}

impl KeySorter {
    /// Creates a sorter for keys with `bits` bits of time above `from` other bits.
    fn new(bits: u32, from: u32) -> Self {
        Self { bits, from, ends: vec![0; 1 << bits], scratch: Vec::new() }
    }

    fn sort(&mut self, keys: &mut Vec<u64>) {
        match keys.len() {
            ..COMPARISON_SORT_BELOW => return keys.sort_unstable(),
            COMPARISON_SORT_BELOW..SINGLE_PASS_FROM => {
                let low = self.bits.div_ceil(2);
                self.pass(keys, low, self.from);
                self.pass(keys, self.bits - low, self.from + low);
            }
            _ => self.pass(keys, self.bits, self.from),
        }
        insertion_sort(keys);
    }

    /// Performs a stable counting sort by `bits` bits from position `from`.
    fn pass(&mut self, keys: &mut Vec<u64>, bits: u32, from: u32) {
        let mask = (1 << bits) - 1;
        let digit = |key: u64| (key >> from) as usize & mask;
        let ends = &mut self.ends[..=mask];
        ends.fill(0);
        for &key in &*keys {
            ends[digit(key)] += 1;
        }
        let mut sum = 0;
        for end in ends.iter_mut() {
            sum += core::mem::replace(end, sum);
        }
        // The contents are overwritten completely.
        self.scratch.resize(keys.len(), 0);
        for &key in &*keys {
            let end = &mut ends[digit(key)];
            self.scratch[*end as usize] = key;
            *end += 1;
        }
        core::mem::swap(keys, &mut self.scratch);
    }
}

/// Mean number of moves per key above which keys are not nearly sorted: thousands in each microsecond.
const MAX_MOVES_PER_KEY: usize = 16;

/// Sorts nearly sorted keys, in which only keys of the same microsecond are out of order.
fn insertion_sort(keys: &mut [u64]) {
    let mut moves = 0;
    for at in 1..keys.len() {
        let key = keys[at];
        let mut to = at;
        while to > 0 && keys[to - 1] > key {
            keys[to] = keys[to - 1];
            to -= 1;
        }
        keys[to] = key;
        moves += at - to;
        if moves > MAX_MOVES_PER_KEY * keys.len() {
            return keys.sort_unstable();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(calendar: &mut Calendar<()>) -> Option<Vec<(u64, u32)>> {
        let events = calendar.take_bin().then(|| calendar.keys.iter().map(|&key| calendar.event_and_client(key).0));
        events.map(|events| events.map(|event| (event.at(), event.client())).collect())
    }

    /// Creates a calendar with bins of 16 µs and a ring of 2^18 bins: 4 s.
    fn of(events: &[(u64, u32)]) -> Calendar<()> {
        let mut calendar = Calendar::new(16, events.len(), INDEX_BITS, ());
        events.iter().for_each(|&(at, id)| calendar.push(Event::new(at, id), &()));
        calendar
    }

    #[test]
    fn events_inside_and_beyond_the_ring_are_ordered() {
        let second = 1_000_000;
        let mut times = vec![0, 15, 16, 4 * second, 5 * second, 3_600 * second, 3_600 * second + 1, 70_000 * second];
        let want = times.clone();
        times.reverse();
        let mut calendar = of(&times.into_iter().map(|at| (at, 0)).collect::<Vec<_>>());
        let got: Vec<_> = core::iter::from_fn(|| taken(&mut calendar)).flatten().map(|(at, _)| at).collect();
        assert_eq!(got, want);
    }

    #[test]
    fn an_overflow_event_joins_the_events_in_its_bin() {
        let revolution = 16 << MAX_RING_BITS;
        let mut calendar = of(&[(revolution, 1), (revolution - 16, 2)]);
        assert_eq!(taken(&mut calendar), Some(vec![(revolution - 16, 2)]));
        calendar.push(Event::new(revolution + 1, 3), &());
        assert_eq!(taken(&mut calendar), Some(vec![(revolution, 1), (revolution + 1, 3)]));
        assert_eq!(taken(&mut calendar), None);
    }

    #[test]
    fn a_follow_up_event_may_be_in_the_next_bin() {
        let mut calendar = of(&[(15, 0)]);
        assert_eq!(taken(&mut calendar), Some(vec![(15, 0)]));
        calendar.push(Event::new(31, 0), &());
        assert_eq!(taken(&mut calendar), Some(vec![(31, 0)]));
    }

    #[test]
    fn a_bin_with_more_events_than_keys_can_index_is_sorted() {
        let events: Vec<_> = (0..1_000).map(|n| (u64::from(n * 7 % 16), n * 13 % 1_000)).collect();
        let mut want = events.clone();
        want.sort_unstable_by_key(|&(at, client)| Event::new(at, client));
        for index_bits in [4, 9, 10, INDEX_BITS] {
            let mut calendar = Calendar::new(16, events.len(), index_bits, ());
            events.iter().for_each(|&(at, id)| calendar.push(Event::new(at, id), &()));
            assert!(taken(&mut calendar).as_ref() == Some(&want), "{index_bits} bits");
        }
    }

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

    #[test]
    fn any_number_of_keys_is_sorted() {
        for bits in [0, 1, 7, 10] {
            let (mut sorter, few, many) = (KeySorter::new(bits, 50), COMPARISON_SORT_BELOW, SINGLE_PASS_FROM);
            for count in [0, 1, 2, few - 1, few, 1_000, many - 1, many, 20_000] {
                // Every microsecond many times; the other bits in no order.
                let key = |n: u64| (n * 31 % (1 << bits)) << 50 | (n * 7_919 % 50_021);
                let mut keys: Vec<_> = (0..count as u64).map(key).collect();
                let mut want = keys.clone();
                want.sort_unstable();
                sorter.sort(&mut keys);
                assert!(keys == want, "{count} keys of {bits} bits");
            }
        }
    }
}
