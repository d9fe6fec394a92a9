use core::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

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

/// An event: ordered by time, kind, and the order in which events were scheduled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Event {
    /// In nanoseconds.
    pub(super) at: u64,
    /// The kind in the highest three bits, and below it a number that increases.
    order: u64,
    pub(super) id: u32,
    pub(super) serial: u32,
}

const KIND_SHIFT: u32 = u64::BITS - 3;

impl Event {
    pub(super) const fn kind(&self) -> EventKind {
        KINDS[(self.order >> KIND_SHIFT) as usize]
    }
}

/// The pending events: a lane for each source of events whose times do not decrease, as those of a fixed time limit, and a
/// heap for the others.
///
/// An event joins its lane if it is not before the lane's last one in time or kind, and the heap otherwise, so the order is
/// right in any case. The next event is the least of the lanes' first ones: the winner of a tournament, in which a lane whose first event
/// changes plays again with one other at each round.
#[derive(Clone)]
pub(super) struct EventQueue {
    lanes: Vec<VecDeque<Event>>,
    /// Time and order of the first event of each lane, and behind them that of the heap.
    heads: Vec<u128>,
    /// The winner of each match, from the final at 1; then the lanes themselves. Their number is a power of two.
    winners: Vec<u32>,
    heap: BinaryHeap<Reverse<Event>>,
    scheduled: u64,
}

/// The lanes of a queue, while they are assigned.
///
/// Events that are all scheduled the same length of time ahead share a lane: their times do not decrease, whatever they are.
/// The fewer lanes, the fewer matches.
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
        self.lengths.iter().position(|&known| known == Some(length)).unwrap_or_else(|| {
            self.lengths.push(Some(length));
            self.lengths.len() - 1
        })
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

impl EventQueue {
    pub(super) fn new(lanes: usize) -> Self {
        let leaves = (lanes + 1).next_power_of_two();
        let mut winners = vec![0; 2 * leaves];
        for (leaf, winner) in (0..).zip(&mut winners[leaves..]) {
            *winner = leaf;
        }
        let mut queue = Self {
            lanes: vec![VecDeque::with_capacity(64); lanes],
            heads: vec![EMPTY; leaves],
            winners,
            heap: BinaryHeap::new(),
            scheduled: 0,
        };
        (0..leaves).for_each(|lane| queue.set_head(lane, EMPTY));
        queue
    }

    /// Schedules an event. A lane that does not exist means the heap.
    #[inline]
    pub(super) fn push(&mut self, lane: usize, at: u64, kind: EventKind, id: u32, serial: u32) {
        self.scheduled += 1;
        let event = Event { at, order: (kind as u64) << KIND_SHIFT | self.scheduled, id, serial };
        match self.lanes.get_mut(lane) {
            Some(events) => match events.back() {
                None => {
                    events.push_back(event);
                    self.set_head(lane, head(&event));
                }
                Some(last) if *last <= event => events.push_back(event),
                Some(_) => self.push_to_heap(event),
            },
            None => self.push_to_heap(event),
        }
    }

    /// Removes all events of a lane.
    pub(super) fn clear(&mut self, lane: usize) {
        if let Some(events) = self.lanes.get_mut(lane) {
            events.clear();
            self.set_head(lane, EMPTY);
        }
    }

    /// Takes the next event before `end`. Timeouts in the lane of the event that `is_stale` is true for are removed, too.
    #[inline]
    pub(super) fn pop(&mut self, end: u64, is_stale: impl Fn(&Event) -> bool) -> Option<Event> {
        let lane = self.winners[1] as usize;
        if (self.heads[lane] >> 64) as u64 >= end {
            return None;
        }
        match self.lanes.get_mut(lane) {
            Some(events) => {
                let event = events.pop_front()?;
                if event.kind() == EventKind::Timeout {
                    while events.front().is_some_and(|next| next.kind() == EventKind::Timeout && is_stale(next)) {
                        events.pop_front();
                    }
                }
                let next = events.front().map_or(EMPTY, head);
                self.set_head(lane, next);
                Some(event)
            }
            None => self.pop_from_heap(),
        }
    }

    /// Changes the first event of a lane, and plays its matches again.
    #[inline]
    fn set_head(&mut self, lane: usize, head: u128) {
        let Self { heads, winners, .. } = self;
        heads[lane] = head;
        let (mut winner, mut least) = (lane as u32, head);
        let mut at = (lane + heads.len()) as u32;
        while at > 1 {
            let rival = winners[(at ^ 1) as usize];
            let other = heads[rival as usize];
            // Branches would be mispredicted half of the time; heads differ unless both lanes are empty.
            let wins = other < least;
            winner = if wins { rival } else { winner };
            least = if wins { other } else { least };
            at /= 2;
            winners[at as usize] = winner;
        }
    }

    #[cold]
    fn push_to_heap(&mut self, event: Event) {
        self.heap.push(Reverse(event));
        self.read_heap();
    }

    fn pop_from_heap(&mut self) -> Option<Event> {
        let event = self.heap.pop().map(|Reverse(event)| event);
        self.read_heap();
        event
    }

    fn read_heap(&mut self) {
        let head = self.heap.peek().map_or(EMPTY, |Reverse(event)| head(event));
        self.set_head(self.lanes.len(), head);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(got.iter().map(|event| (event.at, event.kind(), event.id)).collect::<Vec<_>>(), want);
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
        let ids: Vec<_> = core::iter::from_fn(|| queue.pop(9, |_| true)).map(|event| event.id).collect();
        assert_eq!(ids, [0, 1, 2]);
    }

    #[test]
    fn stale_timeouts_are_removed_with_the_one_before_them() {
        let mut queue = EventQueue::new(1);
        for id in 0..4 {
            queue.push(0, u64::from(id), EventKind::Timeout, id, 0);
        }
        let mut next = || queue.pop(u64::MAX, |event| event.id < 3).map(|event| event.id);
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
