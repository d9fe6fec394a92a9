//! The criterion by which our policies for calls are chosen.
//!
//! The guide, "How the profiles were chosen", has it in words.

use core::time::Duration;

use stagger::profile::{self, Profile};
use stagger::{Jitter, Policy, Ratio};

use super::grid::{Grid, Kind};

/// What a policy for calls may cost.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallLimits {
    /// The profile that is chosen within them.
    pub(crate) profile: &'static Profile,
    /// The attempts of a call if all fail: the load of a server that is down, as a multiple of the calls.
    pub(crate) attempts: u32,
    /// The largest share of the callers that retry within the same millisecond if all fail in the same instant.
    pub(crate) crowd: f64,
}

/// The limits of our policies for calls.
pub(crate) const CALLS: [CallLimits; 3] = [
    // People do not call in the same instant, and wait for the answer.
    CallLimits { profile: &profile::INTERACTIVE, attempts: 2, crowd: 0.05 },
    CallLimits { profile: &profile::SERVERLESS, attempts: 3, crowd: 0.01 },
    CallLimits { profile: &profile::DEFAULT, attempts: 4, crowd: 0.01 },
];

/// The bases of the family in milliseconds: round numbers.
const BASES: [u64; 11] = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000];
const MOST_ATTEMPTS: u32 = 10;
const JITTERS: [Jitter; 4] = [Jitter::Full, Jitter::Equal, Jitter::Factor(Ratio::percent(50)), Jitter::Decorrelated];

/// Returns all policies of the family: delays that double from a round base, each number of attempts, each jitter.
pub(crate) fn family() -> impl Iterator<Item = Policy> {
    BASES.into_iter().flat_map(|base| {
        let base = Duration::from_millis(base);
        (1..=MOST_ATTEMPTS).flat_map(move |attempts| {
            JITTERS.into_iter().filter_map(move |jitter| {
                let builder = match jitter {
                    Jitter::Decorrelated => Policy::decorrelated(base, base * 1_000),
                    jitter => Policy::exponential(base, base * 1_000).jitter(jitter),
                };
                builder.max_attempts(attempts).build().ok()
            })
        })
    })
}

impl CallLimits {
    /// Returns the policy of the family that is chosen: within the limits, the one that loses the fewest calls if every
    /// other attempt fails, and of those the one with the shortest wait after a single failure.
    pub(crate) fn choose(&self) -> Option<Policy> {
        let grid = Grid::new(Kind::Calls).ok()?;
        let attempts = |policy: &Policy| policy.max_attempts().map_or(u32::MAX, |most| most.get());
        let within = family().filter(|policy| {
            attempts(policy) <= self.attempts && grid.computed(policy).crowd <= self.crowd + f64::EPSILON
        });
        // More attempts lose fewer calls.
        within.min_by(|one, other| {
            let alone = |policy: &Policy| grid.computed(policy).alone;
            attempts(other).cmp(&attempts(one)).then(alone(one).total_cmp(&alone(other)))
        })
    }
}
