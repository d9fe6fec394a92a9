//! Which share of the seeds stays down at a value: curves through counts, and intervals by the likelihood.

/// Counts at a point, in which larger is worse.
#[derive(Clone, Copy, Debug)]
pub(super) struct Count {
    pub(super) at: f64,
    pub(super) down: f64,
    pub(super) seeds: f64,
}

/// Shapes of a share that rises from 0 to 1: the distribution function F(z) of a random threshold, with z = slope · (x
/// − location).
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// 1 / (1 + exp(−z)): symmetric.
    Logistic,
    /// exp(−exp(−z)): rises fast, and comes close to 1 slowly.
    LongAbove,
    /// 1 − exp(−exp(z)): the mirror image.
    LongBelow,
}

/// The curve with the largest likelihood through counts.
#[derive(Debug)]
pub(super) struct Curve<'a> {
    counts: &'a [Count],
    steepest: f64,
    domain: [f64; 2],
    shape: Shape,
    /// Where half of the seeds stay down.
    half: f64,
    slope: f64,
    likelihood: f64,
    /// How much more the counts vary around the curve than chance explains, at least 1.
    heterogeneity: f64,
}

/// The slope of a shape through a point with the largest log-likelihood.
struct Fit {
    shape: Shape,
    slope: f64,
    likelihood: f64,
}

/// Where a curve crosses a share, with the ends of its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Crossing {
    pub(super) at: f64,
    pub(super) low: f64,
    pub(super) high: f64,
}

/// The 95 % quantile of the chi-squared distribution with one degree of freedom.
const CHI_SQUARED: f64 = 3.841_458_820_694_124;
/// The 95 % quantile with two degrees of freedom: away from the middle, the shape is estimated as well.
const CHI_SQUARED_OF_TWO: f64 = 5.991_464_547_107_979;
/// The 99 % quantile with one.
const CHI_SQUARED_99: f64 = 6.634_896_601_021_217;
/// Points at which the likelihood is computed before its largest is refined.
const SCAN: usize = 16;
/// Steps of a refinement, and of the bisection of an end and of a slope.
const GOLDEN_STEPS: usize = 20;
const STEPS: usize = 14;

impl<'a> Curve<'a> {
    /// Creates the curve through counts in increasing order. `resolution` is the smallest distance that matters.
    pub(super) fn through(counts: &'a [Count], resolution: f64) -> Self {
        let (first, last) = match (counts.first(), counts.last()) {
            (Some(first), Some(last)) => (first.at, last.at),
            _ => (0.0, 0.0),
        };
        let width = (last - first).max(resolution);
        let domain = [first - width, last + width];
        let steepest = 40.0 / resolution.max(1e-12 * width);
        let (shape, slope, likelihood, heterogeneity) = (Shape::Logistic, 0.0, 0.0, 1.0);
        let curve = Self { counts, steepest, domain, shape, half: 0.0, slope, likelihood, heterogeneity };
        let half = curve.largest();
        let Fit { shape, slope, likelihood } = curve.fitted(half, 0.5);
        let curve = Self { shape, half, slope, likelihood, ..curve };
        Self { heterogeneity: curve.heterogeneity(), ..curve }
    }

    /// Returns the points between which the share changes if it changes at once: no seed is down below the first, and
    /// all are above the second. `None` if the results are mixed.
    pub(super) fn gap(&self) -> Option<[f64; 2]> {
        let low = self.counts.iter().rfind(|one| one.down < one.seeds)?.at;
        let high = self.counts.iter().find(|one| one.down > 0.0)?.at;
        if low < high { Some([low, high]) } else { None }
    }

    /// Returns whether the share rises with significance: a likelihood ratio test against a constant share, at 1 %.
    pub(super) fn rises(&self) -> bool {
        let (down, seeds) = self.counts.iter().fold((0.0, 0.0), |sum, one| (sum.0 + one.down, sum.1 + one.seeds));
        let share: f64 = down / seeds;
        let constant = scaled(down, share.ln()) + scaled(seeds - down, (1.0 - share).ln());
        2.0 * (self.likelihood - constant) > CHI_SQUARED_99 * self.heterogeneity
    }

    /// Returns the most likely point at which the share is `share`.
    pub(super) fn likeliest(&self, share: f64) -> f64 {
        let at = self.half + (self.shape.quantile(share) - self.shape.quantile(0.5)) / self.slope;
        at.clamp(self.domain[0], self.domain[1])
    }

    /// Returns where the share is `share`: the most likely point, and the interval of those whose profile likelihood is
    /// not much smaller, over all shapes and slopes.
    pub(super) fn crossing(&self, share: f64) -> Crossing {
        let best = self.likeliest(share);
        let loss = |at| self.likelihood - self.fitted(at, share).likelihood;
        let threshold = if (share - 0.5).abs() < 1e-9 { CHI_SQUARED } else { CHI_SQUARED_OF_TWO } * self.heterogeneity;
        let [low, high] = [-1.0, 1.0].map(|side| self.end(best, side, |at| 2.0 * loss(at) > threshold));
        // Between values without mixed results, all points are equally likely.
        let at = if self.gap().is_some() { f64::midpoint(low, high) } else { best };
        Crossing { at, low, high }
    }

    /// Returns where half of the seeds most likely stay down.
    fn largest(&self) -> f64 {
        let of = |at| self.fitted(at, 0.5).likelihood;
        let step = self.counts.len().div_ceil(SCAN).max(1);
        let scan = self.counts.iter().step_by(step).chain(self.counts.last()).map(|one| one.at);
        let points: Vec<_> = [self.domain[0]].into_iter().chain(scan).chain([self.domain[1]]).collect();
        let best = (0..points.len()).max_by(|&a, &b| of(points[a]).total_cmp(&of(points[b]))).unwrap_or(0);
        let (mut low, mut high) = (points[best.saturating_sub(1)], points[(best + 1).min(points.len() - 1)]);
        // Golden section.
        let ratio = 0.5 * (5.0_f64.sqrt() - 1.0);
        for _ in 0..GOLDEN_STEPS {
            let [a, b] = [high - ratio * (high - low), low + ratio * (high - low)];
            if of(a) < of(b) { low = a } else { high = b }
        }
        f64::midpoint(low, high)
    }

    /// Returns the first point on one side of another that is outside, or the end of the domain.
    fn end(&self, from: f64, side: f64, is_outside: impl Fn(f64) -> bool) -> f64 {
        let limit = self.domain[usize::from(side > 0.0)];
        let mut step = (self.domain[1] - self.domain[0]) * 1e-4;
        let (mut inside, mut outside) = (from, from + side * step);
        while !is_outside(outside) {
            if (outside - limit) * side >= 0.0 {
                return limit;
            }
            step *= 2.0;
            (inside, outside) = (outside, outside + side * step);
        }
        for _ in 0..STEPS {
            let middle = f64::midpoint(inside, outside);
            if is_outside(middle) { outside = middle } else { inside = middle }
        }
        f64::midpoint(inside, outside)
    }

    /// Returns the fit with the largest log-likelihood of all shapes that cross a share at this point.
    fn fitted(&self, at: f64, share: f64) -> Fit {
        let mut best = self.fit(Shape::Logistic, at, share);
        for shape in [Shape::LongAbove, Shape::LongBelow] {
            let fit = self.fit(shape, at, share);
            if fit.likelihood > best.likelihood {
                best = fit;
            }
        }
        best
    }

    /// Fits the slope of a shape that crosses a share at this point. The log-likelihood is concave in the slope.
    fn fit(&self, shape: Shape, at: f64, share: f64) -> Fit {
        let offset = shape.quantile(share);
        let gradient = |slope: f64| {
            let of = |one: &Count| {
                let distance = one.at - at;
                let [down, up] = shape.slopes(offset + slope * distance);
                (one.down * down + (one.seeds - one.down) * up) * distance
            };
            self.counts.iter().map(of).sum::<f64>() > 0.0
        };
        // In the logarithm of the slope.
        let (mut low, mut high) = ((1e-6 * self.steepest).ln(), self.steepest.ln());
        for _ in 0..STEPS {
            let middle = f64::midpoint(low, high);
            if gradient(middle.exp()) { low = middle } else { high = middle }
        }
        let slope = f64::midpoint(low, high).exp();
        let of = |one: &Count| {
            let [down, up] = shape.logarithms(offset + slope * (one.at - at));
            scaled(one.down, down) + scaled(one.seeds - one.down, up)
        };
        Fit { shape, slope, likelihood: self.counts.iter().map(of).sum() }
    }

    /// Returns how much more the counts vary around the curve than chance explains, at least 1 (Finney, "Probit
    /// Analysis", 1971): Pearson's chi-squared over its degrees of freedom, without counts of which less than one
    /// differs.
    fn heterogeneity(&self) -> f64 {
        let offset = self.shape.quantile(0.5);
        let parts = self.counts.iter().filter_map(|one| {
            let share = self.shape.logarithms(offset + self.slope * (one.at - self.half))[0].exp();
            let variance = one.seeds * share * (1.0 - share);
            if variance >= 1.0 { Some((one.down - one.seeds * share).powi(2) / variance) } else { None }
        });
        let parts: Vec<_> = parts.collect();
        let degrees = parts.len().saturating_sub(2);
        if degrees == 0 { 1.0 } else { (parts.iter().sum::<f64>() / degrees as f64).max(1.0) }
    }
}

impl Shape {
    /// Returns z with F(z) = `share`.
    fn quantile(self, share: f64) -> f64 {
        match self {
            Self::Logistic => (share / (1.0 - share)).ln(),
            Self::LongAbove => -(-share.ln()).ln(),
            Self::LongBelow => -Self::LongAbove.quantile(1.0 - share),
        }
    }

    /// Returns ln F(z) and ln (1 − F(z)).
    fn logarithms(self, z: f64) -> [f64; 2] {
        match self {
            Self::Logistic => [-softplus(-z), -softplus(z)],
            Self::LongAbove => {
                let t = (-z).exp();
                [-t, (-(-t).exp_m1()).ln()]
            }
            Self::LongBelow => {
                let [down, up] = Self::LongAbove.logarithms(-z);
                [up, down]
            }
        }
    }

    /// Returns the derivatives of [`logarithms`](Self::logarithms).
    fn slopes(self, z: f64) -> [f64; 2] {
        match self {
            Self::Logistic => {
                let share = 1.0 / (1.0 + (-z).exp());
                [1.0 - share, -share]
            }
            Self::LongAbove => {
                let t = (-z.clamp(-500.0, 500.0)).exp();
                [t, if t < 1e-12 { -1.0 } else { -t / t.exp_m1() }]
            }
            Self::LongBelow => {
                let [down, up] = Self::LongAbove.slopes(-z);
                [-up, -down]
            }
        }
    }
}

/// Returns ln (1 + exp(x)).
fn softplus(x: f64) -> f64 {
    if x > 30.0 { x } else { x.exp().ln_1p() }
}

/// Returns a count times a logarithm: zero for a count of zero, and finite for the logarithm of zero.
fn scaled(count: f64, logarithm: f64) -> f64 {
    if count > 0.0 { count * logarithm.max(-1e9) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(points: &[(f64, u32, u32)]) -> Vec<Count> {
        points.iter().map(|&(at, down, seeds)| Count { at, down: down.into(), seeds: seeds.into() }).collect()
    }

    /// Counts of a thousand seeds at each point.
    fn many(share: impl Fn(f64) -> f64, points: &[f64]) -> Vec<Count> {
        let of = |&at: &f64| Count { at, down: (share(at) * 1_000.0).round(), seeds: 1_000.0 };
        points.iter().map(of).collect()
    }

    #[test]
    fn the_curve_crosses_a_share_where_the_counts_do() {
        let points = [10.0, 24.0, 26.0, 26.5, 27.2, 27.5, 29.0, 40.0];
        let logistic = many(|x| 1.0 / (1.0 + (-(x - 27.0)).exp()), &points);
        let long = many(|x| (-(-(x - 27.0)).exp()).exp(), &points);
        for (counts, share, want) in [
            (&logistic, 0.5, 27.0),
            (&logistic, 0.1, 27.0 - 9_f64.ln()),
            (&logistic, 0.9, 27.0 + 9_f64.ln()),
            (&long, 0.5, 27.0 - 2_f64.ln().ln()),
            (&long, 0.1, 27.0 - 10_f64.ln().ln()),
            (&long, 0.9, 27.0 - (-(0.9_f64.ln())).ln()),
        ] {
            let got = Curve::through(counts, 0.01).crossing(share);
            assert!((got.at - want).abs() < 0.1 && got.low < want && want < got.high, "{share}: {got:?}, {want}");
            assert!(got.high - got.low < 0.8, "{got:?}");
        }
    }

    #[test]
    fn a_sharp_border_is_between_its_values() {
        let counts = counts(&[(10.0, 0, 13), (19.9, 0, 16), (20.0, 16, 16), (30.0, 13, 13)]);
        let curve = Curve::through(&counts, 0.01);
        assert_eq!(curve.gap(), Some([19.9, 20.0]));
        let got = curve.crossing(0.5);
        assert!((got.at - 19.95).abs() < 0.01 && got.low > 19.89 && got.high < 20.01, "{got:?}");
    }

    #[test]
    fn counts_that_vary_more_than_chance_widen_the_interval() {
        let smooth = counts(&[(1.0, 3, 30), (2.0, 8, 30), (3.0, 15, 30), (4.0, 22, 30), (5.0, 27, 30)]);
        let rough = counts(&[(1.0, 3, 30), (2.0, 18, 30), (3.0, 6, 30), (4.0, 24, 30), (5.0, 24, 30)]);
        let width = |counts: &[Count]| {
            let crossing = Curve::through(counts, 0.01).crossing(0.5);
            crossing.high - crossing.low
        };
        assert!(width(&rough) > 1.8 * width(&smooth), "{} and {}", width(&rough), width(&smooth));
    }

    #[test]
    fn a_constant_share_does_not_rise() {
        let flat = counts(&[(1.0, 50, 100), (2.0, 48, 100), (3.0, 53, 100)]);
        let rising = counts(&[(1.0, 40, 100), (2.0, 50, 100), (3.0, 60, 100)]);
        let falling = counts(&[(1.0, 60, 100), (2.0, 50, 100), (3.0, 40, 100)]);
        assert_eq!([&flat, &rising, &falling].map(|counts| Curve::through(counts, 0.01).rises()), [false, true, false]);
    }
}
