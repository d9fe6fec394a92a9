/// Number of bits of an event that hold the client: 67 million clients.
pub(crate) const CLIENT_BITS: u32 = 26;

/// The latest time of an event, in microseconds: 76 hours.
pub(crate) const MAX_TIME: u64 = (1 << (64 - CLIENT_BITS)) - 1;

/// The time of an event and its client, in eight bytes. Ordered by time, then by client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Event(u64);

impl Event {
    #[inline]
    pub(crate) const fn new(at: u64, client: u32) -> Self {
        debug_assert!(at <= MAX_TIME && client >> CLIENT_BITS == 0, "time and client fit into an event");
        Self(at << CLIENT_BITS | client as u64)
    }

    /// Restores an event from a base time and the offset of the event from it.
    #[inline]
    pub(crate) const fn from_offset(base: u64, offset: u64) -> Self {
        Self((base << CLIENT_BITS) + offset)
    }

    /// Returns the time in microseconds.
    #[inline]
    pub(crate) const fn at(self) -> u64 {
        self.0 >> CLIENT_BITS
    }

    #[inline]
    pub(crate) const fn client(self) -> u32 {
        self.0 as u32 & ((1 << CLIENT_BITS) - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extreme_times_and_clients_round_trip() {
        let most = (1 << CLIENT_BITS) - 1;
        for (at, client) in [(0, 0), (MAX_TIME, 0), (0, most), (MAX_TIME, most), (1, 2)] {
            let event = Event::new(at, client);
            assert_eq!((event.at(), event.client()), (at, client));
        }
    }

    #[test]
    fn an_event_is_restored_from_base_and_offset() {
        assert_eq!(Event::from_offset(5, 3 << CLIENT_BITS | 7), Event::new(8, 7));
    }

    #[test]
    fn events_are_ordered_by_time_and_then_by_client() {
        assert!(Event::new(1, 9) < Event::new(2, 0));
        assert!(Event::new(2, 0) < Event::new(2, 1));
    }
}
