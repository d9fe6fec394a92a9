//! The simulated environment: when connections are lost, and how long messages take.

use core::time::Duration;

use stagger_core::Seed;

use crate::engine::{CLIENT_BITS, micros};

/// When a client is disconnected, and how long a message takes. Every draw is a function of client and attempt, so
/// neither the order of events nor the policy changes it: differences between figures are due to the policies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Environment {
    disconnects: Seed,
    messages: Seed,
}

impl Environment {
    pub(crate) const fn new(seed: Seed) -> Self {
        // Call 0 is used for the draws of the clients.
        Self { disconnects: seed.for_call(1), messages: seed.for_call(2) }
    }

    /// Returns the time at which this client is disconnected, in microseconds: uniform on `[0, window]`.
    #[inline]
    pub(crate) const fn disconnect_time(self, client: u32, window: u64) -> u64 {
        ((self.disconnects.draw(client as u64) as u128 * (window as u128 + 1)) >> 64) as u64
    }

    /// Returns how long after the server's `nth` crash this client notices that its connection is lost, in
    /// microseconds: uniform on `[0, window]`.
    pub(crate) const fn repeated_disconnect_time(self, client: u32, nth: u32, window: u64) -> u64 {
        let bits = self.disconnects.draw(((nth as u64) << CLIENT_BITS) | client as u64);
        ((bits as u128 * (window as u128 + 1)) >> 64) as u64
    }

    /// Returns the random bits for the messages after this attempt of a client, where attempt 0 is the loss of the
    /// connection: for the answer, and for the next attempt.
    #[inline]
    pub(crate) const fn message_bits(self, client: u32, attempt: u32) -> [u32; 2] {
        let bits = self.messages.draw(((attempt as u64) << CLIENT_BITS) | client as u64);
        [bits as u32, (bits >> 32) as u32]
    }
}

/// The one-way delay of messages: uniform between two bounds, drawn for each message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Network {
    min: u64,
    /// Number of microseconds to choose from.
    range: u64,
}

impl Network {
    /// The maximum delay; slightly less than 32 random bits can resolve to the microsecond.
    pub(crate) const MAX_DELAY: Duration = Duration::from_secs(3_600);

    pub(crate) const fn new(min: Duration, max: Duration) -> Self {
        let min = micros(min);
        Self { min, range: micros(max).saturating_add(1).saturating_sub(min) }
    }

    pub(crate) fn is_valid(self) -> bool {
        self.range > 0 && self.bounds().1 <= Self::MAX_DELAY
    }

    pub(crate) const fn bounds(self) -> (Duration, Duration) {
        (Duration::from_micros(self.min), Duration::from_micros(self.min + self.range - 1))
    }

    /// Returns the delay for 32 random bits, in microseconds.
    #[inline]
    pub(crate) const fn delay(self, bits: u32) -> u64 {
        self.min + ((bits as u64 * self.range) >> 32)
    }

    /// Returns the minimum round trip, in microseconds.
    pub(crate) const fn min_round_trip(self) -> u64 {
        2 * self.min
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disconnect_times_cover_the_whole_window() {
        let environment = Environment::new(Seed::new(1));
        let disconnects: Vec<_> = (0..1_000).map(|client| environment.disconnect_time(client, 9)).collect();
        assert_eq!(disconnects.iter().min(), Some(&0));
        assert_eq!(disconnects.iter().max(), Some(&9));
        assert_eq!(environment.disconnect_time(3, 0), 0);
    }

    #[test]
    fn clients_and_attempts_have_distinct_draws() {
        let environment = Environment::new(Seed::new(1));
        let mut seen = std::collections::HashSet::new();
        for client in 0..100 {
            for attempt in 0..100 {
                assert!(seen.insert(environment.message_bits(client, attempt)), "client {client}, attempt {attempt}");
            }
        }
    }

    #[test]
    fn delays_cover_the_whole_range() {
        let network = Network::new(Duration::from_millis(10), Duration::from_millis(40));
        assert_eq!((network.delay(0), network.delay(u32::MAX)), (10_000, 40_000));
        let constant = Network::new(Duration::from_millis(5), Duration::from_millis(5));
        assert_eq!((constant.delay(0), constant.delay(u32::MAX)), (5_000, 5_000));
    }
}
