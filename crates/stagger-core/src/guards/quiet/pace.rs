/// The time in which the rate of a return doubles, in nanoseconds.
const DOUBLING: u64 = 5_000_000_000;
/// The longest time between two released calls: one per second, so that a return never starves.
pub(super) const SLOWEST: u64 = 1_000_000_000;
/// The shortest: a million per second.
pub(super) const FASTEST: u64 = 1_000;
/// From the slowest pace to the fastest.
const MOST_DOUBLINGS: u64 = 20;
/// How long the pace is taken for constant when a turn is predicted.
const STEP: u64 = DOUBLING / 16;

/// The time in which the rate approaches the one that was refused.
const RECOVERY: u64 = 5_000_000_000;
/// 1 as a fixed-point number whose third root is exact.
const ONE: i64 = 1 << 30;
const CUBE_ROOT: i64 = 1 << 10;

/// The pace of a return: so many nanoseconds between two released calls at first, and how the rate grows.
///
/// It doubles every 5 s, linearly within these. Once a call was refused, the rate `w` at which that happened is known:
/// the rate begins at `0.7 · w`, and is then `w · (1 + 0.3 · ((t − k) / k)³)`. It approaches `w` for `k` = 5 s, stays
/// near it, and leaves it behind if nothing is refused. Source: CUBIC, RFC 9438, section 4.2, with its factor of 0.7.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) since: u64,
    pub(super) interval: u64,
    /// Whether a call was refused.
    pub(super) was_cut: bool,
}

impl Pace {
    /// Returns the time between two released calls at this time.
    pub(super) const fn interval_at(self, at: u64) -> u64 {
        let grown = at.saturating_sub(self.since);
        let interval = if self.was_cut { self.recovered(grown) } else { self.doubled(grown) };
        if interval < FASTEST { FASTEST } else { interval }
    }

    const fn doubled(self, grown: u64) -> u64 {
        let doublings = grown / DOUBLING;
        if doublings >= MOST_DOUBLINGS {
            return FASTEST;
        }
        // At most 5e9 · 1e9 · 1 < 2^63.
        (self.interval >> doublings) * DOUBLING / (DOUBLING + grown % DOUBLING)
    }

    const fn recovered(self, grown: u64) -> u64 {
        // Beyond sixteen times `k` the rate is a thousand times the one refused.
        if grown / 16 >= RECOVERY {
            return FASTEST;
        }
        // At most 2^10 · 16 · 5e9 < 2^47, and 2^14 after the division.
        let beyond = grown as i64 * CUBE_ROOT / RECOVERY as i64 - CUBE_ROOT;
        let of_refused = ONE + 3 * beyond * beyond * beyond / 10;
        // At most 1e9 · 7 · 2^30 < 2^63.
        self.interval * 7 * ONE as u64 / (10 * of_refused as u64)
    }

    /// Returns the pace after a refusal: 0.7 of the rate, at least one call per second.
    pub(super) const fn cut(self, at: u64) -> u64 {
        let interval = self.interval_at(at) * 10 / 7;
        if interval < SLOWEST { interval } else { SLOWEST }
    }

    /// Predicts when the call with this many others before it is released, if the next release is at `from`.
    pub(super) const fn turn(self, from: u64, before: u32) -> u64 {
        let (mut at, mut left) = (from, before as u64);
        loop {
            let interval = self.interval_at(at);
            let in_step = STEP.div_ceil(interval);
            if left <= in_step || interval == FASTEST {
                return at.saturating_add(left.saturating_mul(interval));
            }
            left -= in_step;
            at = at.saturating_add(in_step * interval);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    const fn doubling(since: u64, interval: u64) -> Pace {
        Pace { since, interval, was_cut: false }
    }

    #[test]
    fn a_return_that_was_cut_stays_near_the_rate_that_was_refused() {
        // 1,000 calls per second were refused.
        let pace = Pace { since: 0, interval: SECOND / 700, was_cut: true };
        for (millis, rate) in [(0, 700), (1_250, 873), (2_500, 962), (5_000, 1_000), (7_500, 1_037), (10_000, 1_300)] {
            let got = SECOND / pace.interval_at(millis * SECOND / 1_000);
            assert!(got.abs_diff(rate) <= rate / 100, "{got}/s after {millis} ms, not {rate}");
        }
        assert_eq!(pace.interval_at(u64::MAX), FASTEST);
    }

    #[test]
    fn the_pace_of_a_return_never_slows_and_never_overflows() {
        for was_cut in [false, true] {
            for interval in [SLOWEST, SECOND / 3_500, FASTEST] {
                let pace = Pace { since: 0, interval, was_cut };
                let intervals = || (0..400).map(|n| pace.interval_at(n * 13 * SECOND));
                assert!(intervals().is_sorted_by(|a, b| a >= b), "{pace:?}");
                // Rounded down, by at most a nanosecond.
                assert!(intervals().next().is_some_and(|first| first <= interval && first + 1 >= interval), "{pace:?}");
                assert_eq!(intervals().next_back(), Some(FASTEST), "{pace:?}");
            }
        }
    }

    #[test]
    fn the_rate_doubles_every_five_seconds_and_grows_between() {
        let pace = doubling(7 * SECOND, SECOND / 100);
        for (after, rate) in [(0, 100), (1, 120), (4, 180), (5, 200), (10, 400), (12, 560)] {
            let got = SECOND / pace.interval_at((7 + after) * SECOND);
            assert!(got.abs_diff(rate) <= 1, "{got}/s after {after} s, not {rate}");
        }
        assert_eq!(pace.interval_at(0), SECOND / 100, "a clock that steps back");
        assert_eq!(doubling(0, SLOWEST).interval_at(u64::MAX), FASTEST);
    }

    #[test]
    fn a_cut_leaves_seven_tenths_and_at_least_one_per_second() {
        let cut = doubling(0, SECOND / 100).cut(0);
        assert_eq!(SECOND / cut, 70);
        assert_eq!(doubling(0, 900_000_000).cut(0), SLOWEST);
    }

    #[test]
    fn a_predicted_turn_is_that_of_the_releases_one_by_one() {
        let intervals = [SLOWEST, SECOND / 100, SECOND / 3_500, FASTEST];
        for (interval, was_cut) in intervals.into_iter().flat_map(|interval| [(interval, false), (interval, true)]) {
            let pace = Pace { since: 5, interval, was_cut };
            let mut at = 5;
            for before in 0..1_024_u32 {
                let predicted = pace.turn(5, before);
                let (late, passed) = (predicted.saturating_sub(at), at - 5);
                // The steps predict a little late, by less than one step's growth.
                assert!(predicted + interval >= at && late <= passed / 8 + interval, "{before}: {predicted}, not {at}");
                at += pace.interval_at(at);
            }
        }
        assert_eq!(doubling(0, SLOWEST).turn(u64::MAX, u32::MAX), u64::MAX);
    }
}
