use std::collections::BTreeMap;

use super::chunks::{Bin, Chunks};
use super::event::{CLIENT_BITS, Event};
use super::progress::Progress;
use super::simulation::{Cancelled, Simulation};
use super::sort::KeySorter;

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

/// Runs a simulation with a calendar queue; see the module documentation. Two events of a client are at least
/// `min_event_interval` microseconds apart.
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
}
