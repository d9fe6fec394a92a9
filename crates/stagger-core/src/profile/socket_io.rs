//! The jitter of socket.io's client (`backo2`), in whole milliseconds: one draw decides how far a delay lies from its
//! ceiling and, by its first decimal, on which side. So the delays lie in ten bands with gaps between them, from 0.55
//! to 1.5 ceilings, and are cut at the cap afterwards.

use super::{middle, share};
use crate::numbers::instant::LONGEST_NANOS;
use crate::outcome::FailureKind;
use crate::policy::{DelayCurve, Drawn, Interval, Policy, Route, SAMPLE};

pub(super) struct SocketIo;

impl DelayCurve for SocketIo {
    fn next_delay(&self, policy: &Policy, carry: f64, n: u32, kind: FailureKind, bits: u64) -> Option<Drawn> {
        let (ceiling, next) = policy.ceiling(Route::Geometric, carry, n, kind)?;
        let longest = ceiling.saturating_add(ceiling / 2).min(LONGEST_NANOS);
        let interval = Interval { lo: (ceiling as f64 * 0.55) as u64 / MILLI * MILLI, hi: longest };
        Some(Drawn { delay: delay(ceiling, policy.last_cap(), share(bits)), interval, carry: next })
    }

    fn sample(&self, policy: &Policy, _: u32, interval: Interval) -> Option<[u64; SAMPLE]> {
        // The upper end of its interval is one and a half ceilings.
        let ceiling = interval.hi / 3 * 2;
        Some(core::array::from_fn(|at| delay(ceiling, policy.last_cap(), middle(at, SAMPLE))))
    }
}

const MILLI: u64 = 1_000_000;

/// Returns the delay for a number in `[0, 1)`.
fn delay(ceiling: u64, cap: u64, share: f64) -> u64 {
    let ceiling = ceiling / MILLI;
    let distance = (share * 0.5 * ceiling as f64) as u64;
    let drawn = if (share * 10.0) as u64 % 2 == 0 { ceiling - distance } else { ceiling.saturating_add(distance) };
    let cap = cap.min(LONGEST_NANOS) / MILLI * MILLI;
    drawn.saturating_mul(MILLI).min(cap)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000 * MILLI;

    #[test]
    fn the_first_decimal_selects_the_side() {
        for (share, want) in
            [(0.0, 1000), (0.099, 951), (0.1, 1050), (0.199, 1099), (0.2, 900), (0.85, 575), (0.95, 1475)]
        {
            assert_eq!(delay(SECOND, 5 * SECOND, share), want * MILLI, "{share}");
        }
    }

    #[test]
    fn from_the_fifth_retry_on_every_delay_is_the_cap() {
        let shares = || (0..1_000).map(|i| f64::from(i) / 1_000.0);
        let at_cap =
            |n: u32| shares().filter(|&share| delay(SECOND << (n - 1), 5 * SECOND, share) == 5 * SECOND).count();
        assert_eq!([1, 2, 3, 4, 5].map(at_cap), [0, 0, 300, 900, 1000]);
    }
}
