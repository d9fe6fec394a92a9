//! How long a process waits for the store, and when it tries again.

use core::time::Duration;

use stagger_core::{Policy, Seed, policy};

use crate::claim::Timing;

/// Capped at a second, so that every process reports while the others settle.
const RECONNECT: Policy = policy!(exponential(ms(100), secs(1)).unlimited_attempts());

/// How long a connection may take.
pub const CONNECT_TIMEOUT: Duration = Duration::from_millis(500);
/// How long a reply may take. A store that hangs answers neither; without these limits nothing would fall back.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_millis(250);

/// Returns the time in microseconds over which the first connection is spread, because a deployment starts all
/// processes at once: a fifth of what a process waits for its first reply.
#[must_use]
pub const fn first_spread(timing: &Timing) -> u64 {
    if timing.patience < 5 { 1 } else { timing.patience / 5 }
}

/// Returns the delay before the next report after `failed` failures in a row before this one, in microseconds.
#[must_use]
pub fn delay(failed: usize, seed: Seed) -> u64 {
    // From the fifth on it is at the cap.
    match RECONNECT.delays(seed).nth(failed.min(8)) {
        Some(delay) => u64::try_from(delay.as_micros()).unwrap_or(1_000_000),
        None => 1_000_000,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_a_second_and_stay_there() {
        let longest = |failed| (0..200).map(|seed| delay(failed, Seed::new(seed))).max().unwrap_or(0);
        for (failed, most) in [(0, 100_000), (1, 200_000), (3, 800_000), (4, 1_000_000), (50, 1_000_000)] {
            let longest = longest(failed);
            assert!(longest <= most && longest > most * 9 / 10, "after {failed} failures: {longest} µs of {most}");
        }
    }
}
