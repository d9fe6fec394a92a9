use core::time::Duration;

use crate::numbers::instant::nanos;

/// Draws uniformly from `[lo, hi]`, both ends included, in nanoseconds: `lo + (bits · (hi − lo + 1) >> 64)`.
///
/// Pure: the same bits give the same delay. `bits` are 64 uniform random bits; 0 gives `lo`, `u64::MAX` gives `hi`. If
/// `hi` is below `lo`, the result is `lo`.
///
/// Source: D. Lemire, "Fast Random Integer Generation in an Interval", 2019, without the rejection: with intervals
/// below 2^63 ns the bias is below 2^-1 ns in every delay, and the number of bits per draw stays fixed, so that a draw
/// can be reached by its number.
///
/// ```
/// use core::time::Duration;
/// use stagger_core::schedule::draw;
///
/// let second = Duration::from_secs(1);
/// assert_eq!(draw(Duration::ZERO, second, 0), Duration::ZERO);
/// assert_eq!(draw(Duration::ZERO, second, 1 << 63), second / 2);
/// assert_eq!(draw(Duration::ZERO, second, u64::MAX), second);
/// ```
#[must_use]
pub const fn draw(lo: Duration, hi: Duration, bits: u64) -> Duration {
    Duration::from_nanos(draw_nanos(nanos(lo), nanos(hi), bits))
}

/// Draws like [`draw`], in nanoseconds. Both ends are at most `LONGEST_NANOS`, so the span plus one does not overflow.
#[inline]
pub(crate) const fn draw_nanos(lo: u64, hi: u64, bits: u64) -> u64 {
    let span = hi.saturating_sub(lo) + 1;
    lo + ((bits as u128 * span as u128) >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draw_reaches_both_ends_and_nothing_beyond() {
        for (lo, hi) in [(0, 0), (0, 1), (7, 7), (5, 9), (0, i64::MAX as u64), (9, 3)] {
            let top = hi.max(lo);
            assert_eq!(draw_nanos(lo, hi, 0), lo);
            assert_eq!(draw_nanos(lo, hi, u64::MAX), top, "[{lo}, {hi}]");
            for k in 0..64 {
                let got = draw_nanos(lo, hi, 0x9e37_79b9_7f4a_7c15_u64.rotate_left(k));
                assert!((lo..=top).contains(&got));
            }
        }
        assert_eq!(draw(Duration::MAX, Duration::MAX, u64::MAX), Duration::from_nanos(i64::MAX as u64));
    }
}
