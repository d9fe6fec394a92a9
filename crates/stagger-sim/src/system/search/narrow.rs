use stagger_core::Seed;

use super::curve::{Count, Crossing, Curve};
use super::found::{Border, BorderPoint, Tried};
use super::tries::{Grain, Halt, Tries};

/// How a border is narrowed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Narrowing {
    pub(super) grain: Grain,
    /// Half the width of the interval to reach, relative to the value.
    pub(super) precision: f64,
    /// Seeds to add at a time.
    pub(super) seeds: u64,
    /// Seeds of a value that is tried while the results are not mixed.
    pub(super) few: u64,
    pub(super) max_runs: u64,
}

/// Values that a border is computed from, and the axis of its curve: the logarithm of the value if all are above zero.
#[derive(Clone, Copy, Debug)]
pub(super) struct Region {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) is_worse_above: bool,
}

/// Shares of the seeds near which runs are added, in turn: of all curves with two parameters, the outer ones say most about the
/// slope, and the middle one about the border.
const TARGETS: [f64; 6] = [0.5, 0.12, 0.6, 0.88, 0.4, 0.5];

/// The largest number of seeds of a whole number that cannot be told apart from its neighbors, in steps.
const STEPS_OF_WHOLE: u64 = 4;

impl Narrowing {
    /// Adds runs around a border until its interval is narrow, or their number is reached.
    pub(super) fn narrow<E>(
        self,
        region: Region,
        tries: &mut Tries<impl FnMut(f64, &[Seed]) -> Result<Option<u64>, E>>,
    ) -> Result<(), Halt<E>> {
        let (mut runs, mut turn) = (0, 0);
        while runs < self.max_runs {
            let counts = region.counts(&tries.tried);
            let curve = Curve::through(&counts, region.distance(self.precision / 10.0));
            let half = curve.crossing(0.5);
            let is_narrow = half.high - half.low <= 2.0 * region.distance(self.precision);
            let next = match curve.gap() {
                Some(gap) => self.in_gap(region, tries, gap, is_narrow),
                // A few runs may agree by chance, so each of the targets has its turn.
                None if is_narrow && turn >= TARGETS.len() => None,
                None => {
                    let shares = TARGETS.iter().cycle().skip(turn % TARGETS.len()).take(TARGETS.len());
                    turn += 1;
                    let mut next = shares
                        .map(|&share| self.rounded(region.near(&curve, half, share).clamp(region.low, region.high)));
                    let most = STEPS_OF_WHOLE * self.seeds;
                    let is_open = |value: &f64| self.grain == Grain::Any || tries.seeds_at(*value) < most;
                    next.find(is_open).map(|value| (value, self.seeds))
                }
            };
            let Some((value, seeds)) = next else { return Ok(()) };
            tries.add(value, seeds)?;
            runs += seeds;
        }
        Ok(())
    }

    /// Returns what to try next if no results are mixed: the middle of the gap with a few seeds, and when the gap is narrow,
    /// its ends with all of them.
    fn in_gap<F>(self, region: Region, tries: &Tries<F>, gap: [f64; 2], is_narrow: bool) -> Option<(f64, u64)> {
        let ends = gap.map(|at| region.value(at));
        let middle = self.grain.round(region.value(f64::midpoint(gap[0], gap[1])));
        if !is_narrow && ends[0].min(ends[1]) < middle && middle < ends[0].max(ends[1]) {
            return Some((middle, self.few));
        }
        let tried = ends.into_iter().filter_map(|end| tries.nearest(end));
        let end = tried.min_by_key(|tried| tried.seeds).filter(|tried| tried.seeds < self.seeds)?;
        Some((end.value, self.seeds - end.seeds))
    }

    /// Rounds a value to a few digits, so that values that are practically the same are one.
    fn rounded(self, value: f64) -> f64 {
        let value = self.grain.round(value);
        let step = 10_f64.powf((self.precision * value.abs() / 2.0).log10().floor());
        if self.grain == Grain::Whole || !step.is_normal() { value } else { (value / step).round() * step }
    }
}

impl Region {
    /// Returns the border, and what the curve says about it.
    pub(super) fn border(self, tried: &[Tried], precision: f64, [low, high]: [f64; 2]) -> Border {
        let counts = self.counts(tried);
        let curve = Curve::through(&counts, self.distance(precision / 10.0));
        let point = |share| {
            let point = self.point(curve.crossing(share));
            BorderPoint { low: point.low.max(low), high: point.high.min(high), ..point }
        };
        let tail = |share| Some(point(share)).filter(|point| low <= point.value && point.value <= high);
        let half = point(0.5);
        let half = BorderPoint { value: half.value.clamp(low, high), ..half };
        Border { is_worse_above: self.is_worse_above, half, tenth: tail(0.1), nine_tenths: tail(0.9) }
    }

    /// Returns whether the share changes with significance, and crosses one half between the values.
    pub(super) fn crosses(self, tried: &[Tried], precision: f64) -> bool {
        let counts = self.counts(tried);
        let curve = Curve::through(&counts, self.distance(precision / 10.0));
        let half = self.point(curve.crossing(0.5));
        self.low < half.value && half.value < self.high && curve.rises()
    }

    /// Returns the counts of the region, from better to worse.
    fn counts(self, tried: &[Tried]) -> Vec<Count> {
        let inside = tried.iter().filter(|tried| (self.low..=self.high).contains(&tried.value));
        let count =
            |tried: &Tried| Count { at: self.axis(tried.value), down: tried.down as f64, seeds: tried.seeds as f64 };
        let mut counts: Vec<_> = inside.map(count).collect();
        counts.sort_by(|a, b| a.at.total_cmp(&b.at));
        counts
    }

    /// Returns the value near which a share of the seeds stays down: beyond the interval of the border as long as that is
    /// wide.
    fn near(self, curve: &Curve<'_>, half: Crossing, share: f64) -> f64 {
        let at = curve.likeliest(share);
        self.value(if share < 0.5 {
            at.min(half.low)
        } else if share > 0.5 {
            at.max(half.high)
        } else {
            at
        })
    }

    fn point(self, crossing: Crossing) -> BorderPoint {
        let [low, high] =
            if self.is_worse_above { [crossing.low, crossing.high] } else { [crossing.high, crossing.low] };
        BorderPoint { value: self.value(crossing.at), low: self.value(low), high: self.value(high) }
    }

    /// Returns a relative difference as a distance on the axis.
    fn distance(self, difference: f64) -> f64 {
        difference * if self.low > 0.0 { 1.0 } else { self.low.abs().max(self.high.abs()) }
    }

    /// Returns the place of a value on the axis, on which larger is worse.
    fn axis(self, value: f64) -> f64 {
        let at = if self.low > 0.0 { value.ln() } else { value };
        if self.is_worse_above { at } else { -at }
    }

    fn value(self, at: f64) -> f64 {
        let at = if self.is_worse_above { at } else { -at };
        if self.low > 0.0 { at.exp() } else { at }
    }
}
