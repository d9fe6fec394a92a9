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

/// The kinds of jitter to draw, each as often as the others, and the percentages `p` of ±p. Without jitter, clients
/// that have come together stay together; with less than a twentieth, nearly so.
const KINDS: [Option<Jitter>; 4] = [Some(Jitter::Full), Some(Jitter::Equal), Some(Jitter::Decorrelated), None];
const PERCENTAGES: (f64, f64) = (5.0, 90.0);

/// The percentages that are tried around every point.
const USUAL_PERCENTAGES: [f64; 4] = [5.0, 10.0, 20.0, 50.0];

const MULTIPLIERS: (f64, f64) = (1.2, 10.0);

/// The share of drawn points with a constant delay.
const CONSTANT: f64 = 0.2;

impl Ranges {
    /// Draws a point.
    pub(super) fn draw(&self, seed: Seed) -> Point {
        let share = |n| share(seed, n);
        let between = |n, (low, high): (f64, f64)| low * (high / low).powf(share(n));
        // Each setting has a number of its own in the stream, so that none depends on which others are drawn.
        let base = between(0, self.base);
        Point {
            base,
            cap: if share(7) < CONSTANT { base } else { between(1, self.cap) },
            multiplier: between(2, MULTIPLIERS),
            jitter: match KINDS[((share(3) * KINDS.len() as f64) as usize).min(KINDS.len() - 1)] {
                Some(jitter) => jitter,
                None => plus_minus(between(6, PERCENTAGES)),
            },
            spread: self.spread.map_or(0.0, |range| between(4, range)),
            attempts: match &self.attempts {
                Some(range) => {
                    let count = range.end() - range.start() + 1;
                    range.start() + ((share(5) * f64::from(count)) as u32).min(count - 1)
                }
                None => 0,
            },
        }
    }

    /// Returns points that differ in one setting, with lengths varied by these factors, or in a length and its cap, or
    /// in one end of the range of the first delay.
    pub(super) fn near(&self, point: &Point, factors: &[f64]) -> Vec<Point> {
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
            let (shortest, longest) = point.first_delay();
            near.extend(self.between_delays(point, shortest * factor, longest));
            near.extend(self.between_delays(point, shortest, longest * factor));
        }
        // The same delay every time, and as wide a range by decorrelated jitter.
        near.push(Point { cap: point.base, ..*point });
        near.push(Point { jitter: Jitter::Decorrelated, base: within(point.base / 2.0, self.base), ..*point });
        near.extend(KINDS.into_iter().flatten().map(|jitter| Point { jitter, ..*point }));
        near.extend(USUAL_PERCENTAGES.map(|percentage| Point { jitter: plus_minus(percentage), ..*point }));
        for attempts in self.attempts.iter().flat_map(Clone::clone) {
            near.push(Point { attempts, ..*point });
            // The same time for all attempts together.
            let factor = f64::from(point.attempts.saturating_sub(1)) / f64::from(attempts.saturating_sub(1).max(1));
            let (base, cap) = (within(point.base * factor, self.base), within(point.cap * factor, self.cap));
            near.push(Point { base, cap, attempts, ..*point });
            near.push(Point { base: within(point.cap, self.base), attempts, ..*point });
        }
        near
    }

    /// Draws a point around another one: each length differs by at most this factor.
    pub(super) fn around(&self, point: &Point, factor: f64, seed: Seed) -> Point {
        let varied = |n, value: f64| value * factor.powf(2.0 * share(seed, n) - 1.0);
        let jitter = match point.jitter {
            Jitter::Factor(ratio) => plus_minus(varied(3, 100.0 * ratio.as_f64())),
            jitter => jitter,
        };
        let base = within(varied(0, point.base), self.base);
        Point {
            base,
            cap: if point.cap <= point.base { base } else { within(varied(1, point.cap), self.cap) },
            multiplier: within(varied(2, point.multiplier), MULTIPLIERS),
            jitter,
            spread: self.spread.map_or(0.0, |range| within(varied(4, point.spread), range)),
            attempts: point.attempts,
        }
    }

    /// Returns the point with ± jitter whose first delay is in this range.
    fn between_delays(&self, point: &Point, shortest: f64, longest: f64) -> Option<Point> {
        if shortest >= longest {
            return None;
        }
        let base = (shortest + longest) / 2.0;
        let jitter = plus_minus(100.0 * (longest - shortest) / (2.0 * base));
        let cap = if point.cap <= point.base { base } else { point.cap };
        Some(Point { base: within(base, self.base), cap, jitter, ..*point })
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
            "searched: constant and exponential delays, bases of {}, caps of {}, multipliers of {} to {}, jitter full, \
             equal, decorrelated and ±{}% to ±{}%, {last}",
            range(self.base),
            range(self.cap),
            MULTIPLIERS.0,
            MULTIPLIERS.1,
            PERCENTAGES.0,
            PERCENTAGES.1,
        )
    }
}

impl Point {
    /// Returns the range of the first delay, in seconds.
    fn first_delay(&self) -> (f64, f64) {
        match self.jitter {
            Jitter::Full => (0.0, self.base),
            Jitter::Equal => (self.base / 2.0, self.base),
            Jitter::Decorrelated => (self.base, self.cap.min(3.0 * self.base)),
            Jitter::Factor(ratio) => (self.base * (1.0 - ratio.as_f64()), self.base * (1.0 + ratio.as_f64())),
            _ => (self.base, self.base),
        }
    }
}

/// Draws a number uniformly from `[0, 1)`.
fn share(seed: Seed, n: u64) -> f64 {
    (seed.draw(n) >> 11) as f64 / (1_u64 << 53) as f64
}

fn within(value: f64, (low, high): (f64, f64)) -> f64 {
    value.max(low).min(high)
}

/// Returns ± jitter of this percentage, in whole percents.
fn plus_minus(percentage: f64) -> Jitter {
    Jitter::Factor(Ratio::percent(within(percentage, PERCENTAGES).round() as u32))
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
