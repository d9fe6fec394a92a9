//! The pending events of a run.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

/// What happens, in the order in which events of the same instant are handled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EventKind {
    /// A trigger starts or ends, or the queues are measured: 0 or 1.
    Change,
    /// An answer reaches the caller: of an attempt.
    Answer,
    /// A worker has done its own work: on an attempt.
    Served,
    /// The time limit of a call's attempt, with the attempt's serial number.
    Timeout,
    /// Workers come back: to a service.
    Wake,
    /// A call sends its next attempt.
    Send,
    /// An attempt reaches its service.
    Arrival,
    /// The users' next request.
    Request,
}

/// An event: ordered by time, kind, and the order in which events were scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Event {
    /// In nanoseconds.
    pub(super) at: u64,
    /// The kind in the highest three bits, and below it a number that increases.
    order: u64,
    /// The id in the higher half, the serial number in the lower one: one word, or a copy would wait for both halves.
    subject: u64,
}

const KIND_SHIFT: u32 = u64::BITS - 3;

impl Event {
    pub(super) const fn kind(&self) -> EventKind {
        match self.order >> KIND_SHIFT {
            0 => EventKind::Change,
            1 => EventKind::Answer,
            2 => EventKind::Served,
            3 => EventKind::Timeout,
            4 => EventKind::Wake,
            5 => EventKind::Send,
            6 => EventKind::Arrival,
            _ => EventKind::Request,
        }
    }

    pub(super) const fn id(&self) -> u32 {
        (self.subject >> 32) as u32
    }

    pub(super) const fn serial(&self) -> u32 {
        self.subject as u32
    }
}

/// The pending events: a lane for each source of events whose times do not decrease, as those of a fixed time limit,
/// and a heap for the others.
///
/// An event joins its lane, at its place if it is a little before the last one in time or kind, and the heap if it is
/// far before, so the order is right in any case. The next event is the least of the lanes' first ones: the winner of a
/// tournament, in which a lane whose first event changes plays again with one other at each round.
///
/// It is not one of the engines of `crate::engine`: those need clients with one future event each, and calls come and
/// go. Most events need no heap, and timeouts of answered attempts are removed in passing.
pub(super) struct EventQueue {
    lanes: Vec<Lane>,
    /// Time and order of the first event of each lane.
    heads: Box<[u128; LEAVES]>,
    /// Time and order of the first event of the heap.
    heap_head: u128,
    /// The winner of each match, from the final at 1; then the lanes themselves from `leaves` on.
    winners: Box<[u8; 2 * LEAVES]>,
    /// How many lanes play: a power of two.
    leaves: usize,
    heap: BinaryHeap<Reverse<Event>>,
    scheduled: u64,
}

/// The most lanes. The events of all others are in the heap.
const LEAVES: usize = 256;

/// Events in their order, in a ring.
#[derive(Clone)]
struct Lane {
    /// Their number is a power of two.
    places: Vec<Event>,
    /// Numbers of the first event and of the place behind the last one, which count on at the end of the ring.
    first: usize,
    end: usize,
}

/// The lanes of a queue, while they are assigned.
///
/// Events that are all scheduled the same length of time ahead share a lane: their times do not decrease, whatever they
/// are. The fewer lanes, the fewer matches.
#[derive(Default)]
pub(super) struct Lanes {
    /// The length of each lane, or `None` if its events are those of one source.
    lengths: Vec<Option<u64>>,
}

impl Lanes {
    /// Adds the lane of one source of events.
    pub(super) fn add(&mut self) -> usize {
        self.lengths.push(None);
        self.lengths.len() - 1
    }

    /// Returns the lane of the events that are scheduled this far ahead.
    pub(super) fn for_length(&mut self, length: u64) -> usize {
        if let Some(lane) = self.lengths.iter().position(|&known| known == Some(length)) {
            return lane;
        }
        self.lengths.push(Some(length));
        self.lengths.len() - 1
    }

    pub(super) fn count(&self) -> usize {
        self.lengths.len()
    }
}

/// The head of an empty lane.
const EMPTY: u128 = u128::MAX;

const fn head(event: &Event) -> u128 {
    (event.at as u128) << 64 | event.order as u128
}

impl Lane {
    fn new() -> Self {
        let none = Event { at: 0, order: 0, subject: 0 };
        Self { places: vec![none; 64], first: 0, end: 0 }
    }

    #[inline]
    fn at(&self, number: usize) -> &Event {
        &self.places[number & (self.places.len() - 1)]
    }

    #[inline]
    fn first(&self) -> Option<&Event> {
        if self.first == self.end { None } else { Some(self.at(self.first)) }
    }

    #[inline]
    fn push(&mut self, event: Event) {
        if self.end - self.first == self.places.len() {
            self.grow();
        }
        let mask = self.places.len() - 1;
        let place = &mut self.places[self.end & mask];
        // Field by field, from registers: a copy of the whole would wait for stores of its parts.
        place.at = event.at;
        place.order = event.order;
        place.subject = event.subject;
        self.end += 1;
    }

    /// Inserts an event that is before the last one, if it is not far before it and not the first. Returns whether it
    /// was.
    #[cold]
    fn insert(&mut self, event: Event) -> bool {
        let earliest = self.end.saturating_sub(8).max(self.first + 1);
        let Some(place) = (earliest..self.end).rev().find(|&place| head(self.at(place - 1)) < head(&event)) else {
            return false;
        };
        // Places are counted from the end: the ring may grow, and number its events anew.
        let later = self.end - place;
        self.push(event);
        let mask = self.places.len() - 1;
        for place in (self.end - later..self.end).rev() {
            self.places.swap(place & mask, (place - 1) & mask);
        }
        true
    }

    #[cold]
    fn grow(&mut self) {
        let count = self.places.len();
        self.places.rotate_left(self.first & (count - 1));
        (self.first, self.end) = (0, count);
        self.places.extend_from_within(..);
    }
}

impl EventQueue {
    pub(super) fn new(lanes: usize) -> Self {
        let lanes = lanes.min(LEAVES);
        let mut queue = Self {
            lanes: vec![Lane::new(); lanes],
            heads: Box::new([EMPTY; LEAVES]),
            winners: Box::new([0; 2 * LEAVES]),
            leaves: lanes.next_power_of_two(),
            heap_head: EMPTY,
            heap: BinaryHeap::new(),
            scheduled: 0,
        };
        for leaf in 0..queue.leaves {
            queue.winners[queue.leaves + leaf] = leaf as u8;
        }
        (0..queue.leaves).for_each(|lane| queue.set_head(lane, EMPTY));
        queue
    }

    /// Schedules an event. A lane that does not exist means the heap.
    // Inlined, because saving and restoring registers would take as long as the rest.
    #[inline(always)]
    pub(super) fn push(&mut self, lane: usize, at: u64, kind: EventKind, id: u32, serial: u32) {
        self.scheduled += 1;
        let subject = u64::from(id) << 32 | u64::from(serial);
        let event = Event { at, order: (kind as u64) << KIND_SHIFT | self.scheduled, subject };
        let Some(events) = self.lanes.get_mut(lane) else {
            return self.push_to_heap(event.at, event.order, event.subject);
        };
        if events.first == events.end {
            events.push(event);
            self.set_head_of_empty(lane, head(&event));
        } else if head(events.at(events.end - 1)) < head(&event) {
            events.push(event);
        } else {
            self.push_early(lane, event.at, event.order, event.subject);
        }
    }

    /// Removes all events of a lane.
    pub(super) fn clear(&mut self, lane: usize) {
        if let Some(events) = self.lanes.get_mut(lane) {
            events.first = events.end;
            self.set_head(lane, EMPTY);
        }
    }

    /// Takes the next event before `end`. Timeouts in the lane of the event that `is_stale` is true for are removed,
    /// too.
    #[inline]
    pub(super) fn pop(&mut self, end: u64, is_stale: impl Fn(&Event) -> bool) -> Option<Event> {
        let lane = self.winners[1];
        let least = self.heads[usize::from(lane)];
        if self.heap_head < least {
            // Put together anew, so that an event need not be in memory in the other case.
            let Event { at, order, subject } = self.pop_from_heap(end)?;
            return Some(Event { at, order, subject });
        }
        if (least >> 64) as u64 >= end {
            return None;
        }
        let events = self.lanes.get_mut(usize::from(lane))?;
        let event = Event { at: (least >> 64) as u64, order: least as u64, subject: events.at(events.first).subject };
        events.first += 1;
        if event.kind() == EventKind::Timeout {
            while events.first().is_some_and(|next| next.kind() == EventKind::Timeout && is_stale(next)) {
                events.first += 1;
            }
        }
        let (next, is_empty) = (head(events.at(events.first)), events.first == events.end);
        // Not a branch: whether something is left is hard to predict.
        let next = if is_empty { EMPTY } else { next };
        self.set_head(usize::from(lane), next);
        Some(event)
    }

    #[inline(never)]
    fn set_head_of_empty(&mut self, lane: usize, head: u128) {
        self.set_head(lane, head);
    }

    /// Changes the first event of a lane, and plays its matches again.
    #[inline]
    fn set_head(&mut self, lane: usize, head: u128) {
        let Self { heads, winners, .. } = self;
        heads[lane % LEAVES] = head;
        let (mut winner, mut least) = (lane as u8, head);
        let mut at = lane + self.leaves;
        while at > 1 {
            let rival = winners[(at ^ 1) % (2 * LEAVES)];
            let other = heads[usize::from(rival)];
            // Branches would be mispredicted half of the time; heads differ unless both lanes are empty.
            let wins = other < least;
            winner = if wins { rival } else { winner };
            least = if wins { other } else { least };
            at /= 2;
            winners[at % (2 * LEAVES)] = winner;
        }
    }

    /// Schedules an event that is before the last one of its lane.
    #[cold]
    fn push_early(&mut self, lane: usize, at: u64, order: u64, subject: u64) {
        if !self.lanes[lane].insert(Event { at, order, subject }) {
            self.push_to_heap(at, order, subject);
        }
    }

    #[cold]
    fn push_to_heap(&mut self, at: u64, order: u64, subject: u64) {
        self.heap.push(Reverse(Event { at, order, subject }));
        self.read_heap();
    }

    #[cold]
    fn pop_from_heap(&mut self, end: u64) -> Option<Event> {
        if (self.heap_head >> 64) as u64 >= end {
            return None;
        }
        let event = self.heap.pop().map(|Reverse(event)| event);
        self.read_heap();
        event
    }

    fn read_heap(&mut self) {
        self.heap_head = self.heap.peek().map_or(EMPTY, |Reverse(event)| head(event));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use stagger_core::Seed;

    use super::*;

    const KINDS: [EventKind; 8] = [
        EventKind::Change,
        EventKind::Answer,
        EventKind::Served,
        EventKind::Timeout,
        EventKind::Wake,
        EventKind::Send,
        EventKind::Arrival,
        EventKind::Request,
    ];

    #[test]
    fn an_event_has_the_kind_id_and_serial_number_that_it_was_scheduled_with() {
        let mut queue = EventQueue::new(1);
        for (kind, id, serial) in
            KINDS.into_iter().zip([0, 1, u32::MAX].into_iter().cycle()).zip(7..).map(|((k, i), s)| (k, i, s))
        {
            queue.push(0, 1, kind, id, serial);
            let event = queue.pop(2, |_| false).unwrap();
            assert_eq!((event.at, event.kind(), event.id(), event.serial()), (1, kind, id, serial));
        }
    }

    /// Rings grow while their events are split by the end of the ring, and events before the last one of their lane go
    /// between others, or into the heap if they are far before.
    #[test]
    fn events_come_in_order_from_full_rings_and_from_more_lanes_than_play() {
        let random = Seed::new(1);
        for lanes in [1, 4, 5, 255, 256, 300] {
            let mut queue = EventQueue::new(lanes);
            let (mut pending, mut now) = (BTreeSet::new(), 0);
            for n in 0..20_000_u32 {
                let [lane, ahead, kind, pops] = [0, 1, 2, 3].map(|salt| random.draw(u64::from(n) * 4 + salt));
                // At most a thousand at a time: a ring of one lane grows four times, and later loses all of them.
                if pending.len() < 1_000 && (n / 4_000 % 2 == 0 || pops % 2 == 0) {
                    let (at, kind) = (now + ahead % [3, 50, 1_000][(lane % 3) as usize], KINDS[(kind % 8) as usize]);
                    queue.push((lane % (lanes as u64 + 1)) as usize, at, kind, n, 0);
                    pending.insert((at, kind, n));
                } else if let Some(event) = queue.pop(u64::MAX, |_| false) {
                    now = event.at;
                    assert_eq!(pending.pop_first(), Some((event.at, event.kind(), event.id())), "{lanes} lanes");
                }
            }
            while let Some(event) = queue.pop(u64::MAX, |_| false) {
                assert_eq!(pending.pop_first(), Some((event.at, event.kind(), event.id())), "{lanes} lanes");
            }
            assert_eq!(pending.len(), 0);
        }
    }

    /// Checks that the events of three lanes and the heap come in the order of a sort, whatever their order was.
    #[test]
    fn events_come_in_the_order_of_time_kind_and_scheduling() {
        let mut queue = EventQueue::new(3);
        let mut want = Vec::new();
        for n in 0..1_000_u32 {
            let at = u64::from(n.wrapping_mul(2_654_435_761) >> 26);
            let kind = KINDS[(n % 8) as usize];
            queue.push((n % 4) as usize, at, kind, n, 0);
            want.push((at, kind, n));
        }
        want.sort_unstable();
        let got: Vec<_> = core::iter::from_fn(|| queue.pop(u64::MAX, |_| false)).collect();
        assert_eq!(got.iter().map(|event| (event.at, event.kind(), event.id())).collect::<Vec<_>>(), want);
    }

    #[test]
    fn events_of_one_instant_and_lane_come_in_the_order_of_their_kinds() {
        let mut queue = EventQueue::new(1);
        for kind in KINDS.into_iter().rev().chain(KINDS) {
            queue.push(0, 7, kind, 0, 0);
        }
        let got: Vec<_> = core::iter::from_fn(|| queue.pop(8, |_| false)).map(|event| event.kind()).collect();
        assert_eq!(got, KINDS.into_iter().flat_map(|kind| [kind; 2]).collect::<Vec<_>>());
    }

    #[test]
    fn events_the_same_length_ahead_share_a_lane_and_those_of_a_source_do_not() {
        let mut lanes = Lanes::default();
        assert_eq!(
            [lanes.add(), lanes.for_length(5), lanes.for_length(9), lanes.for_length(5), lanes.add()],
            [0, 1, 2, 1, 3]
        );
        assert_eq!(lanes.count(), 4);
    }

    #[test]
    fn only_timeouts_are_removed_as_stale() {
        let mut queue = EventQueue::new(1);
        queue.push(0, 1, EventKind::Timeout, 0, 0);
        queue.push(0, 2, EventKind::Send, 1, 0);
        queue.push(0, 3, EventKind::Timeout, 2, 0);
        let ids: Vec<_> = core::iter::from_fn(|| queue.pop(9, |_| true)).map(|event| event.id()).collect();
        assert_eq!(ids, [0, 1, 2]);
    }

    #[test]
    fn stale_timeouts_are_removed_with_the_one_before_them() {
        let mut queue = EventQueue::new(1);
        for id in 0..4 {
            queue.push(0, u64::from(id), EventKind::Timeout, id, 0);
        }
        let mut next = || queue.pop(u64::MAX, |event| event.id() < 3).map(|event| event.id());
        assert_eq!([next(), next(), next()], [Some(0), Some(3), None]);
    }

    #[test]
    fn events_at_the_end_are_not_taken() {
        let mut queue = EventQueue::new(1);
        queue.push(0, 5, EventKind::Send, 1, 0);
        assert!(queue.pop(5, |_| false).is_none());
        assert!(queue.pop(6, |_| false).is_some());
    }
}
