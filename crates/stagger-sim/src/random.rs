use stagger_core::Seed;

use crate::engine::CLIENT_BITS;

/// The chance that lies in the world and not in the policy: when a client is hit, how long a message is underway.
///
/// Every draw has a number made of client and attempt, so that neither the order of events nor the policy changes it:
/// all policies meet the same world, and what differs between their figures is theirs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct World {
    hits: Seed,
    messages: Seed,
}

/// 32 random bits for each of two messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ways {
    /// The answer to the attempt.
    pub(crate) answer: u32,
    /// The next attempt.
    pub(crate) next: u32,
}

impl World {
    pub(crate) const fn new(seed: Seed) -> Self {
        // The clients' own draws are those of call 0.
        Self { hits: seed.for_call(1), messages: seed.for_call(2) }
    }

    /// When this client is hit, in microseconds: uniform on `[0, within]`.
    #[inline]
    pub(crate) const fn hit(self, client: u32, within: u64) -> u64 {
        ((self.hits.draw(client as u64) as u128 * (within as u128 + 1)) >> 64) as u64
    }

    /// The messages after this attempt of a client; attempt 0 is the loss of the connection.
    #[inline]
    pub(crate) const fn ways(self, client: u32, attempt: u32) -> Ways {
        let bits = self.messages.draw(((attempt as u64) << CLIENT_BITS) | client as u64);
        Ways { answer: bits as u32, next: (bits >> 32) as u32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hit_lies_within_and_reaches_both_ends() {
        let world = World::new(Seed::new(1));
        let hits: Vec<_> = (0..1_000).map(|client| world.hit(client, 9)).collect();
        assert_eq!(hits.iter().min(), Some(&0));
        assert_eq!(hits.iter().max(), Some(&9));
        assert_eq!(world.hit(3, 0), 0);
    }

    #[test]
    fn neither_clients_nor_attempts_share_a_draw() {
        let world = World::new(Seed::new(1));
        let mut seen = std::collections::HashSet::new();
        for client in 0..100 {
            for attempt in 0..100 {
                let ways = world.ways(client, attempt);
                assert!(seen.insert((ways.answer, ways.next)), "client {client}, attempt {attempt}");
            }
        }
    }
}
