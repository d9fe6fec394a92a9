use core::time::Duration;

use super::distribution;
use crate::numbers::instant::nanos;
use crate::numbers::seed::Seed;
use crate::policy::Policy;

/// The elapsed time of numbered calls until a retry, for distributions without a closed form.
pub(super) struct Replays {
    elapsed: [u64; REPLAYS],
}

const REPLAYS: usize = 4096;

impl Replays {
    pub(super) fn new(policy: &Policy, n: u32) -> Self {
        let mut elapsed = [0; REPLAYS];
        for (id, elapsed) in elapsed.iter_mut().enumerate() {
            let seed = Seed::new(0).for_call(id as u64);
            let delays = policy.schedule(seed).take(n as usize);
            *elapsed =
                delays.fold(nanos(policy.first_spread(seed)), |sum, delay: Duration| sum.saturating_add(nanos(delay)));
        }
        Self { elapsed }
    }

    pub(super) fn quantile(&mut self, q: f64) -> u64 {
        distribution::quantile(&mut self.elapsed, q)
    }
}
