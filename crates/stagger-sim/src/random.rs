use stagger_core::Seed;

use crate::engine::CLIENT_BITS;

/// The chance that lies in the world and not in the policy: when a client is hit, how long a message is underway.
///
/// Every draw has a number made of client and attempt, so that neither the order of events nor the policy changes it:
/// all policies meet the same world, and what differs between their figures is theirs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Environment {
    disconnects: Seed,
    messages: Seed,
}

/// 32 random bits for each of two messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageBits {
    /// The answer to the attempt.
    pub(crate) answer: u32,
    /// The next attempt.
    pub(crate) next: u32,
}

impl Environment {
    pub(crate) const fn new(seed: Seed) -> Self {
        // The clients' own draws are those of call 0.
        Self { disconnects: seed.for_call(1), messages: seed.for_call(2) }
    }

    /// When this client is hit, in microseconds: uniform on `[0, within]`.
    #[inline]
    pub(crate) const fn disconnect_time(self, client: u32, window: u64) -> u64 {
        ((self.disconnects.draw(client as u64) as u128 * (window as u128 + 1)) >> 64) as u64
    }

    /// The messages after this attempt of a client; attempt 0 is the loss of the connection.
    #[inline]
    pub(crate) const fn message_bits(self, client: u32, attempt: u32) -> MessageBits {
        let bits = self.messages.draw(((attempt as u64) << CLIENT_BITS) | client as u64);
        MessageBits { answer: bits as u32, next: (bits >> 32) as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hit_lies_within_and_reaches_both_ends() {
        let world = Environment::new(Seed::new(1));
        let disconnects: Vec<_> = (0..1_000).map(|client| world.disconnect_time(client, 9)).collect();
        assert_eq!(disconnects.iter().min(), Some(&0));
        assert_eq!(disconnects.iter().max(), Some(&9));
        assert_eq!(world.disconnect_time(3, 0), 0);
    }

    #[test]
    fn neither_clients_nor_attempts_share_a_draw() {
        let world = Environment::new(Seed::new(1));
        let mut seen = std::collections::HashSet::new();
        for client in 0..100 {
            for attempt in 0..100 {
                let message_bits = world.message_bits(client, attempt);
                assert!(seen.insert((message_bits.answer, message_bits.next)), "client {client}, attempt {attempt}");
            }
        }
    }
}
