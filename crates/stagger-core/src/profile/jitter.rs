use core::fmt;
use core::time::Duration;

use crate::Jitter;
use crate::instant::nanos;

/// A jitter of one system, where it does what the others cannot say: [`Jitter::Profile`](crate::Jitter::Profile).
///
/// It belongs to a [`Profile`](super::Profile) and is reachable by its name only; what it does is told there. Most of
/// them lose their spread at the cap, which is why they are no jitters of this library's own.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProfileJitter(pub(crate) &'static Formula);

impl ProfileJitter {
    /// The name of its profile, which is also its word in the policy language.
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

/// What a profile's jitter does, under its name.
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

/// The forms that are in use.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) enum Recipe {
    /// Uniform inside a band around the ceiling.
    Band(Band),
    /// `min(cap, U[base, 3 · previous])`.
    Decorrelated,
    /// The first delay is uniform on `[from, to]`, and every later one is the one before it times the multiplier, at
    /// most `cap`.
    Once { from: Duration, to: Duration },
    /// Polly's: its own for exponential delays, this band for the others.
    Polly(Band),
    /// socket.io's.
    SocketIo,
}

/// `U[from(ceiling), to(ceiling)]`.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct Band {
    pub(crate) from: Edge,
    pub(crate) to: Edge,
    pub(crate) capped: Capped,
    pub(crate) steps: Steps,
    /// The first delays, which are drawn from these intervals; the ceilings begin after them.
    pub(crate) lead: &'static [(Duration, Duration)],
}

impl Band {
    /// From one share of the ceiling to another, in per cent.
    pub(crate) const fn shares(from: u32, to: u32) -> Self {
        Self { from: Edge::percent(from), to: Edge::percent(to), capped: Capped::First, steps: Steps::Exact, lead: &[] }
    }

    pub(crate) const fn plus(self, from: Duration, to: Duration) -> Self {
        Self { from: Edge { plus: from, ..self.from }, to: Edge { plus: to, ..self.to }, ..self }
    }

    /// Without its last part: for what draws from an interval that is open at its end.
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

    /// Saturating at the longest length.
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
    /// To what was drawn: beyond the cap everyone waits exactly the cap.
    Last,
    /// To both.
    Twice,
}

/// What ceilings and delays are rounded down to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Steps {
    Exact,
    Nanos,
    Millis,
}

impl Steps {
    /// In nanoseconds; 0 for no rounding.
    pub(crate) const fn nanos(self) -> u64 {
        match self {
            Self::Exact => 0,
            Self::Nanos => 1,
            Self::Millis => 1_000_000,
        }
    }
}

/// 53 bits as a share of 1, below it: what a system that draws floating-point numbers draws.
pub(crate) fn share(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}
