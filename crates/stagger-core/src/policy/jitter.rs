//! How a delay is drawn from its ceiling, and what a hint of the server does to it.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::panic::RefUnwindSafe;
use core::time::Duration;

use super::{Drawn, Interval, Policy};
use crate::numbers::ratio::Ratio;
use crate::outcome::FailureKind;

/// How a delay is drawn from its ceiling.
///
/// The ceiling of retry `n` is `min(cap, base · multiplier^(n-1))`: **capped first, then drawn inside it**. So no delay
/// exceeds the cap, except with [`Factor`](Self::Factor), by its share; and at the cap the draw still spans its whole
/// interval. Drawing first and capping afterwards, as several libraries do, makes every client wait exactly the cap, at
/// the same time, just when the outage is long. [`Added`](Self::Added) and the jitters of some profiles do so, to match
/// other systems.
///
/// All draws are uniform on a closed interval.
///
/// As text: `none`, `full`, `equal`, `decorrelated`, `±20%` (also `+-20%`, `20%`, `0.2`), `add:500ms`, or the name of a
/// profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Jitter {
    /// The ceiling itself. Clients that failed at the same time retry at the same time.
    None,
    /// Uniform on `[0, ceiling]`. The default for exponential and linear backoff.
    ///
    /// Source: M. Brooker, "Exponential Backoff And Jitter", AWS, 2015. Differs from it in: nothing.
    Full,
    /// Uniform on `[ceiling / 2, ceiling]`. The default for constant delays and lists.
    ///
    /// Source: as for [`Full`](Self::Full).
    Equal,
    /// Uniform on `[base, max(base, min(cap, 3 · previous))]`, where `previous` is the delay drawn before, and `base`
    /// at first. It depends on base and cap only; there is no multiplier.
    ///
    /// Source: as for [`Full`](Self::Full). Differs from it in: the article takes `min(cap, U(base, 3 · previous))`,
    /// which piles clients up on the cap (with a cap of 50 bases, 31 % of them wait exactly the cap by retry 12). Here
    /// the interval is capped, and the draw stays spread.
    Decorrelated,
    /// Uniform on `[(1 − f) · ceiling, (1 + f) · ceiling]`, so it may exceed the cap by its share.
    ///
    /// cenkalti/backoff (0.5), Google's HTTP client (0.5) and gRPC (0.2) use it. Range of `f`: `0..=1`.
    Factor(Ratio),
    /// `min(cap, U[ceiling, ceiling + length])`: additive jitter, with the cap applied after the draw.
    ///
    /// Every delay lies in `[ceiling, min(cap, ceiling + length)]`. **Once the ceiling reaches the cap, every delay is
    /// exactly the cap**, so clients that fail together retry together for the rest of the outage. Use it to match
    /// another system, without a cap, or with an attempt limit that ends the call before the cap; otherwise prefer
    /// [`Full`](Self::Full) or [`Equal`](Self::Equal). As text: `add:500ms`.
    ///
    /// Source: tenacity for Python, `wait_exponential_jitter(jitter=...)`, and the truncated exponential backoff of
    /// Google Cloud's documentation, `min(2^n + random_number_milliseconds, maximum_backoff)`. Differs from them in:
    /// nothing. With base 1 s, multiplier 2, cap 5 s and `add:1s`: `[1, 2]`, `[2, 3]`, `[4, 5]`, 5, 5 s.
    Added(Duration),
    /// The jitter of one system that no other variant describes. As text: the name of its
    /// [`Profile`](crate::profile::Profile).
    Profile(ProfileJitter),
}

impl Formula {
    /// Returns the jitter that goes by this formula.
    pub(crate) const fn jitter(&'static self) -> Jitter {
        Jitter::Profile(ProfileJitter(self))
    }
}

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
/// It is not part of that formula, so that most policies contain no code for it. The policy reaches it through the
/// [`Formula`] of its jitter, so the schedule can use the curves of profiles without importing them.
///
/// The supertraits are those that a policy has, because it refers to one.
pub(crate) trait DelayCurve: Send + Sync + RefUnwindSafe {
    /// Draws the delay of retry `n`, like [`Policy::next_delay`](crate::Policy::next_delay).
    fn next_delay(&self, policy: &Policy, carry: f64, n: u32, kind: FailureKind, bits: u64) -> Option<Drawn>;

    /// Returns the number of retries before the ceilings begin.
    fn lead(&self) -> usize {
        0
    }

    /// Returns an even sample of all draws of retry `n`, with its interval; `None` if the delay is uniform on it and
    /// then capped.
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

/// What a [`ServerHint::AtLeast`](crate::ServerHint::AtLeast) does to the delay.
///
/// In every mode, a hinted retry uses attempts, time and budget like any other, and a hint longer than `max_hint` stops
/// the call.
///
/// As text: `at-least`, `exact`, `clamp:5s`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HintMode {
    /// `hint + U[0, max(ceiling, hint · hint_spread)]`. The default.
    #[default]
    AtLeast,
    /// The hint, to the nanosecond. Clients that received the same hint retry at the same time: for servers that send
    /// each client a delay of its own. Shorter than the policy's own delay for three waits in a row at most; see
    /// [exact hints](crate::ServerHint#exact-hints).
    Exact,
    /// `min(max(draw, hint), draw + d)`: between the delay that was drawn and that delay plus `d`, as the AWS SDKs do
    /// since 2026 with `d` = 5 s.
    ///
    /// A hint above `draw + d` is shortened.
    Clamp(Duration),
}
