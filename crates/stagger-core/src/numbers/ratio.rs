use core::fmt;

use crate::numbers::message::Message;

/// An exact share in whole millionths.
///
/// Units: parts per million. Range where one is accepted: `0..=1`, unless documented otherwise. A larger share can be
/// created, so that the builder that receives it reports it together with all other problems.
///
/// As text: `20%` or `0.2`. Text that is not a whole number of millionths is rejected and not rounded, because the
/// right direction depends on the use: for a threshold, such as two thirds, round down (`0.666666`), or use
/// [`from_counts`](Self::from_counts).
///
/// ```
/// use stagger_core::Ratio;
///
/// assert_eq!("20%".parse::<Ratio>()?, Ratio::percent(20));
/// assert_eq!("0.333333".parse::<Ratio>()?, Ratio::millionths(333_333));
/// assert!("0.3333333".parse::<Ratio>().is_err());
/// assert_eq!(Ratio::millionths(1_500).to_string(), "0.15%");
/// # Ok::<(), stagger_core::text::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ratio(u32);

impl Ratio {
    /// A share of 0.
    pub const ZERO: Self = Self(0);
    /// A share of 1.
    pub const ONE: Self = Self(MILLION);

    /// Creates a share of `n` parts per million.
    #[inline]
    #[must_use]
    pub const fn millionths(n: u32) -> Self {
        Self(n)
    }

    /// Creates a share of `n` percent.
    #[inline]
    #[must_use]
    pub const fn percent(n: u32) -> Self {
        Self(n.saturating_mul(MILLION / 100))
    }

    /// Creates `part` in `whole`, rounded down to a whole millionth; 1 or more if `part >= whole`.
    ///
    /// Use it for a threshold of counts, such as a [breaker](crate::breaker::CircuitBreakerBuilder::failure_ratio)'s
    /// "2 of 3". Thresholds must be rounded down: 2 failures in 3 calls reach 666,666 millionths and not 666,667. With
    /// `whole` up to 1000 the rounded share is exact for that purpose: in a window of up to 1000 calls, `a` of `b`
    /// reach it if and only if `a / b >= part / whole`. A `whole` of 0 counts as 1.
    ///
    /// ```
    /// use stagger_core::Ratio;
    ///
    /// assert_eq!(Ratio::from_counts(2, 3), Ratio::millionths(666_666));
    /// assert_eq!(Ratio::from_counts(1, 4), Ratio::percent(25));
    /// ```
    #[must_use]
    pub const fn from_counts(part: u32, whole: u32) -> Self {
        let whole = if whole == 0 { 1 } else { whole as u64 };
        let millionths = part as u64 * MILLION as u64 / whole;
        Self(if millionths > u32::MAX as u64 { u32::MAX } else { millionths as u32 })
    }

    /// Returns the number of millionths.
    #[inline]
    #[must_use]
    pub const fn as_millionths(self) -> u32 {
        self.0
    }

    /// Returns the nearest `f64`.
    #[inline]
    #[must_use]
    pub const fn as_f64(self) -> f64 {
        self.0 as f64 / MILLION as f64
    }

    /// Returns whether the share is more than 1, which most builders reject.
    #[inline]
    #[must_use]
    pub const fn is_above_one(self) -> bool {
        self.0 > MILLION
    }

    /// Returns this share of `whole`, rounded down, exact for every `whole`.
    #[inline]
    #[must_use]
    pub const fn of(self, whole: u64) -> u64 {
        share(whole, self.0 as u64, MILLION as u64)
    }
}

const MILLION: u32 = 1_000_000;

/// Returns `whole · part / of`, rounded down and saturating at `u64::MAX`. `of` is not zero.
#[inline]
pub(crate) const fn share(whole: u64, part: u64, of: u64) -> u64 {
    // A division of 128 bits takes ten times as long, and realistic counts do not need it.
    if let Some(product) = whole.checked_mul(part) {
        return product / of;
    }
    let share = whole as u128 * part as u128 / of as u128;
    if share > u64::MAX as u128 { u64::MAX } else { share as u64 }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Message::<16>::new().percent(*self).as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_from_counts_is_an_exact_threshold_for_up_to_1000_calls() {
        let reaches = |a: u32, b: u32, ratio: Ratio| u64::from(a) * 1_000_000 >= u64::from(b) * u64::from(ratio.0);
        for (part, whole) in [(1, 3), (2, 3), (3, 7), (6, 7), (1, 997), (998, 999), (999, 1_000), (1, 1), (500, 1_000)]
        {
            let ratio = Ratio::from_counts(part, whole);
            for b in 1..=1_000 {
                let least = (part * b).div_ceil(whole);
                assert!(reaches(least, b, ratio), "{least} of {b} reach {part} of {whole}");
                assert!(
                    least == 0 || !reaches(least - 1, b, ratio),
                    "{} of {b} do not reach {part} of {whole}",
                    least - 1
                );
            }
        }
        assert_eq!((Ratio::from_counts(1, 0), Ratio::from_counts(u32::MAX, 1)), (Ratio::ONE, Ratio(u32::MAX)));
    }

    #[test]
    fn share_of_a_whole_is_exact_and_saturates() {
        assert_eq!(Ratio::percent(60).of(1_000), 600);
        assert_eq!(Ratio::millionths(1).of(u64::MAX), u64::MAX / 1_000_000);
        assert_eq!(Ratio::ONE.of(u64::MAX), u64::MAX);
        assert_eq!(Ratio::percent(200).of(u64::MAX), u64::MAX);
        assert!(Ratio::percent(101).is_above_one() && !Ratio::ONE.is_above_one());
    }

    #[test]
    fn a_share_is_the_same_with_64_bits_and_with_128() {
        for part in [1, 3, 999_999, 1_000_000, 2_000_000] {
            let fits = u64::MAX / part;
            for whole in [0, 1, 7, 1_000_001, fits - 1, fits, fits.saturating_add(1), u64::MAX] {
                let want = u128::from(whole) * u128::from(part) / 1_000_000;
                assert_eq!(share(whole, part, 1_000_000), u64::try_from(want).unwrap_or(u64::MAX), "{part} of {whole}");
            }
        }
    }
}
