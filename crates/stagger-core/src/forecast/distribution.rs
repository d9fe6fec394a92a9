use super::decorrelated::Chain;
use crate::numbers::instant::nanos;
use crate::numbers::seed::Seed;
use crate::policy::jitter::Jitter;
use crate::policy::{Interval, Memory, Policy, SAMPLE};

/// The distribution of the delay before one retry.
#[allow(clippy::large_enum_variant)] // There is no allocator to put the larger ones behind.
pub(super) enum Distribution<'a> {
    /// Uniform, then cut at a cap, which may have a mass of its own.
    Uniform { interval: Interval, cap: u64 },
    /// A chain of draws, each of which depends on the one before.
    Chain(Chain<'a>),
    /// An even sample of all draws.
    Sample([u64; SAMPLE]),
}

impl<'a> Distribution<'a> {
    /// Returns the distribution of the delay before retry `n`, from 1, with this interval.
    pub(super) fn at(policy: &'a Policy, n: u32, interval: Interval) -> Self {
        if policy.memory() == Memory::Decorrelated {
            return Self::Chain(Chain::at(policy, n));
        }
        let sample = match policy.jitter() {
            Jitter::Profile(jitter) => jitter.0.curve.sample(policy, n, interval),
            _ => None,
        };
        sample.map_or(Self::Uniform { interval, cap: policy.last_cap() }, Self::Sample)
    }

    /// Returns the elapsed time until retry `n` of numbered calls, for sums without a closed form.
    pub(super) fn replayed(policy: &Policy, n: u32) -> Self {
        Self::Sample(core::array::from_fn(|id| {
            let seed = Seed::new(0).for_call(id as u64);
            let delays = policy.schedule(seed).take(n as usize);
            delays.fold(nanos(policy.first_spread(seed)), |sum, delay| sum.saturating_add(nanos(delay)))
        }))
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
            // Below the length, because the largest share below 1 times a power of two is: the rank is in the sample.
            Self::Sample(delays) => *delays.select_nth_unstable((q * SAMPLE as f64) as usize).1,
        }
    }
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
