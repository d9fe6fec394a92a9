//! Forecasts of a policy's delays, before any is drawn.
//!
//! Everything here is derived from the schedule's one formula. It uses no transcendental function, so it needs no
//! mathematics library.

use core::time::Duration;

use crate::numbers::instant::nanos;
use crate::numbers::math::square_root;
use crate::numbers::random::Seed;
use crate::outcome::FailureKind;
use crate::policy::{Drawn, Growth, Interval, Jitter, Memory, Policy, SAMPLE};

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
    /// spread. Both can be reached; to a nanosecond for each delay with Polly's jitter, whose delays depend on each
    /// other so that their sum varies less than the delays do.
    #[must_use]
    pub fn elapsed_bounds(&self, n: u32) -> Option<(Duration, Duration)> {
        let (least, most) = self.sum_bounds(n)?;
        Some((Duration::from_nanos(least), Duration::from_nanos(most.saturating_add(nanos(self.spread())))))
    }

    /// Returns the least and the greatest sum of the delays 1 to `n`, in nanoseconds.
    fn sum_bounds(&self, n: u32) -> Option<(u64, u64)> {
        let cap = self.last_cap();
        let (mut least, mut most) = (0_u64, 0_u64);
        for Interval { lo, hi } in self.intervals(n)? {
            least = least.saturating_add(lo.min(cap));
            most = most.saturating_add(hi.min(cap));
        }
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
        let mut skips_widest = true;
        for width in widths()? {
            if skips_widest && width == widest {
                // It is in the sum already; others of this width are not.
                skips_widest = false;
            } else {
                sum.add(width);
            }
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
        if n == 0 || self.curve.shape.growth == Growth::Stop {
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

/// The distribution of the delay before one retry.
#[allow(clippy::large_enum_variant)] // There is no allocator to put the larger ones behind.
enum Distribution<'a> {
    /// Uniform, then cut at a cap, which may have a mass of its own.
    Uniform { interval: Interval, cap: u64 },
    /// A chain of draws, each of which depends on the one before.
    Chain(Chain<'a>),
    /// An even sample of all draws.
    Sample([u64; SAMPLE]),
}

impl<'a> Distribution<'a> {
    /// Returns the distribution of the delay before retry `n`, from 1, with this interval.
    fn at(policy: &'a Policy, n: u32, interval: Interval) -> Self {
        if policy.memory() == Memory::Decorrelated {
            return Self::Chain(Chain::at(policy, n));
        }
        let sample = match policy.jitter() {
            Jitter::Profile(jitter) => jitter.0.curve.sample(policy, n, interval),
            _ => None,
        };
        match sample {
            Some(delays) => Self::Sample(delays),
            None => Self::Uniform { interval, cap: policy.last_cap() },
        }
    }

    /// Returns the elapsed time until retry `n` of numbered calls, for sums without a closed form.
    fn replayed(policy: &Policy, n: u32) -> Self {
        Self::Sample(core::array::from_fn(|id| {
            let seed = Seed::new(0).for_call(id as u64);
            let delays = policy.schedule(seed).take(n as usize);
            delays.fold(nanos(policy.first_spread(seed)), |sum, delay| sum.saturating_add(nanos(delay)))
        }))
    }

    /// Returns the mean, in nanoseconds, rounded down.
    fn mean(&self) -> u64 {
        match self {
            Self::Uniform { interval: Interval { lo, hi }, cap } => mean_cut_at(*lo, *hi, *cap),
            Self::Chain(chain) => chain.mean() as u64,
            Self::Sample(delays) => {
                let sum: u128 = delays.iter().map(|&delay| u128::from(delay)).sum();
                (sum / delays.len() as u128) as u64
            }
        }
    }

    /// Returns the delay that is not exceeded with probability `q`, which lies between 0 and 1.
    fn quantile(&mut self, q: f64) -> u64 {
        match self {
            Self::Uniform { interval: Interval { lo, hi }, cap } => (*lo + ((*hi - *lo) as f64 * q) as u64).min(*cap),
            Self::Chain(chain) => chain.quantile(q) as u64,
            // Below the length, because the largest share below 1 times a power of two is: the rank is in the sample.
            Self::Sample(delays) => *delays.select_nth_unstable((q * SAMPLE as f64) as usize).1,
        }
    }
}

/// Returns the mean of a uniform draw from `[lo, hi]` that is cut at `cap`.
fn mean_cut_at(lo: u64, hi: u64, cap: u64) -> u64 {
    if hi <= cap {
        return lo + (hi - lo) / 2;
    }
    if lo >= cap {
        return cap;
    }
    // Below the cap the draw is uniform; the rest lies on the cap.
    let (below, beyond) = ((cap - lo) as f64, (hi - cap) as f64);
    lo + (below * (below / 2.0 + beyond) / (below + beyond)) as u64
}

/// The distribution of a decorrelated delay, which depends on the one before it.
///
/// The distribution function is stored at points that grow geometrically from base to the longest reachable delay, and
/// assumed to be linear between them. If `x` was drawn before, the next delay is uniform on `[base, hi(x)]`, so `F'(y)
/// = ∫ min(1, (y − base) / (hi(x) − base)) dF(x)`: the part with `hi(x) ≤ y` is a value of `F`, the rest a suffix sum
/// of `dF(x) / (hi(x) − base)`. In the published form, where the cap is applied last, the share of calls that wait
/// exactly the cap lies in the last cell.
struct Chain<'a> {
    policy: &'a Policy,
    points: [f64; CELLS + 1],
    /// `F` at the points, for the current retry of the chain.
    values: [f64; CELLS + 1],
}

/// A power of two, for the root that spaces the points.
const CELLS: usize = 1024;
/// The number of retries after which the distribution no longer changes: every step halves the influence of the
/// beginning of a capped chain, and an uncapped chain has reached the longest length of time.
const SETTLED: u32 = 512;

impl<'a> Chain<'a> {
    /// Creates the chain at retry `n`, from 1.
    fn at(policy: &'a Policy, n: u32) -> Self {
        let mut chain = Self::first(policy, n);
        for _ in 1..n.min(SETTLED) {
            chain.step();
        }
        chain
    }

    /// Returns the sum of the means of retries 1 to `n`.
    fn sum_of_means(policy: &'a Policy, n: u32) -> f64 {
        let mut chain = Self::first(policy, n);
        let mut sum = chain.mean();
        for k in 1..n {
            if k < SETTLED {
                chain.step();
                sum += chain.mean();
            } else {
                return sum + chain.mean() * f64::from(n - k);
            }
        }
        sum
    }

    fn first(policy: &'a Policy, n: u32) -> Self {
        let base = policy.curve.first;
        let cap = policy.last_cap() as f64;
        let mut longest = base;
        for _ in 0..n.min(SETTLED) {
            longest = upper_end(policy, longest).min(cap);
        }
        let ratio = root(longest / base);
        let mut points = [base; CELLS + 1];
        for at in 1..=CELLS {
            points[at] = (points[at - 1] * ratio).min(longest);
        }
        points[CELLS] = longest;
        let first_hi = upper_end(policy, base);
        let mut values = points.map(|y| uniform(y, base, first_hi));
        // If the cap is applied last, the mass beyond it lies on it.
        values[CELLS] = 1.0;
        Self { policy, points, values }
    }

    fn step(&mut self) {
        let base = self.points[0];
        let mut rest = [0.0; CELLS + 1];
        for at in (0..CELLS).rev() {
            let mass = self.values[at + 1] - self.values[at];
            let middle = self.middle(self.points[at], self.points[at + 1]);
            rest[at] = rest[at + 1] + mass / (upper_end(self.policy, middle) - base).max(1.0);
        }
        let before = self.values;
        let mut at = 0;
        for (to, &y) in self.points.iter().enumerate() {
            // The largest x with hi(x) ≤ y, which moves up with y.
            while at < CELLS && upper_end(self.policy, self.points[at + 1]) <= y {
                at += 1;
            }
            let (done, left) = if at == CELLS {
                (1.0, 0.0)
            } else {
                let x = (y / 3.0).clamp(self.points[at], self.points[at + 1]);
                let part = (x - self.points[at]) / (self.points[at + 1] - self.points[at]).max(1.0);
                let value = before[at] + part * (before[at + 1] - before[at]);
                (value, rest[at + 1] + (1.0 - part) * (rest[at] - rest[at + 1]))
            };
            self.values[to] = (done + (y - base) * left).clamp(0.0, 1.0);
        }
        self.values[CELLS] = 1.0;
    }

    fn mean(&self) -> f64 {
        let cells = self.points.windows(2).zip(self.values.windows(2));
        let spread: f64 = cells.map(|(x, f)| self.middle(x[0], x[1]) * (f[1] - f[0])).sum();
        // The mass on the first point itself.
        spread + self.points[0] * self.values[0]
    }

    fn quantile(&self, q: f64) -> f64 {
        let at = self.values.partition_point(|&value| value < q).clamp(1, CELLS);
        let (lo, hi) = (self.values[at - 1], self.values[at]);
        if self.is_atom(self.points[at]) {
            return self.points[at];
        }
        let part = if hi > lo { ((q - lo) / (hi - lo)).clamp(0.0, 1.0) } else { 1.0 };
        self.points[at - 1] + part * (self.points[at] - self.points[at - 1])
    }

    /// Returns the mean position of the mass of the cell between two points.
    fn middle(&self, from: f64, to: f64) -> f64 {
        if self.is_atom(to) { to } else { (from + to) / 2.0 }
    }

    /// Returns whether the mass of the cell that ends here lies on its end: in the last one, if the cap is applied
    /// last.
    fn is_atom(&self, end: f64) -> bool {
        end >= self.policy.last_cap() as f64
    }
}

/// Returns the upper end of the interval after a delay of `previous`.
fn upper_end(policy: &Policy, previous: f64) -> f64 {
    match policy.next_delay(previous, 1, FailureKind::Transient, 0) {
        Some(drawn) => drawn.interval.hi as f64,
        None => previous,
    }
}

fn uniform(y: f64, lo: f64, hi: f64) -> f64 {
    if y >= hi { 1.0 } else { ((y - lo) / (hi - lo)).clamp(0.0, 1.0) }
}

/// Returns the `CELLS`-th root, by square roots.
fn root(x: f64) -> f64 {
    let mut root = x;
    for _ in 0..CELLS.ilog2() {
        root = square_root(root);
    }
    root
}

/// The distribution of a sum of independent uniform draws, each from `[0, width]`.
///
/// The distribution function is stored on a grid of equal steps and assumed to be linear between them. Adding a draw
/// from `[0, w]` turns `F(x)` into `(I(x) − I(x − w)) / w` with `I` the integral of `F`, which is exact for the
/// function on the grid; the only error is the assumption that the result is linear between the steps again. It
/// increases the variance by a sixth of a step's square every time, and the following draws compensate for it by being
/// narrower. (The closed form is an alternating sum over all subsets, which cancels: with 28 draws it yields 0.80
/// instead of 0.9987.)
struct UniformSum {
    /// `F` at the steps.
    values: [f64; STEPS + 1],
    step: f64,
    /// The offset of the whole, for the part of the draws that the grid does not represent.
    shift: f64,
    /// The excess variance of the grid.
    excess: f64,
    /// The grid holds no draw: the sum is certainly 0.
    empty: bool,
}

const STEPS: usize = 2048;

impl UniformSum {
    /// Creates an empty sum whose widths will add up to at most `total`.
    fn new(total: u64) -> Self {
        Self { values: [1.0; STEPS + 1], step: total as f64 / STEPS as f64, shift: 0.0, excess: 0.0, empty: true }
    }

    fn add(&mut self, width: u64) {
        let width = width as f64;
        let square = width * width - 12.0 * self.excess;
        // A draw that is narrower than a step, or is used up by the excess, is represented by its mean alone.
        if square <= self.step * self.step {
            self.shift += width / 2.0;
            self.excess -= width * width / 12.0;
        } else {
            let narrower = square_root(square);
            self.shift += (width - narrower) / 2.0;
            self.convolve(narrower);
            // The first draw is linear by itself.
            self.excess = if self.empty { 0.0 } else { self.step * self.step / 6.0 };
            self.empty = false;
        }
    }

    fn convolve(&mut self, width: f64) {
        let mut integral = [0.0; STEPS + 1];
        for at in 0..STEPS {
            integral[at + 1] = integral[at] + (self.values[at] + self.values[at + 1]) / 2.0 * self.step;
        }
        let before = self.values;
        let integral_at = |x: f64| {
            if x <= 0.0 {
                return 0.0;
            }
            let at = ((x / self.step) as usize).min(STEPS - 1);
            let past = x - at as f64 * self.step;
            let slope = (before[at + 1] - before[at]) / self.step;
            integral[at] + past * before[at] + past * past * slope / 2.0
        };
        for (at, value) in self.values.iter_mut().enumerate() {
            let x = at as f64 * self.step;
            *value = ((integral[at] - integral_at(x - width)) / width).clamp(0.0, 1.0);
        }
    }

    fn quantile(&self, q: f64) -> f64 {
        if self.empty {
            return self.shift;
        }
        let at = self.values.partition_point(|&value| value < q).clamp(1, STEPS);
        let (lo, hi) = (self.values[at - 1], self.values[at]);
        let part = if hi > lo { ((q - lo) / (hi - lo)).clamp(0.0, 1.0) } else { 1.0 };
        self.shift + (at as f64 - 1.0 + part) * self.step
    }
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

    /// Returns the distribution function of the sum of n draws from [0, 1]: `F(x) = Σ (−1)^k C(n, k) (x − k)^n / n!`,
    /// exact for small n.
    fn irwin_hall(n: u32, x: f64) -> f64 {
        let (mut sum, mut choose, mut factorial) = (0.0, 1.0, 1.0);
        for k in 0..=n {
            if x > f64::from(k) {
                sum += if k % 2 == 0 { 1.0 } else { -1.0 } * choose * (x - f64::from(k)).powi(n as i32);
            }
            choose *= f64::from(n - k) / f64::from(k + 1);
            factorial *= f64::from(k.max(1));
        }
        sum / factorial
    }

    #[test]
    fn equal_widths_agree_with_the_closed_form() {
        const UNIT: u64 = 1_000_000_000;
        for n in 1..=10_u32 {
            let mut sum = UniformSum::new(UNIT * u64::from(n));
            for _ in 0..n {
                sum.add(UNIT);
            }
            for q in [0.01, 0.1, 0.5, 0.9, 0.99] {
                let x = sum.quantile(q) / UNIT as f64;
                let got = irwin_hall(n, x);
                assert!((got - q).abs() < 1e-5, "n = {n}: F({x}) = {got}, not {q}");
            }
        }
    }

    #[test]
    fn unequal_widths_agree_with_the_closed_form() {
        for (wide, narrow) in [(3e9, 1e9), (1e9, 1e9), (1e9, 2e7), (1e9, 3e6)] {
            let mut sum = UniformSum::new((wide + narrow) as u64);
            sum.add(wide as u64);
            sum.add(narrow as u64);
            for q in (1..100).map(|i| f64::from(i) / 100.0) {
                let x = sum.quantile(q);
                let got = if x < narrow {
                    x * x / (2.0 * wide * narrow)
                } else if x < wide {
                    (x - narrow / 2.0) / wide
                } else {
                    1.0 - (wide + narrow - x).powi(2) / (2.0 * wide * narrow)
                };
                assert!((got - q).abs() < 1e-5, "{wide} and {narrow}: F({x}) = {got}, not {q}");
            }
        }
    }

    #[test]
    fn an_empty_sum_is_zero_and_a_narrow_draw_only_shifts() {
        assert_eq!(UniformSum::new(0).quantile(0.9).to_bits(), 0.0_f64.to_bits());
        let mut sum = UniformSum::new(2_000_000_001);
        sum.add(1);
        sum.add(2_000_000_000);
        assert!((sum.quantile(0.5) - 1_000_000_000.5).abs() < 1.0, "{}", sum.quantile(0.5));
    }
}
