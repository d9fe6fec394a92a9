//! Random bits that are a pure function of a seed and a number, and draws from an interval.

use core::time::Duration;

use super::instant::nanos;

/// The root of all randomness, and the key of one call.
///
/// Every draw is a pure function of the call's seed, the number of the retry and the purpose of the draw. So nothing
/// has to be stored, no clone can run in lockstep with its original by accident, and any draw of any call can be
/// repeated from its seed alone.
///
/// The generator is wyrand, read at a numbered point: the bits of draw `k` under key `s` are `fold(x, x ^
/// 0x8bb84b93962eacc9)` with `x = s + (k + 1)·0x2d358dccaa6c78a5`, where `fold(a, b)` is the xor of the two halves of
/// the 128-bit product. Source: Wang Yi, wyhash "final version 4". The numbers and the meaning of `k` are frozen: a
/// seed gives the same delays forever, on every platform.
///
/// ```
/// use stagger_core::Seed;
///
/// let process = Seed::new(42);
/// assert_ne!(process.for_call(1), process.for_call(2));
/// assert_eq!(process.for_call(1), Seed::new(42).for_call(1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Seed(u64);

/// What a draw is for. Each purpose has numbers of its own, so one never shifts another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Purpose {
    /// The wait before the first action of an episode.
    Spread = 0,
    /// The delay of a retry.
    Delay = 1,
    /// The delay added to a server's hint.
    Hint = 2,
    /// Which of two neighboring ticks of a coarse timer is taken.
    Dither = 3,
    /// The caller's own purposes, by [`Seed::draw`].
    Own = 4,
    /// The wait after a wait whose timer fired long after its end.
    Again = 5,
}

/// The low bits of a draw's number, which hold its purpose. Six purposes are in use; eight are reserved.
const PURPOSE_BITS: u32 = 3;
/// The bits from here on hold the episode: how many times the count of retries was restarted. Without the episode, a
/// client would draw the same delays after each restart, and one with a short first delay would be first every time.
const EPISODE_SHIFT: u32 = PURPOSE_BITS + 32;

const STEP: u64 = 0x2d35_8dcc_aa6c_78a5;
const MIX: u64 = 0x8bb8_4b93_962e_acc9;

impl Seed {
    /// Creates a fixed seed, for reproducible delays.
    #[inline]
    #[must_use]
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns the seed as a number.
    #[inline]
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// Returns the seed of the call, client or episode number `id`: an independent stream for each `id`.
    ///
    /// For one seed, two ids never share a stream.
    #[inline]
    #[must_use]
    pub const fn for_call(self, id: u64) -> Self {
        // The finalizer of SplitMix64 is a bijection, so distinct ids stay distinct. The seed itself is scrambled
        // first, so that neighboring seeds do not share shifted lists of calls.
        Self(scramble(id.wrapping_add(scramble(self.0))))
    }

    /// Returns 64 random bits for a purpose of your own: the `n`-th such draw, for `n` below 2^61. No delay uses them.
    ///
    /// Use it for reproducible randomness that does not depend on the order of events, such as the network in a
    /// simulation.
    #[inline]
    #[must_use]
    pub const fn draw(self, n: u64) -> u64 {
        self.numbered((n << PURPOSE_BITS) + Purpose::Own as u64)
    }

    /// Returns the bits of the draw for `purpose` at retry `n` of an episode.
    #[inline]
    pub(crate) const fn bits(self, episode: u32, n: u32, purpose: Purpose) -> u64 {
        self.numbered(((episode as u64) << EPISODE_SHIFT) + ((n as u64) << PURPOSE_BITS) + purpose as u64)
    }

    #[inline]
    const fn numbered(self, number: u64) -> u64 {
        fold(self.0.wrapping_add(number.wrapping_add(1).wrapping_mul(STEP)))
    }

    /// Returns the bits for `purpose` at the retries 1, 2, 3, … of the first episode, one after the other.
    #[inline]
    pub(crate) const fn series(self, purpose: Purpose) -> Series {
        Series(self.0.wrapping_add((purpose as u64).wrapping_add(1).wrapping_mul(STEP)))
    }
}

/// [`Seed::bits`] from retry to retry: an addition replaces the multiplication by the number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Series(u64);

impl Series {
    #[inline]
    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add((1_u64 << PURPOSE_BITS).wrapping_mul(STEP));
        fold(self.0)
    }
}

#[inline]
const fn fold(point: u64) -> u64 {
    let product = point as u128 * (point ^ MIX) as u128;
    (product >> 64) as u64 ^ product as u64
}

/// Applies SplitMix64's finalizer (Steele, Lea, Flood 2014; constants of Stafford's variant 13).
const fn scramble(mut z: u64) -> u64 {
    z = z.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
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

#[cfg(test)]
mod tests {
    use std::vec::Vec;

    use super::*;

    /// Fixes the numbers for good: a recorded seed gives the same delays in every later version.
    #[test]
    fn bits_are_frozen() {
        let seed = Seed::new(0x5eed);
        let got = [
            seed.bits(0, 0, Purpose::Spread),
            seed.bits(0, 1, Purpose::Delay),
            seed.bits(0, 1, Purpose::Hint),
            seed.bits(0, 2, Purpose::Delay),
            seed.bits(1, 1, Purpose::Delay),
            seed.draw(1),
            seed.for_call(7).get(),
            Seed::new(0).for_call(0).get(),
        ];
        assert_eq!(
            got,
            [
                0x3500_d81c_a68b_61b4,
                0x9147_a569_3f6c_4b32,
                0xa96b_bb7a_a1f9_d10c,
                0x9580_2823_aeae_2c64,
                2_563_172_213_274_292_337,
                17_153_841_685_004_970_084,
                11_461_534_527_337_161_066,
                12_035_550_249_420_947_055,
            ],
            "{got:#x?}"
        );
    }

    #[test]
    fn calls_of_one_seed_and_purposes_of_one_retry_differ() {
        let seed = Seed::new(1);
        let mut seen = std::collections::HashSet::new();
        for id in 0..2_000 {
            assert!(seen.insert(seed.for_call(id).get()), "call {id}");
        }
        for n in 0..200 {
            for purpose in
                [Purpose::Spread, Purpose::Delay, Purpose::Hint, Purpose::Dither, Purpose::Own, Purpose::Again]
            {
                assert!(seen.insert(seed.bits(0, n, purpose)), "retry {n}, {purpose:?}");
                assert!(seen.insert(seed.bits(1, n, purpose)), "retry {n}, {purpose:?}, next episode");
            }
        }
    }

    #[test]
    fn a_series_is_the_numbered_draws_in_order() {
        let seed = Seed::new(3);
        let mut series = seed.series(Purpose::Delay);
        for n in 1..100 {
            assert_eq!(series.next(), seed.bits(0, n, Purpose::Delay), "retry {n}");
        }
    }

    /// Computes chi-square over the top and the bottom byte, along a call and across the calls of a seed.
    #[test]
    fn bits_are_uniform_along_a_call_and_across_calls() {
        let along = (0..65_536).map(|n| Seed::new(9).bits(0, n, Purpose::Delay));
        let across = (0..65_536).map(|id| Seed::new(9).for_call(id).bits(0, 1, Purpose::Delay));
        let neighbors = (0..65_536).map(|seed| Seed::new(seed).bits(0, 1, Purpose::Delay));
        for (name, draws) in
            [("along", along.collect::<Vec<_>>()), ("across", across.collect()), ("neighbors", neighbors.collect())]
        {
            for shift in [0, 56] {
                let mut cells = [0_u32; 256];
                for bits in &draws {
                    cells[(bits >> shift) as usize & 255] += 1;
                }
                let chi: f64 = cells.iter().map(|&c| (f64::from(c) - 256.0).powi(2) / 256.0).sum();
                // 255 degrees of freedom: mean 255, standard deviation 22.6; the limit is six of them. (Neighboring
                // seeds fall more evenly than chance in the low bits, which no delay uses.)
                assert!(chi < 391.0, "{name}, shift {shift}: chi-square {chi:.0}");
            }
        }
    }

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
