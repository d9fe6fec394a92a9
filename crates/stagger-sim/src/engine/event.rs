//! What an engine delivers: events, their times, and the simulation that handles them.

use core::time::Duration;

use stagger_core::Instant;

/// A simulation that the engines drive: clients with at most one pending event each, and shared state.
pub(crate) trait Simulation {
    type Client: Copy;

    fn client_count(&self) -> u32;

    fn new_client(&self) -> Self::Client;

    /// Returns a time before which no client from `id` on has an event; `None` if there are none, or none that matter.
    /// Asked for one client after the other.
    fn next_start(&mut self, id: u32) -> Option<u64> {
        (id < self.client_count()).then_some(0)
    }

    /// Returns the time of the first event of this client, in microseconds, if it has one.
    fn first_event(&mut self, id: u32, client: &mut Self::Client) -> Option<u64>;

    /// Handles the event of this client at `at`. Returns the time of its next event, if any, which is at least the
    /// engine's minimum interval later, and at least a microsecond.
    fn handle_event(&mut self, at: u64, id: u32, client: &mut Self::Client) -> Option<u64>;

    /// Returns the number of clients without further events.
    fn finished_clients(&self) -> u64;
}

/// Number of bits of an event that hold the client: 67 million clients.
pub(crate) const CLIENT_BITS: u32 = 26;

/// The latest time of an event, in microseconds: 76 hours.
pub(crate) const MAX_TIME: u64 = (1 << (64 - CLIENT_BITS)) - 1;

/// The time of an event and its client, in eight bytes. Ordered by time, then in an order of the clients that differs
/// from one microsecond to the next: the low bits are not the client's number but a permutation of it that depends on
/// the time. With the number itself, a server that is offered several attempts in a microsecond would always accept the
/// client with the lowest number first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Event(u64);

const CLIENT_MASK: u32 = (1 << CLIENT_BITS) - 1;

impl Event {
    #[inline]
    pub(crate) const fn new(at: u64, client: u32) -> Self {
        debug_assert!(at <= MAX_TIME && client >> CLIENT_BITS == 0, "time and client fit into an event");
        Self(at << CLIENT_BITS | permuted(at, client) as u64)
    }

    /// Restores an event from a base time and the offset of the event from it.
    #[inline]
    pub(crate) const fn from_offset(base: u64, offset: u64) -> Self {
        Self((base << CLIENT_BITS) + offset)
    }

    /// Returns the difference to an event of the same base time, whose low `width_bits` bits are 0, as
    /// [`from_offset`](Self::from_offset) takes it.
    #[inline]
    pub(crate) const fn offset(self, width_bits: u32) -> u64 {
        self.0 & ((1 << (width_bits + CLIENT_BITS)) - 1)
    }

    /// Returns the time in microseconds.
    #[inline]
    pub(crate) const fn at(self) -> u64 {
        self.0 >> CLIENT_BITS
    }

    #[inline]
    pub(crate) const fn client(self) -> u32 {
        restored(self.at(), self.0 as u32 & CLIENT_MASK)
    }
}

/// Odd, so that multiplication modulo a power of two has an inverse.
const FACTORS: [u32; 2] = [0x02c1_b3c7, 0x01d4_d4f5];
const INVERSES: [u32; 2] = [inverse(FACTORS[0]), inverse(FACTORS[1])];
const HALF: u32 = CLIENT_BITS / 2;

/// Returns a permutation of all client numbers that depends on the time.
#[inline]
const fn permuted(at: u64, client: u32) -> u32 {
    let mixed = (client ^ key(at)).wrapping_mul(FACTORS[0]) & CLIENT_MASK;
    (mixed ^ mixed >> HALF).wrapping_mul(FACTORS[1]) & CLIENT_MASK
}

/// Returns the client number from its permutation.
#[inline]
const fn restored(at: u64, permuted: u32) -> u32 {
    let mixed = permuted.wrapping_mul(INVERSES[1]) & CLIENT_MASK;
    // The upper half is unchanged, so the same operation is its own inverse.
    ((mixed ^ mixed >> HALF).wrapping_mul(INVERSES[0]) & CLIENT_MASK) ^ key(at)
}

/// Returns the bits of the time that enter the permutation.
#[inline]
const fn key(at: u64) -> u32 {
    // Fibonacci hashing; D. E. Knuth, "The Art of Computer Programming", volume 3, section 6.4.
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (u64::BITS - CLIENT_BITS)) as u32
}

/// Returns the inverse of an odd number modulo 2^32, by Newton's iteration, which doubles the correct bits each time.
const fn inverse(odd: u32) -> u32 {
    let mut inverse = odd;
    let mut correct = 3;
    while correct < 32 {
        inverse = inverse.wrapping_mul(2_u32.wrapping_sub(odd.wrapping_mul(inverse)));
        correct *= 2;
    }
    inverse
}

/// Converts a duration to whole microseconds, rounding down and saturating.
#[inline]
pub(crate) const fn micros(length: Duration) -> u64 {
    length.as_secs().saturating_mul(1_000_000).saturating_add(length.subsec_micros() as u64)
}

/// Converts a duration to whole microseconds, rounding up and saturating.
#[inline]
pub(crate) const fn micros_up(length: Duration) -> u64 {
    micros(length).saturating_add((length.subsec_nanos() % 1_000 != 0) as u64)
}

#[inline]
pub(crate) const fn instant(micros: u64) -> Instant {
    Instant::from_nanos(micros * 1_000)
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
        for at in [16, 17, 31] {
            let event = Event::new(at, 7);
            assert_eq!(Event::from_offset(16, event.offset(4)), event, "{at}");
        }
    }

    #[test]
    fn every_client_is_restored_at_every_time() {
        for at in [0, 1, 999_983, MAX_TIME] {
            for client in (0..=CLIENT_MASK).step_by(1_009) {
                assert_eq!(Event::new(at, client).client(), client, "at {at}");
            }
        }
    }

    #[test]
    fn events_are_ordered_by_time_first() {
        for at in 0..1_000 {
            for client in [0, 9, CLIENT_MASK] {
                assert!(Event::new(at, client) < Event::new(at + 1, 0), "{client} at {at}");
            }
        }
    }

    /// Checks that each of two clients is first in half of the microseconds, within four standard deviations.
    #[test]
    fn no_client_is_favored_in_a_microsecond() {
        let times = 10_000_u32;
        for (a, b) in [(0, 1), (0, 2), (5, 6), (0, 4_095), (1, 1 << 13), (0, 9_999_999), (7, CLIENT_MASK), (100, 164)] {
            for step in [1, 2, 16, 1_000, 100_000] {
                let first = (0..u64::from(times)).filter(|n| Event::new(n * step, a) < Event::new(n * step, b)).count();
                let bias = (first as f64 - f64::from(times) / 2.0) / (f64::from(times) / 4.0).sqrt();
                assert!(bias.abs() < 4.0, "{a} before {b}: {first} of {times}, every {step} µs");
            }
        }
    }

    /// Checks the mean rank of the lowest of a thousand clients, which was 0 when events were ordered by number.
    #[test]
    fn the_lowest_number_has_a_mean_rank_in_the_middle() {
        let rank = |at| (1..1_000).filter(|&other| Event::new(at, other) < Event::new(at, 0)).count() as f64;
        let mean = (0..1_000).map(rank).sum::<f64>() / 1_000.0;
        // The standard deviation of a uniform rank, over the root of a thousand.
        let deviation = 1_000.0 / 12_f64.sqrt() / 1_000_f64.sqrt();
        assert!((mean - 499.5).abs() < 4.0 * deviation, "{mean}");
    }
}
