use core::time::Duration;

use stagger_core::{Policy, Seed};

/// The waits of one client that never succeeds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Client {
    /// Before its first attempt.
    pub(crate) spread: Duration,
    /// Before each of its retries.
    pub(crate) delays: Vec<Duration>,
}

impl Client {
    /// What it has waited by each of its retries.
    pub(crate) fn elapsed(&self) -> impl Iterator<Item = Duration> {
        self.delays.iter().scan(self.spread, |waited, delay| {
            *waited = waited.saturating_add(*delay);
            Some(*waited)
        })
    }
}

/// The first `count` clients of a seed, each with the randomness that a call of its own would have.
pub(crate) fn draw(policy: &Policy, seed: Seed, count: usize, retries: usize) -> Vec<Client> {
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
    fn a_seed_draws_the_same_clients_again_and_more_of_them_change_none() {
        assert_eq!(clients(7, 3), clients(7, 9)[..3]);
        assert_ne!(clients(7, 3), clients(8, 3));
    }

    #[test]
    fn no_two_clients_wait_alike() {
        let drawn = clients(1, 50);
        for (i, one) in drawn.iter().enumerate() {
            assert!(!drawn[..i].iter().any(|other| other.delays == one.delays || other.spread == one.spread));
        }
    }

    #[test]
    fn what_was_waited_counts_the_spread() {
        let client = Client { spread: Duration::from_secs(5), delays: [1, 2].map(Duration::from_secs).to_vec() };
        assert!(client.elapsed().eq([6, 8].map(Duration::from_secs)));
    }
}
