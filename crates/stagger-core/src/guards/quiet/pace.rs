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

/// The pace of a return: so many nanoseconds between two released calls at first, and a rate that doubles every 5 s,
/// linearly within these.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    pub(super) since: u64,
    pub(super) interval: u64,
}

impl Pace {
    /// Returns the time between two released calls at this time.
    pub(super) const fn interval_at(self, at: u64) -> u64 {
        let grown = at.saturating_sub(self.since);
        let doublings = grown / DOUBLING;
        if doublings >= MOST_DOUBLINGS {
            return FASTEST;
        }
        // At most 5e9 · 1e9 · 1 < 2^63.
        let interval = (self.interval >> doublings) * DOUBLING / (DOUBLING + grown % DOUBLING);
        if interval < FASTEST { FASTEST } else { interval }
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

    #[test]
    fn the_rate_doubles_every_five_seconds_and_grows_between() {
        let pace = Pace { since: 7 * SECOND, interval: SECOND / 100 };
        for (after, rate) in [(0, 100), (1, 120), (4, 180), (5, 200), (10, 400), (12, 560)] {
            let got = SECOND / pace.interval_at((7 + after) * SECOND);
            assert!(got.abs_diff(rate) <= 1, "{got}/s after {after} s, not {rate}");
        }
        assert_eq!(pace.interval_at(0), SECOND / 100, "a clock that steps back");
        assert_eq!(Pace { since: 0, interval: SLOWEST }.interval_at(u64::MAX), FASTEST);
    }

    #[test]
    fn a_cut_leaves_seven_tenths_and_at_least_one_per_second() {
        let cut = Pace { since: 0, interval: SECOND / 100 }.cut(0);
        assert_eq!(SECOND / cut, 70);
        assert_eq!(Pace { since: 0, interval: 900_000_000 }.cut(0), SLOWEST);
    }

    #[test]
    fn a_predicted_turn_is_that_of_the_releases_one_by_one() {
        for interval in [SLOWEST, SECOND / 100, SECOND / 3_500, FASTEST] {
            let pace = Pace { since: 5, interval };
            let mut at = 5;
            for before in 0..1_024_u32 {
                let predicted = pace.turn(5, before);
                let (late, passed) = (predicted.saturating_sub(at), at - 5);
                // The steps predict a little late, by less than one step's growth.
                assert!(predicted + interval >= at && late <= passed / 8 + interval, "{before}: {predicted}, not {at}");
                at += pace.interval_at(at);
            }
        }
        assert_eq!(Pace { since: 0, interval: SLOWEST }.turn(u64::MAX, u32::MAX), u64::MAX);
    }
}
