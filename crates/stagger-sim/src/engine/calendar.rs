use std::collections::BTreeMap;

use super::chunks::{Bin, Chunks};
use super::event::{CLIENT_BITS, Event};
use super::order::Order;
use super::world::{Interrupted, World};
use crate::Progress;

/// The widest bin: 16 ms. The counters of the sort within one are as many as it has microseconds.
const WIDEST: u32 = 14;

/// The ring of bins spans a minute, so that almost everything is put where it is taken from; it is made longer where
/// bins are narrow, up to this.
const LONGEST_RING: u32 = 18;
const MINUTE: u32 = 26;

/// Clients that are fetched together: enough that memory is read for many at once, few enough to stay in the nearest cache.
const BLOCK: usize = 64;

/// The bits of a key that tell where in its bin the client is; its number stands above them, and the microsecond above that.
const INDEX_BITS: u32 = u64::BITS - WIDEST - CLIENT_BITS;

/// The fast engine: see the module.
pub(crate) fn run<W: World>(world: &mut W, progress: &Progress) -> Result<(), Interrupted> {
    let count = world.count();
    let fresh = world.client();
    let mut calendar = Calendar::new(world.shortest(), count as usize, INDEX_BITS, fresh);
    for id in 0..count {
        let mut client = fresh;
        if let Some(at) = world.begin(id, &mut client) {
            calendar.push(Event::new(at, id), &client);
        }
    }
    let mut run_progress = progress.start_run(u64::from(count));
    let (mut events, mut clients) = ([Event::new(0, 0); BLOCK], [fresh; BLOCK]);
    let mut next = [None; BLOCK];
    while calendar.take() {
        for begin in (0..calendar.keys.len()).step_by(BLOCK) {
            let block = &calendar.keys[begin..];
            // These loads do not wait for each other, and safe code has no other way to say "this will be needed".
            for (&key, (event, client)) in block.iter().zip(events.iter_mut().zip(&mut clients)) {
                (*event, *client) = calendar.entry(key);
            }
            let length = block.len().min(BLOCK);
            for (next, (event, client)) in next.iter_mut().zip(events.iter().zip(&mut clients)).take(length) {
                *next = world.event(event.at(), event.client(), client);
            }
            // Not in the loop above: a client that was just written in parts and is read as a whole would have to wait until
            // every write before it has reached the memory.
            for (next, (event, client)) in next.iter().zip(events.iter().zip(&clients)).take(length) {
                if let Some(at) = *next {
                    calendar.push(Event::new(at, event.client()), client);
                }
            }
        }
        run_progress.report(world.through())?;
    }
    run_progress.report(world.through())
}

/// Events in bins of time, each with its client.
struct Calendar<C> {
    order: Order,
    chunks: Chunks<C>,
    /// The bins from `next` on, each at its number modulo the length of the ring.
    ring: Vec<Bin>,
    /// What is further away, by the turn of the ring.
    later: BTreeMap<u64, Bin>,
    /// Events in the ring.
    near: usize,
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
    crowd: Vec<Event>,
    /// Its beginning.
    from: u64,
}

impl<C: Copy> Calendar<C> {
    fn new(shortest: u64, events: usize, index_bits: u32, fresh: C) -> Self {
        let width_bits = shortest.max(1).ilog2().min(WIDEST);
        let ring_bits = (MINUTE - width_bits).min(LONGEST_RING);
        Self {
            order: Order::new(width_bits, CLIENT_BITS + index_bits),
            chunks: Chunks::new(events, 1 << ring_bits, fresh),
            ring: vec![Bin::default(); 1 << ring_bits],
            later: BTreeMap::new(),
            near: 0,
            next: 0,
            width_bits,
            ring_bits,
            index_bits,
            keys: Vec::new(),
            clients: Vec::new(),
            crowd: Vec::new(),
            from: 0,
        }
    }

    #[inline(always)]
    fn push(&mut self, event: Event, client: &C) {
        let bin = event.at() >> self.width_bits;
        debug_assert!(bin >= self.next, "the world keeps to its shortest time");
        let ahead = bin.wrapping_sub(self.next);
        if ahead < self.ring.len() as u64 {
            let slot = (bin & (self.ring.len() as u64 - 1)) as usize;
            self.chunks.push(&mut self.ring[slot], event, client);
            self.near += 1;
        } else {
            self.push_later(event, client);
        }
    }

    #[cold]
    fn push_later(&mut self, event: Event, client: &C) {
        let turn = event.at() >> (self.width_bits + self.ring_bits);
        self.chunks.push(self.later.entry(turn).or_default(), event, client);
    }

    /// Takes the next bin that has any events, and puts their keys in order. `false`: there are none left.
    fn take(&mut self) -> bool {
        let mask = self.ring.len() as u64 - 1;
        loop {
            if self.near == 0 {
                let Some((&turn, _)) = self.later.first_key_value() else { return false };
                self.next = turn << self.ring_bits;
            }
            if self.next & mask == 0 {
                self.turn();
            }
            let bin = core::mem::take(&mut self.ring[(self.next & mask) as usize]);
            self.from = self.next << self.width_bits;
            self.next += 1;
            if !bin.is_empty() {
                self.sort(bin);
                self.chunks.release(bin);
                self.near -= self.keys.len();
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
        self.crowd.clear();
        for (events, whose) in chunks.slices(bin) {
            keys.extend(events.iter().zip(clients.len() as u64..).map(|(event, index)| {
                ((event.at() & mask) << CLIENT_BITS | u64::from(event.client())) << self.index_bits | index
            }));
            clients.extend_from_slice(whose);
        }
        if keys.len() >> self.index_bits == 0 {
            self.order.sort(keys);
        } else {
            self.sort_crowd(bin);
        }
    }

    /// The same for tens of millions within milliseconds.
    #[cold]
    fn sort_crowd(&mut self, bin: Bin) {
        let Self { chunks, keys, crowd, .. } = self;
        for (events, _) in chunks.slices(bin) {
            crowd.extend_from_slice(events);
        }
        keys.clear();
        keys.extend(0..crowd.len() as u64);
        keys.sort_unstable_by_key(|&index| crowd[index as usize]);
    }

    /// The event of a key, and its client.
    #[inline(always)]
    fn entry(&self, key: u64) -> (Event, C) {
        if self.crowd.is_empty() {
            let index = key & ((1 << self.index_bits) - 1);
            (Event::after(self.from, key >> self.index_bits), self.clients[index as usize])
        } else {
            (self.crowd[key as usize], self.clients[key as usize])
        }
    }

    /// The ring begins again: what was too far away belongs into it now.
    fn turn(&mut self) {
        let Some(bin) = self.later.remove(&(self.next >> self.ring_bits)) else { return };
        let mut entries = Vec::new();
        for (events, whose) in self.chunks.slices(bin) {
            entries.extend(events.iter().copied().zip(whose.iter().copied()));
        }
        self.chunks.release(bin);
        entries.iter().for_each(|(event, client)| self.push(*event, client));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(calendar: &mut Calendar<()>) -> Option<Vec<(u64, u32)>> {
        let events = calendar.take().then(|| calendar.keys.iter().map(|&key| calendar.entry(key).0));
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
        let turn = 16 << LONGEST_RING;
        let mut calendar = of(&[(turn, 1), (turn - 16, 2)]);
        assert_eq!(taken(&mut calendar), Some(vec![(turn - 16, 2)]));
        calendar.push(Event::new(turn + 1, 3), &());
        assert_eq!(taken(&mut calendar), Some(vec![(turn, 1), (turn + 1, 3)]));
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
