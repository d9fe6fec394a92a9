use core::fmt;
use core::str::FromStr;
use core::time::Duration;

use crate::numbers::instant::nanos;
use crate::numbers::ratio::Ratio;
use crate::policy::profile_jitter::ProfileJitter;
use crate::profile::Profile;
use crate::text::{Compact, ParseError, Problem, parse_duration};

/// How a delay is drawn from its ceiling.
///
/// The ceiling of retry `n` is `min(cap, base · multiplier^(n-1))`: **capped first, then drawn inside it**. So no delay
/// exceeds the cap, except with [`Factor`](Self::Factor), by its share; and at the cap the draw still spans its whole
/// interval. Drawing first and capping afterwards, as several libraries do, makes every client wait exactly the cap, at
/// the same time, just when the outage is long. [`Added`](Self::Added) and the jitters of some profiles do so, to match
/// other systems.
///
/// All draws are uniform on a closed interval.
///
/// As text: `none`, `full`, `equal`, `decorrelated`, `±20%` (also `+-20%`, `20%`, `0.2`), `add:500ms`, or the name of a
/// profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Jitter {
    /// The ceiling itself. Clients that failed at the same time retry at the same time.
    None,
    /// Uniform on `[0, ceiling]`. The default for exponential and linear backoff.
    ///
    /// Source: M. Brooker, "Exponential Backoff And Jitter", AWS, 2015. Differs from it in: nothing.
    Full,
    /// Uniform on `[ceiling / 2, ceiling]`. The default for constant delays and lists.
    ///
    /// Source: as for [`Full`](Self::Full).
    Equal,
    /// Uniform on `[base, max(base, min(cap, 3 · previous))]`, where `previous` is the delay drawn before, and `base`
    /// at first. It depends on base and cap only; there is no multiplier.
    ///
    /// Source: as for [`Full`](Self::Full). Differs from it in: the article takes `min(cap, U(base, 3 · previous))`,
    /// which piles clients up on the cap (with a cap of 50 bases, 31 % of them wait exactly the cap by retry 12). Here
    /// the interval is capped, and the draw stays spread.
    Decorrelated,
    /// Uniform on `[(1 − f) · ceiling, (1 + f) · ceiling]`, so it may exceed the cap by its share.
    ///
    /// cenkalti/backoff (0.5), Google's HTTP client (0.5) and gRPC (0.2) use it. Range of `f`: `0..=1`.
    Factor(Ratio),
    /// `min(cap, U[ceiling, ceiling + length])`: additive jitter, with the cap applied after the draw.
    ///
    /// Every delay lies in `[ceiling, min(cap, ceiling + length)]`. **Once the ceiling reaches the cap, every delay is
    /// exactly the cap**, so clients that fail together retry together for the rest of the outage. Use it to match
    /// another system, without a cap, or with an attempt limit that ends the call before the cap; otherwise prefer
    /// [`Full`](Self::Full) or [`Equal`](Self::Equal). As text: `add:500ms`.
    ///
    /// Source: tenacity for Python, `wait_exponential_jitter(jitter=...)`, and the truncated exponential backoff of
    /// Google Cloud's documentation, `min(2^n + random_number_milliseconds, maximum_backoff)`. Differs from them in:
    /// nothing. With base 1 s, multiplier 2, cap 5 s and `add:1s`: `[1, 2]`, `[2, 3]`, `[4, 5]`, 5, 5 s.
    Added(Duration),
    /// The jitter of one system that no other variant describes. As text: the name of its [`Profile`].
    Profile(ProfileJitter),
}

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

impl fmt::Display for Jitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Full => f.write_str("full"),
            Self::Equal => f.write_str("equal"),
            Self::Decorrelated => f.write_str("decorrelated"),
            Self::Factor(share) => write!(f, "±{share}"),
            Self::Added(length) => write!(f, "add:{}", Compact(*length)),
            Self::Profile(jitter) => f.write_str(jitter.name()),
        }
    }
}

impl FromStr for Jitter {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        Ok(match text {
            "none" => Self::None,
            "full" => Self::Full,
            "equal" => Self::Equal,
            "decorrelated" => Self::Decorrelated,
            _ if text.starts_with("add:") => {
                let length = &text["add:".len()..];
                Self::Added(parse_duration(length)?.ok_or(ParseError::new(Problem::Limitless, "add"))?)
            }
            _ => {
                let share = text.strip_prefix('±').or_else(|| text.strip_prefix("+-")).unwrap_or(text);
                let is_number = share.starts_with(|c: char| c.is_ascii_digit() || c == '.');
                match share.parse() {
                    Ok(share) => Self::Factor(share),
                    Err(error) if is_number => return Err(error),
                    // Only the jitters of profiles go by a profile's name; every other jitter has a word of its own.
                    Err(_) => match Profile::named(text).map(|profile| profile.policy().jitter()) {
                        Some(jitter @ Self::Profile(_)) => jitter,
                        _ => return Err(ParseError::new(Problem::Jitter, text)),
                    },
                }
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use std::string::ToString;

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

    #[test]
    fn text_round_trips() {
        for (text, want) in [
            ("none", Jitter::None),
            ("full", Jitter::Full),
            ("equal", Jitter::Equal),
            ("decorrelated", Jitter::Decorrelated),
            ("±20%", Jitter::Factor(Ratio::percent(20))),
            ("add:500ms", Jitter::Added(Duration::from_millis(500))),
        ] {
            assert_eq!(text.parse(), Ok(want));
            assert_eq!(want.to_string(), text);
        }
        for text in ["+-20%", "20%", "0.2", "±0.2", ".2"] {
            assert_eq!(text.parse(), Ok(Jitter::Factor(Ratio::percent(20))), "{text}");
        }
    }

    #[test]
    fn an_invalid_jitter_and_an_invalid_share_have_different_errors() {
        assert!("ful".parse::<Jitter>().unwrap_err().to_string().contains("use full, equal"));
        assert!("add:soon".parse::<Jitter>().unwrap_err().to_string().contains("has a unit that is not known"));
        assert!("add:inf".parse::<Jitter>().unwrap_err().to_string().contains("must have a length"));
        assert!("150%".parse::<Jitter>().unwrap_err().to_string().contains("from 0 to 1"));
    }
}
