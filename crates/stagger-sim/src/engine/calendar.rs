use std::collections::BTreeMap;

use super::chunks::{Bin, Chunks};
use super::event::Event;
use super::order::Order;
use super::world::{Interrupted, World};
use crate::Watch;

/// The widest bin: 16 ms. The counters of the sort within one are as many as it has microseconds.
const WIDEST: u32 = 14;

/// The ring of bins spans a minute, so that almost everything is put where it is taken from; it is made longer where
/// bins are narrow, up to this.
const LONGEST_RING: u32 = 18;
const MINUTE: u32 = 26;

/// Clients that are fetched together: enough that memory is read for many at once, few enough to stay in the nearest cache.
const BLOCK: usize = 128;

/// The fast engine: see the module.
pub(crate) fn run<W: World>(world: &mut W, watch: &Watch) -> Result<(), Interrupted> {
    let mut clients = world.clients();
    let mut calendar = Calendar::new(world.shortest(), clients.len());
    for (id, client) in (0..).zip(&mut clients) {
        if let Some(at) = world.begin(id, client) {
            calendar.push(Event::new(at, id));
        }
    }
    let mut progress = watch.begin(clients.len() as u64);
    let mut events = Vec::new();
    let mut fetched = Vec::with_capacity(BLOCK);
    while calendar.take(&mut events) {
        for block in events.chunks(BLOCK) {
            // Nobody is in a bin twice, so a block can be fetched before any of it happens. These loads do not wait for
            // each other, and safe code has no other way to say "this will be needed".
            fetched.clear();
            fetched.extend(block.iter().map(|event| clients[event.client() as usize]));
            for (event, client) in block.iter().zip(&mut fetched) {
                if let Some(at) = world.event(event.at(), event.client(), client) {
                    calendar.push(Event::new(at, event.client()));
                }
                clients[event.client() as usize] = *client;
            }
        }
        progress.tell(world.through())?;
    }
    progress.tell(world.through())
}

/// Events in bins of time.
struct Calendar {
    order: Order,
    chunks: Chunks,
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
}

impl Calendar {
    fn new(shortest: u64, events: usize) -> Self {
        let width_bits = shortest.max(1).ilog2().min(WIDEST);
        let ring_bits = (MINUTE - width_bits).min(LONGEST_RING);
        Self {
            order: Order::new(width_bits),
            chunks: Chunks::new(events, 1 << ring_bits),
            ring: vec![Bin::default(); 1 << ring_bits],
            later: BTreeMap::new(),
            near: 0,
            next: 0,
            width_bits,
            ring_bits,
        }
    }

    #[inline]
    fn push(&mut self, event: Event) {
        let bin = event.at() >> self.width_bits;
        debug_assert!(bin >= self.next, "the world keeps to its shortest time");
        let ahead = bin.wrapping_sub(self.next);
        if ahead < self.ring.len() as u64 {
            let slot = (bin & (self.ring.len() as u64 - 1)) as usize;
            self.chunks.push(&mut self.ring[slot], event);
            self.near += 1;
        } else {
            self.push_later(event);
        }
    }

    #[cold]
    fn push_later(&mut self, event: Event) {
        let turn = event.at() >> (self.width_bits + self.ring_bits);
        self.chunks.push(self.later.entry(turn).or_default(), event);
    }

    /// The events of the next bin that has any, in order. `false`: there are none left.
    fn take(&mut self, events: &mut Vec<Event>) -> bool {
        let mask = self.ring.len() as u64 - 1;
        loop {
            if self.near == 0 {
                let Some((&turn, _)) = self.later.first_key_value() else { return false };
                self.next = turn << self.ring_bits;
            }
            if self.next & mask == 0 {
                self.turn();
            }
            let slot = (self.next & mask) as usize;
            self.next += 1;
            if !self.ring[slot].is_empty() {
                self.order.put(&self.chunks, self.ring[slot], events);
                self.chunks.release(&mut self.ring[slot]);
                self.near -= events.len();
                return true;
            }
        }
    }

    /// The ring begins again: what was too far away belongs into it now.
    fn turn(&mut self) {
        let Some(mut bin) = self.later.remove(&(self.next >> self.ring_bits)) else { return };
        let events: Vec<_> = self.chunks.slices(bin).flatten().copied().collect();
        self.chunks.release(&mut bin);
        events.into_iter().for_each(|event| self.push(event));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bins of 16 µs, a ring of 2^18 of them: 4 s.
    fn taken(times: &[u64]) -> Vec<u64> {
        let mut calendar = Calendar::new(16, times.len());
        (0..).zip(times).for_each(|(id, &at)| calendar.push(Event::new(at, id)));
        let (mut bin, mut all) = (Vec::new(), Vec::new());
        while calendar.take(&mut bin) {
            all.extend(bin.iter().map(|event| event.at()));
        }
        all
    }

    #[test]
    fn near_and_far_events_come_in_order() {
        let second = 1_000_000;
        let mut times = vec![0, 15, 16, 4 * second, 5 * second, 3_600 * second, 3_600 * second + 1, 70_000 * second];
        let want = times.clone();
        times.reverse();
        assert_eq!(taken(&times), want);
    }

    #[test]
    fn a_far_event_joins_the_bin_that_nearer_ones_were_put_into() {
        let mut calendar = Calendar::new(16, 4);
        let turn = 16 << LONGEST_RING;
        calendar.push(Event::new(turn, 1));
        calendar.push(Event::new(turn - 16, 2));
        let mut bin = Vec::new();
        assert!(calendar.take(&mut bin));
        assert_eq!(bin, [Event::new(turn - 16, 2)]);
        calendar.push(Event::new(turn + 1, 3));
        assert!(calendar.take(&mut bin));
        assert_eq!(bin, [Event::new(turn, 1), Event::new(turn + 1, 3)]);
        assert!(!calendar.take(&mut bin));
    }

    #[test]
    fn what_comes_of_an_event_may_be_in_the_very_next_bin() {
        let mut calendar = Calendar::new(16, 1);
        calendar.push(Event::new(15, 0));
        let mut bin = Vec::new();
        assert!(calendar.take(&mut bin));
        calendar.push(Event::new(31, 0));
        assert!(calendar.take(&mut bin));
        assert_eq!(bin, [Event::new(31, 0)]);
    }
}
