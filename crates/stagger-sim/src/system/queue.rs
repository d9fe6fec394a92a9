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
/// An event joins its lane if it is not before the lane's last one, and the heap otherwise, so the order is right in any
/// case. The next event is the least of the lanes' first ones, of which there are few.
#[derive(Clone)]
pub(super) struct EventQueue {
    lanes: Vec<VecDeque<Event>>,
    /// The time of the first event of each lane, and at the end that of the heap.
    times: Vec<u64>,
    /// The order of these events among those of the same time.
    orders: Vec<u64>,
    heap: BinaryHeap<Reverse<Event>>,
    scheduled: u64,
}

/// The time of an empty lane.
const EMPTY: u64 = u64::MAX;

impl EventQueue {
    pub(super) fn new(lanes: usize) -> Self {
        Self {
            lanes: vec![VecDeque::with_capacity(64); lanes],
            times: vec![EMPTY; lanes + 1],
            orders: vec![EMPTY; lanes + 1],
            heap: BinaryHeap::new(),
            scheduled: 0,
        }
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
                    (self.times[lane], self.orders[lane]) = (at, event.order);
                }
                Some(last) if last.at <= at => events.push_back(event),
                Some(_) => self.push_to_heap(event),
            },
            None => self.push_to_heap(event),
        }
    }

    /// Removes all events of a lane.
    pub(super) fn clear(&mut self, lane: usize) {
        if let Some(events) = self.lanes.get_mut(lane) {
            events.clear();
            self.times[lane] = EMPTY;
        }
    }

    /// Takes the next event before `end`. Timeouts in the lane of the event that `is_stale` is true for are removed, too.
    #[inline]
    pub(super) fn pop(&mut self, end: u64, is_stale: impl Fn(&Event) -> bool) -> Option<Event> {
        // Two simple passes: times rarely coincide, so the order is hardly ever compared.
        let least = self.times.iter().fold(EMPTY, |least, &at| least.min(at));
        if least >= end {
            return None;
        }
        let (mut lane, mut first) = (0, EMPTY);
        for (nth, (&at, &order)) in self.times.iter().zip(&self.orders).enumerate() {
            if at == least && order < first {
                (lane, first) = (nth, order);
            }
        }
        match self.lanes.get_mut(lane) {
            Some(events) => {
                let event = events.pop_front()?;
                if event.kind() == EventKind::Timeout {
                    while events.front().is_some_and(&is_stale) {
                        events.pop_front();
                    }
                }
                let head = events.front().map_or((EMPTY, EMPTY), |event| (event.at, event.order));
                (self.times[lane], self.orders[lane]) = head;
                Some(event)
            }
            None => self.pop_from_heap(),
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
        let head = self.heap.peek().map_or((EMPTY, EMPTY), |Reverse(event)| (event.at, event.order));
        let heap = self.lanes.len();
        (self.times[heap], self.orders[heap]) = head;
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
