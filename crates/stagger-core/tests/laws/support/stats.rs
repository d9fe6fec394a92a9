use core::time::Duration;

/// The mean, in nanoseconds.
pub(crate) fn mean(sample: &[Duration]) -> f64 {
    sample.iter().map(|length| length.as_nanos() as f64).sum::<f64>() / sample.len() as f64
}

/// The greatest distance between the distribution of a sample and `cdf` (Kolmogorov and Smirnov). Ties are taken
/// together, so a distribution with steps can be tested too, if `cdf` is right-continuous and `below` its limit from
/// the left.
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

/// What that distance stays below with a probability of one in a million, `sqrt(ln(2·10⁶) / 2n)`. The seeds of the
/// tests are fixed, so a test either always passes or never does.
pub(crate) fn ks_limit(count: usize) -> f64 {
    (2e6_f64.ln() / (2.0 * count as f64)).sqrt()
}
