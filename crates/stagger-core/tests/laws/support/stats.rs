use core::time::Duration;

/// Returns the mean in nanoseconds.
pub(crate) fn mean(sample: &[Duration]) -> f64 {
    sample.iter().map(|length| length.as_nanos() as f64).sum::<f64>() / sample.len() as f64
}

/// Returns the Kolmogorov-Smirnov distance between a sample and `cdf`. Ties are grouped, so distributions with steps
/// can be tested if `cdf` is right-continuous and `below` is its limit from the left.
pub(crate) fn ks_distance(sample: &[Duration], cdf: impl Fn(f64) -> f64, below: impl Fn(f64) -> f64) -> f64 {
    let mut sorted: Vec<_> = sample.iter().map(|length| length.as_nanos() as f64).collect();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let (mut worst, mut from) = (0.0_f64, 0);
    while from < sorted.len() {
        let x = sorted[from];
        let to = from + sorted[from..].partition_point(|&y| y <= x);
        worst = worst.max((to as f64 / count - cdf(x)).abs()).max((from as f64 / count - below(x)).abs());
        from = to;
    }
    worst
}

/// Returns the limit that [`ks_distance`] exceeds with a probability of one in a million, `sqrt(ln(2·10⁶) / 2n)`. Tests
/// use fixed seeds, so each of them either always passes or always fails.
pub(crate) fn ks_limit(count: usize) -> f64 {
    (2e6_f64.ln() / (2.0 * count as f64)).sqrt()
}
