//! The package's arithmetic, in its order: `f64` for each step, whole nanoseconds in between.

/// A wait that is drawn from an interval with this `r` of `[0, 1)`.
///
/// `trunc(lo + r · (hi − lo + 1))`: the `+ 1` makes both ends as likely as everything in between where they are whole
/// numbers; with an `r` next to 1 the result can be 1 ns above `hi`. Without randomisation it is the interval itself.
pub(super) fn randomized(factor: f64, r: f64, current: u64) -> u64 {
    // Only the exact zero is exempt: any other factor goes the way of the formula.
    if factor <= 0.0 {
        return current;
    }
    // What is no number at all is taken for the lower end.
    let r = if r >= 0.0 { r.min(1.0 - f64::EPSILON / 2.0) } else { 0.0 };
    let delta = factor * current as f64;
    let (lo, hi) = (current as f64 - delta, current as f64 + delta);
    whole(lo + r * (hi - lo + 1.0))
}

/// The interval after this one.
pub(super) fn grown(current: u64, multiplier: f64, max: u64) -> u64 {
    // Compared by division: the product may be more than a length can be.
    if current as f64 >= max as f64 / multiplier { max } else { whole(current as f64 * multiplier) }
}

/// Truncated; at most the longest length that the crate computes with.
fn whole(nanos: f64) -> u64 {
    nanos as i64 as u64
}
