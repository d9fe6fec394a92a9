use super::decorrelated::Chain;
use crate::Policy;
use crate::policy::Route;
use crate::profile::{polly, socket_io};
use crate::schedule::Interval;

/// The distribution of the delay before one retry.
#[allow(clippy::large_enum_variant)] // There is no allocator to put the larger ones behind.
pub(super) enum Distribution<'a> {
    /// Uniform, then cut at a cap, which may have a mass of its own.
    Uniform { interval: Interval, cap: u64 },
    /// A chain of draws, each of which depends on the one before.
    Chain(Chain<'a>),
    /// An even sample of all draws.
    Sample([u64; SIDE * SIDE]),
}

/// A sample of two draws is a square with this side.
const SIDE: usize = 64;

impl<'a> Distribution<'a> {
    /// Returns the distribution of the delay before retry `n`, from 1, with this interval.
    pub(super) fn at(policy: &'a Policy, n: u32, interval: Interval) -> Self {
        let curve = &policy.curve;
        match curve.shape.route {
            Route::Decorrelated => Self::Chain(Chain::at(policy, n)),
            Route::Polly => Self::Sample(core::array::from_fn(|at| {
                polly::delay(
                    curve.first,
                    curve.shape.last_cap as f64,
                    n,
                    middle(at / SIDE, SIDE),
                    middle(at % SIDE, SIDE),
                )
            })),
            // The upper end of its interval is one and a half ceilings.
            Route::SocketIo => Self::Sample(core::array::from_fn(|at| {
                socket_io::delay(interval.hi / 3 * 2, curve.shape.last_cap, middle(at, SIDE * SIDE))
            })),
            _ => Self::Uniform { interval, cap: curve.shape.last_cap },
        }
    }

    /// Returns the mean, in nanoseconds, rounded down.
    pub(super) fn mean(&self) -> u64 {
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
    pub(super) fn quantile(&mut self, q: f64) -> u64 {
        match self {
            Self::Uniform { interval: Interval { lo, hi }, cap } => (*lo + ((*hi - *lo) as f64 * q) as u64).min(*cap),
            Self::Chain(chain) => chain.quantile(q) as u64,
            Self::Sample(delays) => quantile(delays, q),
        }
    }
}

/// Returns the value that a share `q` of a sample does not exceed; `q` lies between 0 and 1.
pub(super) fn quantile<const N: usize>(sample: &mut [u64; N], q: f64) -> u64 {
    // Below N, because the largest share below 1 times a power of two is: the rank is within the sample.
    let rank = (q * N as f64) as usize;
    *sample.select_nth_unstable(rank).1
}

/// Returns the middle of part `at` of 1, divided into `parts`.
fn middle(at: usize, parts: usize) -> f64 {
    (at as f64 + 0.5) / parts as f64
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
