use core::time::Duration;

use stagger_core::{Policy, Seed};

/// The waits of one client whose attempts all fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Client {
    pub spread: Duration,
    pub delays: Vec<Duration>,
}

impl Client {
    /// Returns the total wait up to each retry.
    pub(super) fn elapsed(&self) -> impl Iterator<Item = Duration> {
        self.delays.iter().scan(self.spread, |waited, delay| {
            *waited = waited.saturating_add(*delay);
            Some(*waited)
        })
    }
}

/// Draws the first `count` clients of a seed, each with the random stream of a call of its own.
pub(super) fn draw(policy: &Policy, seed: Seed, count: usize, retries: usize) -> Vec<Client> {
    let client = |id: usize| {
        let key = seed.for_call(id as u64);
        Client { spread: policy.first_spread(key), delays: policy.schedule(key).take(retries).collect() }
    };
    (0..count).map(client).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clients(seed: u64, count: usize) -> Vec<Client> {
        let policy = "exponential base=1s cap=30s spread=5s".parse().unwrap();
        draw(&policy, Seed::new(seed), count, 4)
    }

    #[test]
    fn a_seed_reproduces_its_clients_for_any_count() {
        assert_eq!(clients(7, 3), clients(7, 9)[..3]);
        assert_ne!(clients(7, 3), clients(8, 3));
    }

    #[test]
    fn no_two_clients_wait_the_same() {
        let drawn = clients(1, 50);
        for (i, one) in drawn.iter().enumerate() {
            assert!(!drawn[..i].iter().any(|other| other.delays == one.delays || other.spread == one.spread));
        }
    }

    #[test]
    fn the_total_wait_includes_the_spread() {
        let client = Client { spread: Duration::from_secs(5), delays: [1, 2].map(Duration::from_secs).to_vec() };
        assert!(client.elapsed().eq([6, 8].map(Duration::from_secs)));
    }
}
