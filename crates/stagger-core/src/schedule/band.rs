use core::time::Duration;

use super::{least, whole};
use crate::numbers::draw::draw_nanos;
use crate::numbers::instant::{LONGEST_NANOS, nanos};
use crate::outcome::FailureKind;
use crate::policy::{DelayCurve, Drawn, Interval, Policy, Route};

/// `U[from(ceiling), to(ceiling)]`.
pub(crate) struct Band {
    from: Edge,
    to: Edge,
    steps: Steps,
    /// The intervals of the first delays; the ceilings begin after them.
    lead: &'static [(Duration, Duration)],
}

impl Band {
    /// Creates a band from one share of the ceiling to another, in percent.
    pub(crate) const fn shares(from: u32, to: u32) -> Self {
        Self { from: Edge::percent(from), to: Edge::percent(to), steps: Steps::Exact, lead: &[] }
    }

    pub(crate) const fn plus(self, from: Duration, to: Duration) -> Self {
        Self { from: Edge { plus: from, ..self.from }, to: Edge { plus: to, ..self.to }, ..self }
    }

    /// Removes the last unit of the interval, for systems that draw from an interval that is open at its end.
    pub(crate) const fn open(self, unit: Duration) -> Self {
        Self { to: Edge { minus: unit, ..self.to }, ..self }
    }

    pub(crate) const fn steps(self, steps: Steps) -> Self {
        Self { steps, ..self }
    }

    pub(crate) const fn lead(self, lead: &'static [(Duration, Duration)]) -> Self {
        Self { lead, ..self }
    }
}

/// `percent / 100 · ceiling + plus − minus`.
struct Edge {
    percent: u32,
    plus: Duration,
    minus: Duration,
}

impl Edge {
    const fn percent(percent: u32) -> Self {
        Self { percent, plus: Duration::ZERO, minus: Duration::ZERO }
    }

    /// Returns the edge for a ceiling, saturating at the longest length.
    fn at(&self, ceiling: u64) -> u64 {
        let share = u128::from(ceiling) * u128::from(self.percent) / 100;
        let sum = share + u128::from(nanos(self.plus));
        u64::try_from(sum).unwrap_or(u64::MAX).min(LONGEST_NANOS).saturating_sub(nanos(self.minus))
    }
}

impl DelayCurve for Band {
    fn next_delay(&self, policy: &Policy, carry: f64, n: u32, kind: FailureKind, bits: u64) -> Option<Drawn> {
        let floor = policy.curve.shape.floor;
        if let Some(&(from, to)) = self.lead.get(n.wrapping_sub(1) as usize) {
            let interval = Interval { lo: nanos(from).max(floor), hi: nanos(to).max(floor) };
            return Some(Drawn { delay: draw_nanos(interval.lo, interval.hi, bits), interval, carry });
        }
        let (curve, route) = (&policy.curve, policy.curve.shape.route);
        let (ceiling, mut next) = policy.ceiling(route, carry, n, kind)?;
        let unit = self.steps.nanos();
        let interval = Interval { lo: self.from.at(ceiling).max(floor), hi: self.to.at(ceiling).max(floor) };
        let drawn = match unit {
            0 => draw_nanos(interval.lo, interval.hi, bits),
            // A floor may lie between two units.
            unit => (draw_nanos(interval.lo / unit, interval.hi / unit, bits) * unit).max(floor),
        };
        if unit > 0 && route == Route::Geometric {
            next = least(curve.cap, (whole(carry * curve.multiplier) / unit * unit) as f64);
        }
        Some(Drawn { delay: drawn.min(policy.last_cap()), interval, carry: next })
    }

    fn lead(&self) -> usize {
        self.lead.len()
    }
}

/// The unit that ceilings and delays are rounded down to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Steps {
    Exact,
    Nanos,
    Millis,
}

impl Steps {
    /// Returns the unit in nanoseconds; 0 for no rounding.
    const fn nanos(self) -> u64 {
        match self {
            Self::Exact => 0,
            Self::Nanos => 1,
            Self::Millis => 1_000_000,
        }
    }
}
