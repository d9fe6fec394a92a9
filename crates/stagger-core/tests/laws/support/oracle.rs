//! The delays computed a second time, from the documentation alone, and statistics of samples.

use core::time::Duration;

use stagger_core::schedule::Backoff;
use stagger_core::{Jitter, Policy};

/// The purposes of draws, as encoded in a draw's number.
pub(crate) const SPREAD: u64 = 0;
pub(crate) const DELAY: u64 = 1;

/// Returns the bits of a draw, reimplemented from the documentation of `Seed` alone, as a port would be.
pub(crate) fn bits(seed: u64, episode: u64, n: u64, purpose: u64) -> u64 {
    let k = (episode << 35) | (n << 3) | purpose;
    let x = u128::from(seed.wrapping_add((k + 1).wrapping_mul(0x2d35_8dcc_aa6c_78a5)));
    let product = x * (x ^ 0x8bb8_4b93_962e_acc9);
    (product >> 64) as u64 ^ product as u64
}

/// Returns `lo + (bits · (hi − lo + 1) >> 64)`.
pub(crate) fn draw(lo: u64, hi: u64, bits: u64) -> u64 {
    lo + ((u128::from(bits) * (u128::from(hi - lo) + 1)) >> 64) as u64
}

/// Returns the first `count` ceilings of a policy in nanoseconds, computed from the backoffs' definitions.
pub(crate) fn ceilings(policy: &Policy, count: usize) -> Vec<u64> {
    let cap = policy.cap().map_or(nanos(Duration::MAX), nanos);
    let series = |first: f64, next: &dyn Fn(f64) -> f64| -> Vec<u64> {
        core::iter::successors(Some(first), |&ceiling| Some(cap.min(next(ceiling))))
            .take(count)
            .map(|c| c as u64)
            .collect()
    };
    match *policy.backoff() {
        Backoff::Exponential { base, multiplier } => series(nanos(base), &|c| c * multiplier),
        Backoff::Linear { base, step } => series(nanos(base), &|c| c + nanos(step)),
        Backoff::Constant { delay } => vec![nanos(delay) as u64; count],
        Backoff::Uniform { max, .. } => vec![nanos(max) as u64; count],
        Backoff::List(list) => {
            let delays: Vec<_> = list.iter().map(|delay| delay.as_nanos() as u64).collect();
            (0..count).map(|at| delays[at.min(delays.len() - 1)]).collect()
        }
        _ => vec![0; count],
    }
}

/// Converts a duration to a ceiling: the largest double not above its nanoseconds, and at most 292 years.
fn nanos(length: Duration) -> f64 {
    let whole = length.as_nanos().min(i64::MAX as u128);
    let nearest = whole as f64;
    if nearest as u128 > whole { f64::from_bits(nearest.to_bits() - 1) } else { nearest }
}

/// Returns the interval from which a delay is drawn. Decorrelated jitter is not supported, because it has no ceilings.
pub(crate) fn interval(policy: &Policy, ceiling: u64) -> (u64, u64) {
    let (lo, hi) = match policy.jitter() {
        Jitter::None => (ceiling, ceiling),
        Jitter::Full => (0, ceiling),
        Jitter::Equal => (ceiling / 2, ceiling),
        Jitter::Factor(share) => {
            let part = ((ceiling as f64 * share.as_f64()) as u64).min(ceiling);
            (ceiling - part, ceiling + part)
        }
        other => unreachable!("{other} has no ceilings"),
    };
    let floor = match *policy.backoff() {
        Backoff::Uniform { min, .. } => min.min(Duration::from_nanos(i64::MAX as u64)).as_nanos() as u64,
        _ => policy.floor().as_nanos() as u64,
    };
    (lo.max(floor), hi.max(floor))
}

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
