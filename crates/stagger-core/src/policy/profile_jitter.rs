use core::fmt;
use core::hash::{Hash, Hasher};
use core::panic::RefUnwindSafe;

use super::{Drawn, Interval, Policy};
use crate::outcome::FailureKind;

/// A jitter of one system, if it differs from all others: [`Jitter::Profile`](crate::Jitter::Profile).
///
/// It belongs to a [`Profile`](crate::profile::Profile), which documents it, and is reachable by its name only. Most of
/// these lose their spread at the cap, which is why they are not offered as jitters of this library.
#[derive(Clone, Copy)]
pub struct ProfileJitter(pub(crate) &'static Formula);

impl ProfileJitter {
    /// Returns the name of its profile, which is also its word in the policy language.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.0.name
    }
}

impl fmt::Debug for ProfileJitter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ProfileJitter").field(&self.0.name).finish()
    }
}

/// Compares names, which are unique.
impl PartialEq for ProfileJitter {
    fn eq(&self, other: &Self) -> bool {
        self.0.name == other.0.name
    }
}

impl Eq for ProfileJitter {}

impl Hash for ProfileJitter {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.name.hash(state);
    }
}

/// What a profile's jitter consists of. The profiles have the values.
pub(crate) struct Formula {
    pub(crate) name: &'static str,
    /// When the cap is applied.
    pub(crate) capped: Capped,
    pub(crate) memory: Memory,
    /// The jitter has a meaning for exponential backoff only.
    pub(crate) needs_exponential: bool,
    pub(crate) curve: &'static dyn DelayCurve,
}

impl Formula {
    /// Creates a formula for any backoff, whose delays depend on nothing but their number.
    pub(crate) const fn new(name: &'static str, capped: Capped, curve: &'static dyn DelayCurve) -> Self {
        Self { name, capped, memory: Memory::None, needs_exponential: false, curve }
    }

    pub(crate) const fn memory(self, memory: Memory) -> Self {
        Self { memory, ..self }
    }

    pub(crate) const fn for_exponential_only(self) -> Self {
        Self { needs_exponential: true, ..self }
    }

    /// Returns whether the delays after exponential backoff are not drawn from bands around its ceilings.
    pub(super) const fn has_own_delays(&self) -> bool {
        self.needs_exponential || !matches!(self.memory, Memory::None)
    }
}

/// When the cap is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capped {
    /// To the ceiling, before the draw.
    First,
    /// To the delay, after the draw: every delay beyond the cap is exactly the cap.
    Last,
    /// To both.
    Twice,
}

/// What the delay of a retry depends on, apart from its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// Nothing else.
    None,
    /// The delay before it, as with decorrelated jitter.
    Decorrelated,
    /// Earlier draws, in a way of its own.
    Own,
}

/// The delays of a system that are not those of the native formula.
///
/// The supertraits are those that a policy has, because it refers to one.
pub(crate) trait DelayCurve: Send + Sync + RefUnwindSafe {
    /// Draws the delay of retry `n`, like [`Policy::next_delay`](crate::Policy::next_delay).
    fn next_delay(&self, policy: &Policy, carry: f64, n: u32, kind: FailureKind, bits: u64) -> Option<Drawn>;

    /// Returns the number of retries before the ceilings begin.
    fn lead(&self) -> usize {
        0
    }

    /// Returns an even sample of all draws of retry `n`, with its interval; `None` if the delay is uniform on it and then
    /// capped.
    fn sample(&self, _policy: &Policy, _n: u32, _interval: Interval) -> Option<[u64; SAMPLE]> {
        None
    }

    /// Returns the least and the greatest sum of the delays 1 to `n`, if it is known more closely than the sum of their
    /// bounds.
    fn sum_bounds(&self, _policy: &Policy, _n: u32) -> Option<(u64, u64)> {
        None
    }
}

/// The number of delays in a [sample](DelayCurve::sample), a square for samples of two draws.
pub(crate) const SAMPLE: usize = SAMPLE_SIDE * SAMPLE_SIDE;
pub(crate) const SAMPLE_SIDE: usize = 64;
