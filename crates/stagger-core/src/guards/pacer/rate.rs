/// A rate, in thousandths of a call per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rate(pub(super) u64);

/// What a cut leaves of the rate that was admitted, in percent. It is close to 100, because that rate was measured: a
/// controller that has to search for it, such as AIMD (50) or CUBIC (70, RFC 9438), must cut deeper.
const CUT: u64 = 97;
/// The rate that grows by `BASE` in a clean tick at first, in thousandths.
const REFERENCE: u64 = 1_000_000;
/// Growth in a tick, in millionths: at the reference rate, the least and the most at first, and the most ever. Ten
/// ticks are a second, so 0.5 % are about 5 % per second.
const BASE: u64 = 5_000;
const LEAST_BASE: u64 = 2_000;
const MOST_BASE: u64 = 15_000;
const MOST: u64 = 100_000;
/// For how many clean seconds the growth stays as it is at first.
const STEADY: u64 = 2;
/// How often the growth can be multiplied by 1.3 until it is the most whatever it was.
const STEPS: u64 = 16;

impl Rate {
    /// One call per second, so that calls never starve.
    pub(super) const LEAST: Self = Self(1_000);
    /// A million per second.
    pub(super) const MOST: Self = Self(1_000_000_000);

    /// Returns the rate of so many calls in so many nanoseconds, within the bounds.
    pub(super) const fn of(calls: u64, nanos: u64) -> Self {
        let nanos = if nanos == 0 { 1 } else { nanos };
        let rate = calls as u128 * 1_000_000_000_000 / nanos as u128;
        if rate >= Self::MOST.0 as u128 {
            return Self::MOST;
        }
        Self(rate as u64).at_least(Self::LEAST)
    }

    /// Returns the time between two calls, in nanoseconds.
    pub(super) const fn interval(self) -> u64 {
        // A rate is never zero.
        1_000_000_000_000 / self.at_least(Self::LEAST).0
    }

    const fn at_least(self, least: Self) -> Self {
        if self.0 < least.0 { least } else { self }
    }

    const fn at_most(self, most: Self) -> Self {
        if self.0 > most.0 { most } else { self }
    }

    /// Returns the part of this rate that was admitted.
    pub(super) const fn share(self, admitted: u64, refused: u64) -> Self {
        let all = admitted as u128 + refused as u128;
        match (self.0 as u128 * admitted as u128).checked_div(all) {
            Some(rate) => Self(rate as u64),
            None => self,
        }
    }

    /// Returns a little less than this rate.
    pub(super) const fn below(self) -> Self {
        Self(self.0 * CUT / 100).at_least(Self::LEAST)
    }

    /// Returns the rate after a refusal while the server admitted this one: at least half of it is kept.
    pub(super) const fn cut(self, admitted: Self) -> Self {
        self.at_most(admitted.at_least(Self(self.0 / 2))).below()
    }

    /// Returns the rate after a tick without a refusal in which a call waited, after this many whole seconds without
    /// one.
    pub(super) const fn grown(self, clean_seconds: u64) -> Self {
        // Proportional to the inverse of the root: of several clients that share a limit, the slower ones gain on the
        // faster ones. Binomial congestion control: D. Bansal, H. Balakrishnan, INFOCOM 2001.
        let base = BASE * REFERENCE.isqrt() / self.at_least(Self::LEAST).0.isqrt();
        let mut growth = if base < LEAST_BASE {
            LEAST_BASE
        } else if base > MOST_BASE {
            MOST_BASE
        } else {
            base
        };
        let faster = clean_seconds.saturating_sub(STEADY);
        let mut steps = if faster > STEPS { STEPS } else { faster };
        while steps > 0 && growth < MOST {
            growth = growth * 13 / 10;
            steps -= 1;
        }
        let growth = if growth > MOST { MOST } else { growth };
        Self(self.0 + (self.0 * growth).div_ceil(1_000_000)).at_most(Self::MOST)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_growth_is_that_of_the_table() {
        for (rate, clean, want) in [
            // 0.5 % at 1,000/s, by the root of the rate, between 0.2 and 1.5 %.
            (1_000_000, 0, 1_005_000),
            (4_000_000, 0, 4_010_000),
            (250_000, 0, 252_500),
            (100_000, 1, 101_500),
            (1_000, 0, 1_015),
            (900_000_000, 2, 901_800_000),
            // From the third clean second on, 1.3 times as fast in each.
            (1_000_000, 3, 1_006_500),
            (1_000_000, 4, 1_008_450),
            (1_000_000, 13, 1_089_604),
            (1_000_000, 14, 1_100_000),
            (1_000_000, u64::MAX, 1_100_000),
            (999_999_999, 20, 1_000_000_000),
        ] {
            let got = Rate(rate).grown(clean).0;
            assert!(got.abs_diff(want) <= want / 100_000 + 1, "{rate} after {clean} s: {got}, not {want}");
        }
    }

    #[test]
    fn a_cut_keeps_half_and_at_least_one_per_second() {
        for (rate, admitted, want) in
            [(100_000, 80_000, 77_600), (100_000, 10_000, 48_500), (100_000, 200_000, 97_000), (1_500, 0, 1_000)]
        {
            assert_eq!(Rate(rate).cut(Rate(admitted)), Rate(want));
        }
    }

    #[test]
    fn extremes_stay_within_the_bounds() {
        for (calls, nanos, want) in [
            (0, 0, Rate::LEAST),
            (0, u64::MAX, Rate::LEAST),
            (u64::MAX, 0, Rate::MOST),
            (3_500, 1_000_000_000, Rate(3_500_000)),
        ] {
            assert_eq!(Rate::of(calls, nanos), want);
        }
        assert_eq!(Rate(0).interval(), 1_000_000_000);
        assert_eq!(Rate::MOST.interval(), 1_000);
        assert_eq!(Rate::MOST.share(u64::MAX, u64::MAX), Rate(500_000_000));
        assert_eq!(Rate(5).share(0, 0), Rate(5));
    }
}
