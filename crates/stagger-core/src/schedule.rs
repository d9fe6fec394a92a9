//! The delays of a policy. `Policy::formula` is the native formula; the curves of some profiles are in
//! `profile::curves`.

use core::time::Duration;

use crate::numbers::instant::{LONGEST_NANOS, nanos};
use crate::numbers::random::{Purpose, Seed, Series, draw_nanos};
use crate::outcome::{FailureKind, Outcome, ServerHint};
use crate::policy::{Draw, Drawn, Growth, HintMode, Interval, Jitter, Memory, Policy, Shape};

pub use crate::numbers::random::draw;
pub use crate::policy::{Backoff, DelayList};

/// The endless series of delays of one call.
///
/// An iterator: take as many delays as your loop needs. It ends at once for a `stop` backoff, and never otherwise. It
/// applies no limits; [`Policy::delays`] ends with `max_attempts`.
///
/// ```
/// use core::time::Duration;
/// use stagger_core::{Policy, Seed};
///
/// let policy = Policy::exponential(Duration::from_millis(100), Duration::from_secs(10)).build()?;
/// for (delay, ceiling) in policy.schedule(Seed::new(7)).zip([100, 200, 400, 800]) {
///     assert!(delay <= Duration::from_millis(ceiling));
/// }
/// # Ok::<(), stagger_core::PolicyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Schedule<'a> {
    policy: &'a Policy,
    bits: Series,
    carry: f64,
    n: u32,
}

impl Iterator for Schedule<'_> {
    type Item = Duration;

    #[inline]
    fn next(&mut self) -> Option<Duration> {
        // After 2^32 delays a list, the only backoff that uses the number, starts over.
        self.n = self.n.wrapping_add(1);
        let drawn = self.policy.next_delay(self.carry, self.n, FailureKind::Transient, self.bits.next())?;
        self.carry = drawn.carry;
        Some(Duration::from_nanos(drawn.delay))
    }
}

impl core::iter::FusedIterator for Schedule<'_> {}

/// The delays of one call, as many as it can have retries: `max_attempts − 1`.
#[derive(Clone, Debug)]
pub struct Delays<'a> {
    schedule: Schedule<'a>,
    /// `None`: there is no limit.
    left: Option<u32>,
}

impl Iterator for Delays<'_> {
    type Item = Duration;

    #[inline]
    fn next(&mut self) -> Option<Duration> {
        if let Some(left) = &mut self.left {
            *left = left.checked_sub(1)?;
        }
        self.schedule.next()
    }
}

impl core::iter::FusedIterator for Delays<'_> {}

impl Policy {
    /// Returns the endless series of delays of the call whose key is `seed`.
    #[inline]
    #[must_use]
    pub const fn schedule(&self, seed: Seed) -> Schedule<'_> {
        Schedule { policy: self, bits: seed.series(Purpose::Delay), carry: self.curve.first, n: 0 }
    }

    /// Returns the delays of the call whose key is `seed`: `max_attempts − 1` of them, or an endless series without
    /// that limit.
    #[inline]
    #[must_use]
    pub const fn delays(&self, seed: Seed) -> Delays<'_> {
        let left = match self.max_attempts() {
            Some(attempts) => Some(attempts.get() - 1),
            None => None,
        };
        Delays { schedule: self.schedule(seed), left }
    }

    /// Returns the delay before retry `n` (from 1) of the call whose key is `seed`, without state: the `n`-th element
    /// of [`schedule`](Self::schedule). `None` for `n` = 0, and for a `stop` backoff.
    ///
    /// It replays the ceilings up to `n`, and for decorrelated jitter the draws, so it takes time proportional to the
    /// number of retries after which the cap is reached; to `n` for decorrelated jitter.
    #[must_use]
    pub fn delay(&self, n: u32, seed: Seed) -> Option<Duration> {
        n.checked_sub(1)?;
        let carry = self.carry_before(n, seed, 0)?;
        let drawn = self.next_delay(carry, n, FailureKind::Transient, seed.bits(0, n, Purpose::Delay))?;
        Some(Duration::from_nanos(drawn.delay))
    }

    /// Returns the value that the delays before retry `n` (from 1) carry on to it; `None` if there is no such retry. It
    /// replays them until they have settled.
    pub(crate) fn carry_before(&self, n: u32, seed: Seed, episode: u32) -> Option<f64> {
        let mut carry = self.curve.first;
        for k in 1..n {
            let drawn = self.next_delay(carry, k, FailureKind::Transient, seed.bits(episode, k, Purpose::Delay))?;
            if self.has_settled(k, carry, drawn.carry) && self.memory() != Memory::Decorrelated {
                break;
            }
            carry = drawn.carry;
        }
        Some(carry)
    }

    /// Returns whether the delay after an attempt with this outcome may depend on the call's seed, on a timer that
    /// fires only at multiples of `resolution` (zero for any other timer).
    ///
    /// If not, every seed gives the same decision and the same
    /// [wait on the timer](crate::machine::RetryMachine::on_ticks), so a driver need not spend time on a new seed: a
    /// `zero` policy, or one without jitter and spread, draws nothing until a server's hint is spread over its clients.
    /// The answer errs on the side of `true`, which costs nothing but time.
    ///
    /// ```
    /// use core::time::Duration;
    /// use stagger_core::{Outcome, Policy, ServerHint};
    ///
    /// let (zero, tick) = (Policy::zero().build()?, Duration::from_millis(1));
    /// assert!(!zero.needs_seed(&Outcome::TRANSIENT, tick));
    /// assert!(zero.needs_seed(&Outcome::throttled(Some(ServerHint::AtLeast(Duration::from_secs(2)))), tick));
    /// assert!(Policy::DEFAULT.needs_seed(&Outcome::TRANSIENT, tick));
    /// # Ok::<(), stagger_core::PolicyError>(())
    /// ```
    #[inline]
    #[must_use]
    pub fn needs_seed(&self, outcome: &Outcome, resolution: Duration) -> bool {
        let (kind, hint) = match *outcome {
            Outcome::Failed { kind, hint } => (kind, hint),
            Outcome::NotProcessed => (FailureKind::Transient, None),
            _ => return false,
        };
        // The two cases of almost every call.
        match (&self.settings.backoff, hint) {
            (Backoff::Exponential { .. }, None) if self.curve.is_plain => self.allows_retries(),
            (Backoff::Zero, None) if self.spread().is_zero() => false,
            _ => self.draws_after(kind, hint, resolution),
        }
    }

    #[cold]
    fn draws_after(&self, kind: FailureKind, hint: Option<ServerHint>, resolution: Duration) -> bool {
        if !self.allows_retries() || matches!(self.settings.backoff, Backoff::Stop) {
            return false;
        }
        // The delay is drawn under a hint, too, because later delays may follow from it.
        let draws = self.jitter() != Jitter::None || !self.spread().is_zero();
        match hint {
            Some(ServerHint::DoNotRetry) => false,
            _ if draws => true,
            Some(ServerHint::AtLeast(asked)) if self.hint_mode() == HintMode::AtLeast => {
                self.settings.backoff != Backoff::Zero || self.hint_spread().of(nanos(asked)) > 0
            }
            Some(_) => false,
            None => !self.fits_ticks(kind, nanos(resolution)),
        }
    }

    /// Returns whether every ceiling after failures of this kind is certainly a multiple of `tick`.
    fn fits_ticks(&self, kind: FailureKind, tick: u64) -> bool {
        /// Below it, whole numbers and their products with the multiplier are exact.
        const EXACT: u64 = 1 << f64::MANTISSA_DIGITS;
        let fits = |length: Duration| nanos(length) % tick == 0;
        let cap_fits = || match self.cap() {
            Some(cap) => nanos(cap) < EXACT && fits(cap) && fits(self.floor()),
            None => false,
        };
        let base = match kind {
            FailureKind::Transient => self.base(),
            FailureKind::Throttled => self.throttled_base(),
            FailureKind::LocalExhaustion => self.local_base(),
        };
        match self.settings.backoff {
            Backoff::Uniform { .. } => false,
            Backoff::Zero | Backoff::Stop => true,
            _ if tick <= 1 => true,
            // Scaled ceilings are rounded.
            _ if base != self.base() => false,
            Backoff::Constant { delay } => fits(delay),
            Backoff::List(list) => list.iter().all(fits),
            Backoff::Linear { base, step } => fits(base) && fits(step) && cap_fits(),
            Backoff::Exponential { base, multiplier } => {
                fits(base) && multiplier.to_bits() == (multiplier as u64 as f64).to_bits() && cap_fits()
            }
        }
    }

    /// Returns the ceiling below the cap that is applied after the draw, if there is one; in nanoseconds.
    pub(crate) const fn capped_last(&self, ceiling: u64) -> u64 {
        let cap = self.last_cap();
        if ceiling < cap { ceiling } else { cap }
    }

    /// Returns a hint as far as the policy follows it, for guards that hold other calls by it: `None` if it is longer
    /// than [`max_hint`](Self::max_hint), so that the call itself stops, and at most the length of
    /// [`HintMode::Clamp`].
    #[must_use]
    pub fn followed(&self, hint: ServerHint) -> Option<ServerHint> {
        let ServerHint::AtLeast(asked) = hint else { return Some(hint) };
        match (self.max_hint(), self.hint_mode()) {
            (Some(longest), _) if asked > longest => None,
            (_, HintMode::Clamp(most)) => Some(ServerHint::AtLeast(asked.min(most))),
            _ => Some(hint),
        }
    }

    /// Returns whether a retry waits exactly as long as this hint says, with nothing added.
    pub(crate) const fn follows_exactly(&self, hint: ServerHint) -> bool {
        matches!((hint, self.hint_mode()), (ServerHint::Reserved(_), _) | (ServerHint::AtLeast(_), HintMode::Exact))
    }

    /// Applies a hint to a delay that was `drawn`, in nanoseconds. Above a hint that is a minimum, clients are spread
    /// over at least `span`.
    #[cold]
    pub(crate) fn hinted(&self, hint: ServerHint, span: u64, drawn: u64, bits: u64) -> u64 {
        let asked = match hint {
            ServerHint::Reserved(asked) => return nanos(asked),
            ServerHint::AtLeast(asked) => nanos(asked),
            ServerHint::DoNotRetry => return drawn,
        };
        match self.hint_mode() {
            HintMode::Exact => asked,
            HintMode::AtLeast => {
                let span = span.max(self.hint_spread().of(asked));
                asked.saturating_add(draw_nanos(0, span, bits))
            }
            HintMode::Clamp(above) => asked.max(drawn).min(drawn.saturating_add(nanos(above))),
        }
    }

    /// Returns the wait before the first action of an episode, for the call whose key is `seed`: uniform on `[0,
    /// spread]`.
    #[must_use]
    pub fn first_spread(&self, seed: Seed) -> Duration {
        Duration::from_nanos(draw_spread(self.spread(), seed, 0, 0))
    }

    /// Draws the delay of retry `n` (from 1) after a failure of this kind from these bits. `carry` is the value that
    /// the previous delay carried on; for the first delay, the first ceiling. `None`: there is no retry.
    #[inline]
    pub(crate) fn next_delay(&self, carry: f64, n: u32, kind: FailureKind, bits: u64) -> Option<Drawn> {
        // One formula, compiled twice: for the shape of most policies, where it shrinks to a handful of instructions,
        // and out of line for the others. `carry` goes by value, or it would live in memory.
        if self.curve.is_plain && kind == FailureKind::Transient {
            self.formula(Shape::PLAIN, carry, n, FailureKind::Transient, bits)
        } else {
            // Rebuilt from its parts: passed on as it is, it would live in memory in the other branch, too.
            let Drawn { delay, interval, carry } = self.any_formula(carry, n, kind, bits)?;
            Some(Drawn { delay, interval, carry })
        }
    }

    /// Returns whether every delay after retry `k` is like it: the cap is reached, or nothing grows.
    pub(crate) fn has_settled(&self, k: u32, before: f64, after: f64) -> bool {
        let lead = match self.jitter() {
            Jitter::Profile(jitter) => jitter.0.curve.lead(),
            _ => 0,
        };
        before.to_bits() == after.to_bits() && k as usize > lead
    }

    // Cold, or the instructions for most policies would be laid out around it.
    #[cold]
    #[inline(never)]
    fn any_formula(&self, carry: f64, n: u32, kind: FailureKind, bits: u64) -> Option<Drawn> {
        if self.curve.is_special {
            return self.special_formula(carry, n, kind, bits);
        }
        self.formula(self.curve.shape, carry, n, kind, bits)
    }

    #[inline(never)]
    fn special_formula(&self, carry: f64, n: u32, kind: FailureKind, bits: u64) -> Option<Drawn> {
        match self.jitter() {
            Jitter::Profile(jitter) => jitter.0.curve.next_delay(self, carry, n, kind, bits),
            Jitter::Added(length) => {
                let Shape { growth, floor, .. } = self.curve.shape;
                let (ceiling, carry) = self.ceiling(growth, carry, n, kind)?;
                let longest = ceiling.saturating_add(nanos(length)).min(LONGEST_NANOS);
                let interval = Interval { lo: ceiling.max(floor), hi: longest.max(floor) };
                let delay = draw_nanos(interval.lo, interval.hi, bits).min(self.last_cap());
                Some(Drawn { delay, interval, carry })
            }
            _ => self.formula(self.curve.shape, carry, n, kind, bits),
        }
    }

    /// Draws a delay: the formula of every policy, but for the curves of some profiles.
    #[inline(always)]
    pub(crate) fn formula(&self, shape: Shape, carry: f64, n: u32, kind: FailureKind, bits: u64) -> Option<Drawn> {
        let (interval, next) = match shape.growth {
            Growth::Decorrelated => {
                let base = self.at_kind(self.curve.first, kind);
                let hi = least(self.curve.cap, 3.0 * greatest(carry, base));
                (Interval { lo: whole(base), hi: whole(greatest(hi, base)) }, carry)
            }
            growth => {
                let (ceiling, next) = self.ceiling(growth, carry, n, kind)?;
                (inside(shape, ceiling), next)
            }
        };
        let delay = draw_nanos(interval.lo, interval.hi, bits);
        Some(Drawn { delay, interval, carry: if shape.growth == Growth::Decorrelated { delay as f64 } else { next } })
    }

    /// Returns the ceiling of retry `n`, and the value that is carried on to the next.
    #[inline(always)]
    pub(crate) fn ceiling(&self, growth: Growth, carry: f64, n: u32, kind: FailureKind) -> Option<(u64, f64)> {
        let curve = &self.curve;
        Some(match (growth, &self.settings.backoff) {
            (Growth::Geometric, _) => (whole(self.at_kind(carry, kind)), least(curve.cap, carry * curve.multiplier)),
            (Growth::Linear, _) => (whole(self.at_kind(carry, kind)), least(curve.cap, carry + curve.step)),
            (Growth::List, Backoff::List(list)) => (list.nanos(n), carry),
            _ => return None,
        })
    }

    /// Returns a ceiling, adjusted to the kind of the failure.
    #[inline(always)]
    pub(crate) fn at_kind(&self, ceiling: f64, kind: FailureKind) -> f64 {
        match kind {
            FailureKind::Transient => ceiling,
            _ => least(self.curve.cap, ceiling * self.curve.kind_factor(kind)),
        }
    }
}

/// Draws a wait that is uniform on `[0, spread]`, in nanoseconds: the `n`-th of this episode, from 0. The only place
/// that does: a call, a connection, a simulation and a plan draw the same spread for the same seed.
#[inline]
pub(crate) fn draw_spread(spread: Duration, seed: Seed, episode: u32, n: u32) -> u64 {
    draw_nanos(0, nanos(spread), seed.bits(episode, n, Purpose::Spread))
}

/// Returns the interval inside a ceiling.
#[inline(always)]
fn inside(shape: Shape, ceiling: u64) -> Interval {
    let (lo, hi) = match shape.draw {
        Draw::Full => (0, ceiling),
        Draw::None => (ceiling, ceiling),
        Draw::Equal => (ceiling / 2, ceiling),
        Draw::Factor(share) => {
            let part = whole(ceiling as f64 * share).min(ceiling);
            (ceiling - part, ceiling + part)
        }
    };
    Interval { lo: lo.max(shape.floor), hi: hi.max(shape.floor) }
}

/// Returns a length in nanoseconds, truncated. Ceilings are never negative, NaN or above `i64::MAX`, and the conversion
/// to a signed number takes half as many instructions.
#[inline(always)]
pub(crate) fn whole(nanos: f64) -> u64 {
    nanos as i64 as u64
}

/// Returns the smaller of two numbers, neither of them NaN, in one instruction.
#[inline(always)]
pub(crate) fn least(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

#[inline(always)]
fn greatest(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}
