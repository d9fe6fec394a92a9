//! Polly's jitter for exponential delays ("DecorrelatedJitterBackoffV2"), which is not decorrelated in the sense of the
//! article of that name: every delay is the distance between two points on one curve, so the delays of a call add up to
//! a single point on it.

use super::curves::{Band, middle, share};
use crate::numbers::math::{exp2, square_root, tanh};
use crate::outcome::FailureKind;
use crate::policy::{Backoff, DelayCurve, Drawn, Interval, Policy, SAMPLE, SAMPLE_SIDE};

/// Polly's delays: the curve for exponential backoff, this band for others.
pub(super) struct Polly {
    pub(super) band: Band,
}

impl DelayCurve for Polly {
    fn next_delay(&self, policy: &Policy, carry: f64, n: u32, kind: FailureKind, bits: u64) -> Option<Drawn> {
        match policy.backoff() {
            Backoff::Exponential { .. } => {
                let base = policy.curve.first * policy.curve.kind_factor(kind);
                Some(next(base, policy.last_cap() as f64, carry, n, bits))
            }
            _ => self.band.next_delay(policy, carry, n, kind, bits),
        }
    }

    fn sample(&self, policy: &Policy, n: u32, _: Interval) -> Option<[u64; SAMPLE]> {
        let Backoff::Exponential { .. } = policy.backoff() else { return None };
        let (base, cap) = (policy.curve.first, policy.last_cap() as f64);
        Some(core::array::from_fn(|at| {
            delay(base, cap, n, middle(at / SAMPLE_SIDE, SAMPLE_SIDE), middle(at % SAMPLE_SIDE, SAMPLE_SIDE))
        }))
    }

    fn sum_bounds(&self, policy: &Policy, n: u32) -> Option<(u64, u64)> {
        let Backoff::Exponential { .. } = policy.backoff() else { return None };
        Some(sum_bounds(policy.curve.first * SCALE, policy.last_cap() as f64, n))
    }
}

/// `1 / 1.4`: with it the median of the first delay is about the base.
const SCALE: f64 = 1.0 / 1.4;

/// Returns the point of the curve `f(t) = 2^t · tanh(√(4t))`.
fn curve(t: f64) -> f64 {
    exp2(t) * tanh(square_root(4.0 * t))
}

/// Draws the delay before retry `n`, from 1: `(f(n − 1 + r) − previous) · base / 1.4`, at most `cap`; `previous` is the
/// value of `f` for the delay before it, and 0 at first. That value is carried on.
fn next(base: f64, cap: f64, previous: f64, n: u32, bits: u64) -> Drawn {
    let point = curve(f64::from(n.saturating_sub(1)) + share(bits));
    let previous = if n <= 1 { 0.0 } else { previous };
    let delay = capped((point - previous) * base * SCALE, cap);
    Drawn { delay, interval: Interval { lo: 0, hi: longest(base, cap, n) }, carry: point }
}

/// Returns the delay before retry `n` for two numbers in `[0, 1)`: its own draw, and the draw before it.
fn delay(base: f64, cap: f64, n: u32, own: f64, before: f64) -> u64 {
    let at = f64::from(n.saturating_sub(1));
    let previous = if n <= 1 { 0.0 } else { curve(at - 1.0 + before) };
    capped((curve(at + own) - previous) * base * SCALE, cap)
}

/// Returns the longest delay before retry `n`; the shortest is 0.
fn longest(base: f64, cap: f64, n: u32) -> u64 {
    delay(base, cap, n, 1.0, 0.0)
}

/// Returns the least and the greatest sum of the delays 1 to `n`, for a base that is scaled already.
///
/// Without a cap the sum is the last point on the curve alone. A capped sum is a concave function of the points, each
/// of which lies between two neighboring whole numbers, so its least value has every point at one of them. Its greatest
/// value has every point as late as possible, because the curve's steps grow.
fn sum_bounds(scale: f64, cap: f64, n: u32) -> (u64, u64) {
    let step = |from: f64, to: f64| capped((to - from) * scale, cap) as f64;
    let (mut most, mut before, mut from) = (0.0, 0.0, 0.0);
    // The least sums that end with the last point at the lower and at the upper end of its range.
    let (mut low, mut high) = (0.0_f64, 0.0_f64);
    for k in 1..=n {
        let to = curve(f64::from(k));
        most += step(from, to);
        (low, high) = if k == 1 {
            (0.0, step(from, to))
        } else {
            (high.min(low + step(before, from)), (high + step(from, to)).min(low + step(before, to)))
        };
        (before, from) = (from, to);
    }
    // Every delay is rounded down to a nanosecond, and every step above rounds once.
    let rounding = f64::from(n) * (1.0 + most * f64::EPSILON);
    ((low.min(high) - rounding).max(0.0) as u64, (most + rounding) as u64)
}

fn capped(nanos: f64, cap: f64) -> u64 {
    // Infinite beyond 1,024 retries, where the distance of two points is NaN.
    let delay = if nanos < cap { nanos.max(0.0) } else { cap };
    if nanos.is_nan() { cap as u64 } else { delay as u64 }
}

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    const SECOND: f64 = 1e9;

    /// Returns the first delays of a call in which every draw is this number in `[0, 1)`.
    fn series(share: f64, retries: u32) -> Vec<f64> {
        let bits = (share * (1_u64 << 53) as f64) as u64;
        let mut carry = SECOND;
        (1..=retries)
            .map(|n| {
                let drawn = next(SECOND, i64::MAX as f64, carry, n, bits << 11);
                carry = drawn.carry;
                assert!(drawn.delay <= drawn.interval.hi, "retry {n}");
                drawn.delay as f64 / SECOND
            })
            .collect()
    }

    fn agree(got: &[f64], want: &[f64]) {
        assert!(got.iter().zip(want).all(|(got, want)| (got - want).abs() < 1e-6), "{got:?}, not {want:?}");
        assert_eq!(got.len(), want.len());
    }

    #[test]
    fn pl_13_the_delays_of_the_second_decorrelated_jitter() {
        agree(&series(0.5, 6), &[0.897_405, 1.093_004, 2.035_748, 4.045_979, 8.083_632, 16.163_663]);
        // The first delay is 0, since f(0) is.
        assert!(series(0.0, 1)[0].abs() < 1e-9);
    }

    #[test]
    fn pl_15_delays_add_up_to_one_point_on_the_curve() {
        for (share, want) in [(0.0, 22.851_178), (0.5, 32.319_431), (1.0 - f64::EPSILON / 2.0, 45.709_205)] {
            let sum: f64 = series(share, 6).iter().sum();
            assert!((sum - want).abs() < 1e-6, "{share}: {sum}, not {want}");
        }
        // The sum depends on the last draw alone.
        let mut carry = 0.0;
        let delays = (1..=4_u32).map(|n| {
            let drawn = next(SECOND, i64::MAX as f64, carry, n, if n == 4 { 1 << 63 } else { u64::from(n) << 60 });
            carry = drawn.carry;
            drawn.delay as f64 / SECOND
        });
        assert!((delays.sum::<f64>() - series(0.5, 4).iter().sum::<f64>()).abs() < 1e-8);
    }

    /// Every draw at either end of its range, in every combination.
    #[test]
    fn sums_reach_their_bounds_and_never_exceed_them() {
        const RETRIES: u32 = 7;
        for cap in [0.3, 0.9, 1.2, 2.0, 3.0, 7.0, 20.0, 1e9] {
            let cap = cap * SECOND;
            for n in 1..=RETRIES {
                let sums = (0..1_u32 << n).map(|ends| {
                    let mut carry = 0.0;
                    let delays = (1..=n).map(|k| {
                        let drawn = next(SECOND, cap, carry, k, if ends >> (k - 1) & 1 == 0 { 0 } else { u64::MAX });
                        carry = drawn.carry;
                        drawn.delay
                    });
                    delays.sum::<u64>()
                });
                let (least, most) = sums.fold((u64::MAX, 0), |(least, most), sum| (sum.min(least), sum.max(most)));
                let (low, high) = sum_bounds(SECOND * SCALE, cap, n);
                assert!(low <= least && least - low < 100, "cap {cap}, {n} retries: least {least}, not {low}");
                assert!(most <= high && high - most < 100, "cap {cap}, {n} retries: most {most}, not {high}");
            }
        }
    }

    #[test]
    fn pl_11_delays_are_positive_and_cut_at_the_cap_also_beyond_the_numbers() {
        for cap in [3e10, i64::MAX as f64] {
            let mut carry = 0.0;
            for n in 1..=1_100 {
                // Large and small draws in turn, where the distance is shortest.
                let drawn = next(SECOND, cap, carry, n, if n % 2 == 0 { 1 << 60 } else { 1 << 63 });
                carry = drawn.carry;
                assert!(drawn.delay > 0 && drawn.delay <= cap as u64, "retry {n}: {drawn:?}");
                assert!(n < 80 || drawn.delay == cap as u64, "retry {n}: {drawn:?}");
            }
        }
    }
}
