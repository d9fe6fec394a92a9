use crate::numbers::math::square_root;
use crate::outcome::FailureKind;
use crate::policy::Policy;

/// The distribution of a decorrelated delay, which depends on the one before it.
///
/// The distribution function is stored at points that grow geometrically from base to the longest reachable delay, and
/// assumed to be linear between them. If `x` was drawn before, the next delay is uniform on `[base, hi(x)]`, so `F'(y)
/// = ∫ min(1, (y − base) / (hi(x) − base)) dF(x)`: the part with `hi(x) ≤ y` is a value of `F`, the rest a suffix sum
/// of `dF(x) / (hi(x) − base)`. In the published form, where the cap is applied last, the share of calls that wait
/// exactly the cap lies in the last cell.
pub(super) struct Chain<'a> {
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
    pub(super) fn at(policy: &'a Policy, n: u32) -> Self {
        let mut chain = Self::first(policy, n);
        for _ in 1..n.min(SETTLED) {
            chain.step();
        }
        chain
    }

    /// Returns the sum of the means of retries 1 to `n`.
    pub(super) fn sum_of_means(policy: &'a Policy, n: u32) -> f64 {
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
            longest = hi(policy, longest).min(cap);
        }
        let ratio = root(longest / base);
        let mut points = [base; CELLS + 1];
        for at in 1..=CELLS {
            points[at] = (points[at - 1] * ratio).min(longest);
        }
        points[CELLS] = longest;
        let first_hi = hi(policy, base);
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
            rest[at] = rest[at + 1] + mass / (hi(self.policy, middle) - base).max(1.0);
        }
        let before = self.values;
        let mut at = 0;
        for (to, &y) in self.points.iter().enumerate() {
            // The largest x with hi(x) ≤ y, which moves up with y.
            while at < CELLS && hi(self.policy, self.points[at + 1]) <= y {
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

    pub(super) fn mean(&self) -> f64 {
        let cells = self.points.windows(2).zip(self.values.windows(2));
        let spread: f64 = cells.map(|(x, f)| self.middle(x[0], x[1]) * (f[1] - f[0])).sum();
        // The mass on the first point itself.
        spread + self.points[0] * self.values[0]
    }

    pub(super) fn quantile(&self, q: f64) -> f64 {
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
fn hi(policy: &Policy, previous: f64) -> f64 {
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
