/// Bits of an event that tell the client: 67 million of them.
pub(crate) const CLIENT_BITS: u32 = 26;

/// The last microsecond that an event can be at: 76 hours.
pub(crate) const MAX_TIME: u64 = (1 << (64 - CLIENT_BITS)) - 1;

/// When something happens, and to whom, in eight bytes. The order is by time, then by client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Event(u64);

impl Event {
    #[inline]
    pub(crate) const fn new(at: u64, client: u32) -> Self {
        debug_assert!(at <= MAX_TIME && client >> CLIENT_BITS == 0, "the simulation keeps to what an event can hold");
        Self(at << CLIENT_BITS | client as u64)
    }

    /// What is left of an event without the time `from`.
    #[inline]
    pub(crate) const fn from_offset(base: u64, offset: u64) -> Self {
        Self((base << CLIENT_BITS) + offset)
    }

    /// In microseconds.
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
    fn both_ends_of_both_parts_are_kept() {
        let most = (1 << CLIENT_BITS) - 1;
        for (at, client) in [(0, 0), (MAX_TIME, 0), (0, most), (MAX_TIME, most), (1, 2)] {
            let event = Event::new(at, client);
            assert_eq!((event.at(), event.client()), (at, client));
        }
    }

    #[test]
    fn an_event_is_put_together_again() {
        assert_eq!(Event::from_offset(5, 3 << CLIENT_BITS | 7), Event::new(8, 7));
    }

    #[test]
    fn the_order_is_by_time_and_then_by_client() {
        assert!(Event::new(1, 9) < Event::new(2, 0));
        assert!(Event::new(2, 0) < Event::new(2, 1));
    }
}
