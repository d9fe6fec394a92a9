use core::time::Duration;

use crate::numbers::ratio::Ratio;
use crate::policy::profile_jitter::{Formula, ProfileJitter};

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
