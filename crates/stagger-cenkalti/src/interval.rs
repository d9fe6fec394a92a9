//! The package's arithmetic, in its order: `f64` within each step, whole nanoseconds in between.

/// Returns the wait drawn from an interval with `r` in `[0, 1)`.
///
/// The formula is `trunc(lo + r · (hi − lo + 1))`. The `+ 1` makes both ends as likely as the values in between if they
/// are whole numbers; with an `r` close to 1 the result can be 1 ns above `hi`. Without randomization it is the
/// interval itself.
pub(crate) fn randomized(factor: f64, r: f64, current: u64) -> u64 {
    // Only an exact zero is special: every other factor uses the formula.
    if factor <= 0.0 {
        return current;
    }
    // NaN is treated as the lower end.
    let r = if r >= 0.0 { r.min(1.0 - f64::EPSILON / 2.0) } else { 0.0 };
    let delta = factor * current as f64;
    let (lo, hi) = (current as f64 - delta, current as f64 + delta);
    truncate(lo + r * (hi - lo + 1.0))
}

/// Returns the interval after this one.
pub(crate) fn next_interval(current: u64, multiplier: f64, max: u64) -> u64 {
    // Compared by division: the product may exceed the longest duration.
    if current as f64 >= max as f64 / multiplier { max } else { truncate(current as f64 * multiplier) }
}

/// Truncates to whole nanoseconds, up to the longest duration that the crate computes with.
fn truncate(nanos: f64) -> u64 {
    nanos as i64 as u64
}
