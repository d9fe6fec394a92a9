use std::collections::BTreeMap;

use super::chunks::{Bin, Chunks};
use super::event::{CLIENT_BITS, Event};
use super::simulation::{Cancelled, Simulation};
use super::sort::KeySorter;
use crate::Progress;

/// The widest bin: 16 ms. The counters of the sort within one are as many as it has microseconds.
const MAX_BIN_BITS: u32 = 14;

/// The ring of bins spans a minute, so that almost everything is put where it is taken from; it is made longer where
/// bins are narrow, up to this.
const MAX_RING_BITS: u32 = 18;
const MINUTE_BITS: u32 = 26;

/// Clients that are fetched together: enough that memory is read for many at once, few enough to stay in the nearest cache.
const BLOCK: usize = 64;

/// The bits of a key that tell where in its bin the client is; its number stands above them, and the microsecond above that.
const INDEX_BITS: u32 = u64::BITS - MAX_BIN_BITS - CLIENT_BITS;

/// The fast engine: see the module.
pub(crate) fn run<W: Simulation>(simulation: &mut W, progress: &Progress) -> Result<(), Cancelled> {
    let count = simulation.client_count();
    let fresh = simulation.new_client();
    let mut calendar = Calendar::new(simulation.min_event_interval(), count as usize, INDEX_BITS, fresh);
    for id in 0..count {
        let mut client = fresh;
        if let Some(at) = simulation.first_event(id, &mut client) {
            calendar.push(Event::new(at, id), &client);
        }
    }
    let mut run_progress = progress.start_run(u64::from(count));
    let (mut events, mut clients) = ([Event::new(0, 0); BLOCK], [fresh; BLOCK]);
    let mut next = [None; BLOCK];
    while calendar.take_bin() {
        for begin in (0..calendar.keys.len()).step_by(BLOCK) {
            let block = &calendar.keys[begin..];
            // These loads do not wait for each other, and safe code has no other way to say "this will be needed".
            for (&key, (event, client)) in block.iter().zip(events.iter_mut().zip(&mut clients)) {
                (*event, *client) = calendar.event_and_client(key);
            }
            let length = block.len().min(BLOCK);
            for (next, (event, client)) in next.iter_mut().zip(events.iter().zip(&mut clients)).take(length) {
                *next = simulation.handle_event(event.at(), event.client(), client);
            }
            // Not in the loop above: a client that was just written in parts and is read as a whole would have to wait until
            // every write before it has reached the memory.
            for (next, (event, client)) in next.iter().zip(events.iter().zip(&clients)).take(length) {
                if let Some(at) = *next {
                    calendar.push(Event::new(at, event.client()), client);
                }
            }
        }
        run_progress.report(simulation.finished_clients())?;
    }
    run_progress.report(simulation.finished_clients())
}

/// Events in bins of time, each with its client.
struct Calendar<C> {
    sorter: KeySorter,
    chunks: Chunks<C>,
    /// The bins from `next` on, each at its number modulo the length of the ring.
    ring: Vec<Bin>,
    /// What is further away, by the turn of the ring.
    overflow: BTreeMap<u64, Bin>,
    /// Events in the ring.
    ring_events: usize,
    /// The bin whose turn is next.
    next: u64,
    width_bits: u32,
    ring_bits: u32,
    index_bits: u32,
    /// Of the bin that was taken: a key for each of its events, in order.
    keys: Vec<u64>,
    /// Its clients, as the keys tell them, read in a row: in order they would be read from all over the memory.
    clients: Vec<C>,
    /// Its events, if they are more than keys can tell apart. Keys are then no more than the index.
    crowded: Vec<Event>,
    /// Its beginning.
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
        debug_assert!(bin >= self.next, "the simulation keeps to its shortest time");
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

    /// Takes the next bin that has any events, and puts their keys in order. `false`: there are none left.
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

    /// The keys of a bin's events, by time and then by client.
    fn sort(&mut self, bin: Bin) {
        let Self { chunks, keys, clients, .. } = self;
        let mask = (1 << self.width_bits) - 1;
        keys.clear();
        clients.clear();
        self.crowded.clear();
        for (events, clients_of_chunk) in chunks.slices(bin) {
            keys.extend(events.iter().zip(clients.len() as u64..).map(|(event, index)| {
                ((event.at() & mask) << CLIENT_BITS | u64::from(event.client())) << self.index_bits | index
            }));
            clients.extend_from_slice(clients_of_chunk);
        }
        if keys.len() >> self.index_bits == 0 {
            self.sorter.sort(keys);
        } else {
            self.sort_crowded(bin);
        }
    }

    /// The same for tens of millions within milliseconds.
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

    /// The event of a key, and its client.
    #[inline(always)]
    fn event_and_client(&self, key: u64) -> (Event, C) {
        if self.crowded.is_empty() {
            let index = key & ((1 << self.index_bits) - 1);
            (Event::from_offset(self.bin_start, key >> self.index_bits), self.clients[index as usize])
        } else {
            (self.crowded[key as usize], self.clients[key as usize])
        }
    }

    /// The ring begins again: what was too far away belongs into it now.
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

    /// Bins of 16 µs, a ring of 2^18 of them: 4 s.
    fn of(events: &[(u64, u32)]) -> Calendar<()> {
        let mut calendar = Calendar::new(16, events.len(), INDEX_BITS, ());
        events.iter().for_each(|&(at, id)| calendar.push(Event::new(at, id), &()));
        calendar
    }

    #[test]
    fn near_and_far_events_come_in_order() {
        let second = 1_000_000;
        let mut times = vec![0, 15, 16, 4 * second, 5 * second, 3_600 * second, 3_600 * second + 1, 70_000 * second];
        let want = times.clone();
        times.reverse();
        let mut calendar = of(&times.into_iter().map(|at| (at, 0)).collect::<Vec<_>>());
        let got: Vec<_> = core::iter::from_fn(|| taken(&mut calendar)).flatten().map(|(at, _)| at).collect();
        assert_eq!(got, want);
    }

    #[test]
    fn a_far_event_joins_the_bin_that_nearer_ones_were_put_into() {
        let revolution = 16 << MAX_RING_BITS;
        let mut calendar = of(&[(revolution, 1), (revolution - 16, 2)]);
        assert_eq!(taken(&mut calendar), Some(vec![(revolution - 16, 2)]));
        calendar.push(Event::new(revolution + 1, 3), &());
        assert_eq!(taken(&mut calendar), Some(vec![(revolution, 1), (revolution + 1, 3)]));
        assert_eq!(taken(&mut calendar), None);
    }

    #[test]
    fn what_comes_of_an_event_may_be_in_the_very_next_bin() {
        let mut calendar = of(&[(15, 0)]);
        assert_eq!(taken(&mut calendar), Some(vec![(15, 0)]));
        calendar.push(Event::new(31, 0), &());
        assert_eq!(taken(&mut calendar), Some(vec![(31, 0)]));
    }

    #[test]
    fn a_bin_with_more_events_than_keys_can_tell_apart_is_in_order_too() {
        let events: Vec<_> = (0..1_000).map(|n| (u64::from(n * 7 % 16), n * 13 % 1_000)).collect();
        let mut want = events.clone();
        want.sort_unstable();
        for index_bits in [4, 10, INDEX_BITS] {
            let mut calendar = Calendar::new(16, events.len(), index_bits, ());
            events.iter().for_each(|&(at, id)| calendar.push(Event::new(at, id), &()));
            assert!(taken(&mut calendar).as_ref() == Some(&want), "{index_bits} bits");
        }
    }
}
