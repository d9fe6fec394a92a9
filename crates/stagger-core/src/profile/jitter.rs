use core::fmt;
use core::time::Duration;

use crate::Jitter;
use crate::instant::nanos;

/// A jitter of one system, if it differs from all others: [`Jitter::Profile`](crate::Jitter::Profile).
///
/// It belongs to a [`Profile`](super::Profile), which documents it, and is reachable by its name only. Most of these
/// lose their spread at the cap, which is why they are not offered as jitters of this library.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
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

/// The formula of a profile's jitter, with its name.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Formula {
    pub(crate) name: &'static str,
    pub(crate) recipe: Recipe,
}

impl Formula {
    pub(crate) const fn jitter(&'static self) -> Jitter {
        Jitter::Profile(ProfileJitter(self))
    }
}

/// The forms of formulas.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) enum Recipe {
    /// Uniform inside a band around the ceiling.
    Band(Band),
    /// `min(cap, U[base, 3 · previous])`.
    Decorrelated,
    /// The first delay is uniform on `[from, to]`, and every later one is the delay before it times the multiplier, at
    /// most `cap`.
    Once { from: Duration, to: Duration },
    /// Polly's: its own formula for exponential delays, this band for others.
    Polly(Band),
    /// The formula of socket.io.
    SocketIo,
}

/// `U[from(ceiling), to(ceiling)]`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Band {
    pub(crate) from: Edge,
    pub(crate) to: Edge,
    pub(crate) capped: Capped,
    pub(crate) steps: Steps,
    /// The intervals of the first delays; the ceilings begin after them.
    pub(crate) lead: &'static [(Duration, Duration)],
}

impl Band {
    /// Creates a band from one share of the ceiling to another, in percent.
    pub(crate) const fn shares(from: u32, to: u32) -> Self {
        Self { from: Edge::percent(from), to: Edge::percent(to), capped: Capped::First, steps: Steps::Exact, lead: &[] }
    }

    pub(crate) const fn plus(self, from: Duration, to: Duration) -> Self {
        Self { from: Edge { plus: from, ..self.from }, to: Edge { plus: to, ..self.to }, ..self }
    }

    /// Removes the last unit of the interval, for systems that draw from an interval that is open at its end.
    pub(crate) const fn open(self, unit: Duration) -> Self {
        Self { to: Edge { minus: unit, ..self.to }, ..self }
    }

    pub(crate) const fn capped(self, capped: Capped) -> Self {
        Self { capped, ..self }
    }

    pub(crate) const fn steps(self, steps: Steps) -> Self {
        Self { steps, ..self }
    }

    pub(crate) const fn lead(self, lead: &'static [(Duration, Duration)]) -> Self {
        Self { lead, ..self }
    }
}

/// `percent / 100 · ceiling + plus − minus`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Edge {
    percent: u32,
    plus: Duration,
    minus: Duration,
}

impl Edge {
    const fn percent(percent: u32) -> Self {
        Self { percent, plus: Duration::ZERO, minus: Duration::ZERO }
    }

    /// Returns the edge for a ceiling, saturating at the longest length.
    pub(crate) fn at(&self, ceiling: u64) -> u64 {
        let share = u128::from(ceiling) * u128::from(self.percent) / 100;
        let sum = share + u128::from(nanos(self.plus));
        u64::try_from(sum).unwrap_or(u64::MAX).min(crate::instant::LONGEST_NANOS).saturating_sub(nanos(self.minus))
    }
}

/// When the cap is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Capped {
    /// To the ceiling, before the draw.
    First,
    /// To the delay, after the draw: every delay beyond the cap is exactly the cap.
    Last,
    /// To both.
    Twice,
}

/// The unit that ceilings and delays are rounded down to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Steps {
    Exact,
    Nanos,
    Millis,
}

impl Steps {
    /// Returns the unit in nanoseconds; 0 for no rounding.
    pub(crate) const fn nanos(self) -> u64 {
        match self {
            Self::Exact => 0,
            Self::Nanos => 1,
            Self::Millis => 1_000_000,
        }
    }
}

/// Returns 53 bits as a number in `[0, 1)`, like the draws of systems that use floating-point numbers.
pub(crate) fn share(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}
