//! Points of a search space, the ranges they are drawn from, and their neighbors.

use core::ops::RangeInclusive;
use core::time::Duration;

use stagger_core::text::Compact;
use stagger_core::{Jitter, Ratio, Seed};

/// The ranges to search for a fleet. Ranges of lengths are in seconds, and searched evenly in their logarithm.
pub(super) struct Ranges {
    pub(super) base: (f64, f64),
    pub(super) cap: (f64, f64),
    /// `None` for calls, which are not spread.
    pub(super) spread: Option<(f64, f64)>,
    pub(super) attempts: Option<RangeInclusive<u32>>,
}

/// A point of the search space.
#[derive(Clone, Copy, Debug)]
pub(super) struct Point {
    pub(super) base: f64,
    pub(super) cap: f64,
    pub(super) multiplier: f64,
    pub(super) jitter: Jitter,
    pub(super) spread: f64,
    pub(super) attempts: u32,
}

/// The jitters to try. Without jitter, clients that have come together stay together.
const JITTERS: [Jitter; 5] = [
    Jitter::Full,
    Jitter::Equal,
    Jitter::Decorrelated,
    Jitter::Factor(Ratio::percent(20)),
    Jitter::Factor(Ratio::percent(50)),
];

const MULTIPLIERS: (f64, f64) = (1.5, 10.0);

impl Ranges {
    /// Draws a point.
    pub(super) fn draw(&self, seed: Seed) -> Point {
        let share = |n: u64| (seed.draw(n) >> 11) as f64 / (1_u64 << 53) as f64;
        let between = |n, (low, high): (f64, f64)| low * (high / low).powf(share(n));
        let attempts = self.attempts.as_ref().map_or(0, |range| {
            let count = range.end() - range.start() + 1;
            range.start() + ((share(5) * f64::from(count)) as u32).min(count - 1)
        });
        Point {
            base: between(0, self.base),
            cap: between(1, self.cap),
            multiplier: between(2, MULTIPLIERS),
            jitter: JITTERS[((share(3) * JITTERS.len() as f64) as usize).min(JITTERS.len() - 1)],
            spread: self.spread.map_or(0.0, |range| between(4, range)),
            attempts,
        }
    }

    /// Returns points that differ in one setting, with lengths varied by these factors, or in a length and its cap.
    pub(super) fn near(&self, point: &Point, factors: &[f64]) -> Vec<Point> {
        let within = |value: f64, (low, high): (f64, f64)| value.clamp(low, high);
        let mut near = Vec::new();
        for factor in factors {
            near.push(Point { base: within(point.base * factor, self.base), ..*point });
            near.push(Point { cap: within(point.cap * factor, self.cap), ..*point });
            let (base, cap) = (within(point.base * factor, self.base), within(point.cap * factor, self.cap));
            near.push(Point { base, cap, ..*point });
            near.push(Point { multiplier: within(point.multiplier * factor, MULTIPLIERS), ..*point });
            if let Some(range) = self.spread {
                near.push(Point { spread: within(point.spread * factor, range), ..*point });
            }
        }
        // The same delay every time, and as wide a range by decorrelated jitter.
        near.push(Point { cap: point.base, ..*point });
        near.push(Point { jitter: Jitter::Decorrelated, base: within(point.base / 2.0, self.base), ..*point });
        near.extend(JITTERS.map(|jitter| Point { jitter, ..*point }));
        near.extend(self.attempts.iter().flat_map(Clone::clone).map(|attempts| Point { attempts, ..*point }));
        near
    }

    /// Returns what is searched, as a sentence without a full stop.
    pub(super) fn text(&self) -> String {
        let range = |(low, high): (f64, f64)| {
            format!("{:.2} to {:.2}", Compact(round_up(length(low))), Compact(round_up(length(high))))
        };
        let last = match (self.spread, &self.attempts) {
            (Some(spread), _) => format!("spreads of {}", range(spread)),
            (None, Some(attempts)) => format!("{} to {} attempts, no spread", attempts.start(), attempts.end()),
            (None, None) => "no spread".to_owned(),
        };
        format!(
            "searched: constant and exponential delays, bases of {}, caps of {}, multipliers of {} to {}, jitter full, equal, decorrelated, ±20% and \
             ±50%, {last}",
            range(self.base),
            range(self.cap),
            MULTIPLIERS.0,
            MULTIPLIERS.1,
        )
    }
}

pub(super) fn length(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
}

/// Rounds up to two digits, so that the simulated policy is exactly the printed one.
pub(super) fn round_up(length: Duration) -> Duration {
    let ms = length.as_micros().div_ceil(1_000);
    let digits = ms.checked_ilog10().unwrap_or(0).saturating_sub(1);
    let step = 10_u128.pow(digits);
    Duration::from_millis(u64::try_from(ms.div_ceil(step).saturating_mul(step)).unwrap_or(u64::MAX))
}

/// Rounds seconds down to two digits, so that rounding up does not reach a limit above it.
pub(super) fn rounded_down(seconds: f64) -> f64 {
    let step = 10_f64.powf(seconds.log10().floor() - 1.0).max(0.001);
    (seconds / step).floor() * step
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recommended_durations_have_two_digits() {
        for (ms, want) in [(0, 0), (7, 7), (99, 99), (101, 110), (20_000, 20_000), (20_001, 21_000), (123_456, 130_000)]
        {
            assert_eq!(round_up(Duration::from_millis(ms)), Duration::from_millis(want), "{ms}");
        }
    }
}
