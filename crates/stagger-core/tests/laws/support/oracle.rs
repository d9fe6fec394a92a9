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
