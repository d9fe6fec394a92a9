//! The delays of systems that are not those of the native formula: what the entries of the table refer to.

use core::time::Duration;

use crate::numbers::instant::{LONGEST_NANOS, nanos};
use crate::numbers::random::draw_nanos;
use crate::outcome::FailureKind;
use crate::policy::{DelayCurve, Drawn, Growth, Interval, Policy, SAMPLE};
use crate::schedule::{least, whole};

/// `U[from(ceiling), to(ceiling)]`.
pub(crate) struct Band {
    from: Edge,
    to: Edge,
    rounding: Rounding,
    /// The intervals of the first delays; the ceilings begin after them.
    lead: &'static [(Duration, Duration)],
}

impl Band {
    /// Creates a band from one share of the ceiling to another, in percent.
    pub(crate) const fn shares(from: u32, to: u32) -> Self {
        Self { from: Edge::percent(from), to: Edge::percent(to), rounding: Rounding::Exact, lead: &[] }
    }

    pub(crate) const fn plus(self, from: Duration, to: Duration) -> Self {
        Self { from: Edge { plus: from, ..self.from }, to: Edge { plus: to, ..self.to }, ..self }
    }

    /// Removes the last unit of the interval, for systems that draw from an interval that is open at its end.
    pub(crate) const fn open(self, unit: Duration) -> Self {
        Self { to: Edge { minus: unit, ..self.to }, ..self }
    }

    pub(crate) const fn rounded(self, rounding: Rounding) -> Self {
        Self { rounding, ..self }
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
        let (curve, growth) = (&policy.curve, policy.curve.shape.growth);
        let (ceiling, mut next) = policy.ceiling(growth, carry, n, kind)?;
        let unit = self.rounding.nanos();
        let interval = Interval { lo: self.from.at(ceiling).max(floor), hi: self.to.at(ceiling).max(floor) };
        let drawn = match unit {
            0 => draw_nanos(interval.lo, interval.hi, bits),
            // A floor may lie between two units.
            unit => (draw_nanos(interval.lo / unit, interval.hi / unit, bits) * unit).max(floor),
        };
        if unit > 0 && growth == Growth::Geometric {
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
pub(crate) enum Rounding {
    Exact,
    Nanos,
    Millis,
}

impl Rounding {
    /// Returns the unit in nanoseconds; 0 for no rounding.
    const fn nanos(self) -> u64 {
        match self {
            Self::Exact => 0,
            Self::Nanos => 1,
            Self::Millis => 1_000_000,
        }
    }
}

/// The first delay is uniform on `[from, to]`, and every later one is the delay before it times the multiplier, at most
/// `cap`.
pub(super) struct DrawnOnce {
    pub(super) from: Duration,
    pub(super) to: Duration,
}

impl DelayCurve for DrawnOnce {
    fn next_delay(&self, policy: &Policy, carry: f64, n: u32, _: FailureKind, bits: u64) -> Option<Drawn> {
        let (cap, multiplier) = (policy.last_cap(), policy.curve.multiplier);
        let longest = policy.curve.cap;
        let (mut low, mut high) = (nanos(self.from) as f64, nanos(self.to) as f64);
        for _ in 1..n {
            let before = low;
            (low, high) = (least(longest, low * multiplier), least(longest, high * multiplier));
            if low.to_bits() == before.to_bits() {
                break;
            }
        }
        let interval = Interval { lo: whole(low), hi: whole(high) };
        // The first delay is drawn; later ones follow from it.
        let drawn = if n > 1 { whole(carry) } else { draw_nanos(interval.lo, interval.hi, bits) };
        Some(Drawn { delay: drawn.min(cap), interval, carry: least(longest, drawn as f64 * multiplier) })
    }
}

/// The jitter of socket.io's client (`backo2`), in whole milliseconds: one draw decides how far a delay lies from its
/// ceiling and, by its first decimal, on which side. So the delays lie in ten bands with gaps between them, from 0.55
/// to 1.5 ceilings, and are cut at the cap afterwards.
pub(super) struct SocketIo;

impl DelayCurve for SocketIo {
    fn next_delay(&self, policy: &Policy, carry: f64, n: u32, kind: FailureKind, bits: u64) -> Option<Drawn> {
        let (ceiling, next) = policy.ceiling(Growth::Geometric, carry, n, kind)?;
        let longest = ceiling.saturating_add(ceiling / 2).min(LONGEST_NANOS);
        let interval = Interval { lo: (ceiling as f64 * 0.55) as u64 / MILLI * MILLI, hi: longest };
        Some(Drawn { delay: socket_io_delay(ceiling, policy.last_cap(), share(bits)), interval, carry: next })
    }

    fn sample(&self, policy: &Policy, _: u32, interval: Interval) -> Option<[u64; SAMPLE]> {
        // The upper end of its interval is one and a half ceilings.
        let ceiling = interval.hi / 3 * 2;
        Some(core::array::from_fn(|at| socket_io_delay(ceiling, policy.last_cap(), middle(at, SAMPLE))))
    }
}

const MILLI: u64 = 1_000_000;

/// Returns the delay of socket.io for a number in `[0, 1)`.
fn socket_io_delay(ceiling: u64, cap: u64, share: f64) -> u64 {
    let ceiling = ceiling / MILLI;
    let distance = (share * 0.5 * ceiling as f64) as u64;
    let drawn = if (share * 10.0) as u64 % 2 == 0 { ceiling - distance } else { ceiling.saturating_add(distance) };
    let cap = cap.min(LONGEST_NANOS) / MILLI * MILLI;
    drawn.saturating_mul(MILLI).min(cap)
}

/// `min(cap, U[base, 3 · previous])`: decorrelated jitter as it was published, with the cap after the draw.
pub(super) struct CappedLast;

impl DelayCurve for CappedLast {
    fn next_delay(&self, policy: &Policy, carry: f64, n: u32, kind: FailureKind, bits: u64) -> Option<Drawn> {
        let drawn = policy.formula(policy.curve.shape, carry, n, kind, bits)?;
        let delay = drawn.delay.min(policy.last_cap());
        Some(Drawn { delay, carry: delay as f64, ..drawn })
    }
}

/// Returns 53 bits as a number in `[0, 1)`, like the draws of systems that use floating-point numbers.
pub(super) fn share(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

/// Returns the middle of part `at` of 1, divided into `parts`.
pub(super) fn middle(at: usize, parts: usize) -> f64 {
    (at as f64 + 0.5) / parts as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000 * MILLI;

    #[test]
    fn the_first_decimal_selects_the_side() {
        for (share, want) in
            [(0.0, 1000), (0.099, 951), (0.1, 1050), (0.199, 1099), (0.2, 900), (0.85, 575), (0.95, 1475)]
        {
            assert_eq!(socket_io_delay(SECOND, 5 * SECOND, share), want * MILLI, "{share}");
        }
    }

    #[test]
    fn from_the_fifth_retry_on_every_delay_is_the_cap() {
        let shares = || (0..1_000).map(|i| f64::from(i) / 1_000.0);
        let at_cap = |n: u32| {
            shares().filter(|&share| socket_io_delay(SECOND << (n - 1), 5 * SECOND, share) == 5 * SECOND).count()
        };
        assert_eq!([1, 2, 3, 4, 5].map(at_cap), [0, 0, 300, 900, 1000]);
    }
}
