//! Forecasts of a policy's delays, before any is drawn.
//!
//! Everything here is derived from the schedule's one formula. It uses no transcendental function, so it needs no
//! mathematics library.

mod decorrelated;
mod distribution;
mod sum;

use core::time::Duration;

use decorrelated::Chain;
use distribution::Distribution;
use sum::UniformSum;

use crate::numbers::instant::nanos;
use crate::outcome::FailureKind;
use crate::policy::jitter::Jitter;
use crate::policy::{Drawn, Interval, Memory, Policy, Route};

/// Forecasts. `n` counts retries from 1; each forecast is `None` for `n` = 0 and for a `stop` backoff. They assume
/// transient failures without hints.
impl Policy {
    /// Returns the least and the greatest delay before retry `n`; both can be drawn.
    #[must_use]
    pub fn bounds(&self, n: u32) -> Option<(Duration, Duration)> {
        let cap = self.last_cap();
        self.interval(n)
            .map(|Interval { lo, hi }| (Duration::from_nanos(lo.min(cap)), Duration::from_nanos(hi.min(cap))))
    }

    /// Returns the mean of the delay before retry `n`. Exact, except for decorrelated jitter (0.2 %) and Polly's (0.1
    /// %).
    #[must_use]
    pub fn mean(&self, n: u32) -> Option<Duration> {
        let interval = self.interval(n)?;
        Some(Duration::from_nanos(Distribution::at(self, n, interval).mean()))
    }

    /// Returns the delay before retry `n` that is not exceeded with probability `q`. Exact, except for decorrelated
    /// jitter and Polly's (0.5 %). `q` is clamped to `0..=1`; NaN gives `None`.
    #[must_use]
    pub fn quantile(&self, n: u32, q: f64) -> Option<Duration> {
        self.quantiles(n, [q]).map(|[delay]| delay)
    }

    /// Returns several [quantiles](Self::quantile) of one delay, for the work of one.
    #[must_use]
    pub fn quantiles<const K: usize>(&self, n: u32, shares: [f64; K]) -> Option<[Duration; K]> {
        let mut distribution = Distribution::at(self, n, self.interval(n)?);
        within(self.bounds(n)?, shares, |q| distribution.quantile(q))
    }

    /// Returns whether the delay of a retry depends on its number alone, and not on the delays drawn before in the same
    /// call, as with decorrelated jitter.
    #[must_use]
    pub const fn has_independent_delays(&self) -> bool {
        matches!(self.memory(), Memory::None)
    }

    /// Returns the least and the greatest time spent waiting until retry `n` starts: the delays 1 to `n`, and the
    /// spread. Both can be reached; to a nanosecond for each delay with Polly's jitter, whose delays depend on each other
    /// so that their sum varies less than the delays do.
    #[must_use]
    pub fn elapsed_bounds(&self, n: u32) -> Option<(Duration, Duration)> {
        let (least, most) = self.sum_bounds(n)?;
        Some((Duration::from_nanos(least), Duration::from_nanos(most.saturating_add(nanos(self.spread())))))
    }

    /// Returns the least and the greatest sum of the delays 1 to `n`, in nanoseconds.
    fn sum_bounds(&self, n: u32) -> Option<(u64, u64)> {
        let cap = self.last_cap();
        let (least, most) = self.intervals(n)?.fold((0, 0), |(least, most): (u64, u64), Interval { lo, hi }| {
            (least.saturating_add(lo.min(cap)), most.saturating_add(hi.min(cap)))
        });
        let closer = match self.jitter() {
            Jitter::Profile(jitter) => jitter.0.curve.sum_bounds(self, n),
            _ => None,
        };
        let (low, high) = closer.unwrap_or((least, most));
        Some((low.max(least), high.min(most)))
    }

    /// Returns the mean of the time spent waiting until retry `n` starts. Exact to a nanosecond for each delay, except
    /// for decorrelated jitter and Polly's.
    #[must_use]
    pub fn elapsed_mean(&self, n: u32) -> Option<Duration> {
        let sum = if self.memory() == Memory::Decorrelated {
            self.interval(n)?;
            Chain::sum_of_means(self, n) as u128
        } else {
            (1..)
                .zip(self.intervals(n)?)
                .map(|(k, interval)| u128::from(Distribution::at(self, k, interval).mean()))
                .sum()
        };
        let sum = sum + u128::from(nanos(self.spread()) / 2);
        Some(Duration::from_nanos(u64::try_from(sum).unwrap_or(u64::MAX)))
    }

    /// Returns the time spent waiting until retry `n` starts that is not exceeded with probability `q`: for independent
    /// delays from their convolution on a grid (0.1 % of the whole), for decorrelated jitter, delays cut at a cap and
    /// those of profiles from 4,096 replayed calls (2 % in `q`). `q` is clamped to `0..=1`; NaN gives `None`. Takes
    /// time proportional to `n`.
    #[must_use]
    pub fn elapsed_quantile(&self, n: u32, q: f64) -> Option<Duration> {
        self.elapsed_quantiles(n, [q]).map(|[elapsed]| elapsed)
    }

    /// Returns several [quantiles](Self::elapsed_quantile) of one time, for the work of one.
    #[must_use]
    pub fn elapsed_quantiles<const K: usize>(&self, n: u32, shares: [f64; K]) -> Option<[Duration; K]> {
        let (least, most) = self.elapsed_bounds(n)?;
        // A sum of independent uniform draws has a convolution; anything else is replayed.
        if self.last_cap() == u64::MAX && self.has_independent_delays() {
            let sum = self.sum_of_delays(n, nanos(most) - nanos(least))?;
            within((least, most), shares, |q| nanos(least).saturating_add(sum.quantile(q) as u64))
        } else {
            let mut replays = Distribution::replayed(self, n);
            within((least, most), shares, |q| replays.quantile(q))
        }
    }

    /// Returns the sum of the delays 1 to `n` and the spread, each less its least; together at most `total`.
    fn sum_of_delays(&self, n: u32, total: u64) -> Option<UniformSum> {
        let widths =
            || Some(self.intervals(n)?.map(|interval| interval.hi - interval.lo).chain([nanos(self.spread())]));
        let widest = widths()?.max()?;
        let mut sum = UniformSum::new(total);
        // The widest first: the grid represents it best, and it smooths all others.
        sum.add(widest);
        let first = widths()?.position(|width| width == widest);
        for (_, width) in widths()?.enumerate().filter(|(at, _)| Some(*at) != first) {
            sum.add(width);
        }
        Some(sum)
    }

    /// Returns the interval of the delay before retry `n`, over all earlier draws.
    fn interval(&self, n: u32) -> Option<Interval> {
        let mut carry = self.curve.first;
        for k in 1..n {
            let next = self.longest_delay(carry, k)?.carry;
            if self.has_settled(k, carry, next) {
                break;
            }
            carry = next;
        }
        if n == 0 { None } else { Some(self.longest_delay(carry, n)?.interval) }
    }

    /// Returns the intervals of retries 1 to `n`; `None` if there is no retry.
    fn intervals(&self, n: u32) -> Option<impl Iterator<Item = Interval> + '_> {
        if n == 0 || self.curve.shape.route == Route::Stop {
            return None;
        }
        let mut carry = self.curve.first;
        Some((1..=n).filter_map(move |k| {
            let drawn = self.longest_delay(carry, k)?;
            carry = drawn.carry;
            Some(drawn.interval)
        }))
    }

    /// Returns the longest delay of retry `k`, which leads to the longest next interval.
    fn longest_delay(&self, carry: f64, k: u32) -> Option<Drawn> {
        self.next_delay(carry, k, FailureKind::Transient, u64::MAX)
    }
}

/// Returns quantiles between two lengths. The ends are exact, which no grid represents. `None` if a share is NaN.
fn within<const K: usize>(
    (least, most): (Duration, Duration),
    shares: [f64; K],
    mut quantile: impl FnMut(f64) -> u64,
) -> Option<[Duration; K]> {
    if shares.iter().any(|share| share.is_nan()) {
        return None;
    }
    Some(shares.map(|share| match share {
        _ if share <= 0.0 => least,
        _ if share >= 1.0 => most,
        _ => Duration::from_nanos(quantile(share)).clamp(least, most),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Profile;

    /// Returns whether the delays of retries 2 to 9 are the same whatever was drawn before them.
    fn forgets(policy: &Policy) -> bool {
        let (mut low, mut high) = (policy.curve.first, policy.curve.first);
        (1..9).all(|n| {
            let after = |carry, bits| policy.next_delay(carry, n, FailureKind::Transient, bits).unwrap().carry;
            (low, high) = (after(low, 0), after(high, u64::MAX));
            let next = |carry| policy.next_delay(carry, n + 1, FailureKind::Transient, u64::MAX / 3).unwrap().delay;
            next(low) == next(high)
        })
    }

    #[test]
    fn delays_are_independent_if_they_do_not_depend_on_earlier_ones() {
        let decorrelated = Policy::DEFAULT.to_builder().jitter(Jitter::Decorrelated).build().unwrap();
        for policy in Profile::all().map(Profile::policy).chain([decorrelated]) {
            assert_eq!(policy.has_independent_delays(), forgets(&policy), "{policy}");
        }
        assert!(Policy::stop().build().unwrap().has_independent_delays());
    }
}
