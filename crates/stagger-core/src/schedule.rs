//! The delays. This is the only place where a delay formula is written.

use core::time::Duration;

use crate::jitter::draw_nanos;
use crate::outcome::Kind;
use crate::policy::{Draw, Route};
use crate::seed::Purpose;
use crate::{Backoff, Policy, Seed};

/// The endless series of delays of one call.
///
/// It is an iterator: take from it what the loop at hand needs. It ends at once for a `stop` backoff, and never
/// otherwise. It knows nothing of limits; [`Policy::delays`] ends with `max_attempts`.
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
    seed: Seed,
    carry: f64,
    n: u32,
}

impl Iterator for Schedule<'_> {
    type Item = Duration;

    #[inline]
    fn next(&mut self) -> Option<Duration> {
        self.n = self.n.saturating_add(1);
        let interval = self.policy.advance(&mut self.carry, self.n, Kind::Transient)?;
        Some(Duration::from_nanos(self.policy.draw(
            &mut self.carry,
            interval,
            self.seed.bits(0, self.n, Purpose::Delay),
        )))
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

/// What the delay of a retry is drawn from, in nanoseconds, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval {
    pub(crate) lo: u64,
    pub(crate) hi: u64,
}

impl Policy {
    /// The endless series of delays of the call whose key is `seed`.
    #[inline]
    #[must_use]
    pub const fn schedule(&self, seed: Seed) -> Schedule<'_> {
        Schedule { policy: self, seed, carry: self.curve.first, n: 0 }
    }

    /// The delays of the call whose key is `seed`: `max_attempts − 1` of them, or an endless series without that limit.
    #[inline]
    #[must_use]
    pub const fn delays(&self, seed: Seed) -> Delays<'_> {
        let left = match self.max_attempts() {
            Some(attempts) => Some(attempts.get() - 1),
            None => None,
        };
        Delays { schedule: self.schedule(seed), left }
    }

    /// The delay before retry `n` (from 1) of the call whose key is `seed`, without state: what the `n`-th element of
    /// [`schedule`](Self::schedule) is. `None` for `n` = 0, and for a `stop` backoff.
    ///
    /// It replays the ceilings, and for decorrelated jitter the draws, up to `n`, so it takes a time proportional to
    /// the number of retries after which the cap is reached; to `n` for decorrelated jitter.
    #[must_use]
    pub fn delay(&self, n: u32, seed: Seed) -> Option<Duration> {
        let mut carry = self.ceiling_before(n, seed);
        let interval = self.advance(&mut carry, n, Kind::Transient)?;
        Some(Duration::from_nanos(self.draw(&mut carry, interval, seed.bits(0, n, Purpose::Delay))))
    }

    /// The wait before the first action of an episode, for the call whose key is `seed`: uniform on `[0, spread]`.
    #[must_use]
    pub fn first_spread(&self, seed: Seed) -> Duration {
        Duration::from_nanos(draw_nanos(0, crate::instant::nanos(self.spread()), seed.bits(0, 0, Purpose::Spread)))
    }

    /// What the schedule carries when it comes to retry `n`.
    pub(crate) fn ceiling_before(&self, n: u32, seed: Seed) -> f64 {
        let mut carry = self.curve.first;
        for k in 1..n {
            let before = carry;
            let Some(interval) = self.advance(&mut carry, k, Kind::Transient) else { break };
            if self.curve.route == Route::Decorrelated {
                self.draw(&mut carry, interval, seed.bits(0, k, Purpose::Delay));
            } else if carry.to_bits() == before.to_bits() {
                // The cap is reached, or nothing grows.
                break;
            }
        }
        carry
    }

    /// The interval of retry `n` after a failure of this kind, and the step to the next ceiling.
    ///
    /// `carry` is the ceiling of retry `n`, or, for decorrelated jitter, the delay drawn before.
    #[inline]
    pub(crate) fn advance(&self, carry: &mut f64, n: u32, kind: Kind) -> Option<Interval> {
        let curve = &self.curve;
        let longer = match kind {
            Kind::Transient => 1.0,
            Kind::Throttled => curve.throttled,
            Kind::Local => curve.local,
        };
        match curve.route {
            Route::Curve => {
                let ceiling = *carry;
                *carry = least(curve.cap, ceiling * curve.multiplier + curve.step);
                let ceiling = if kind == Kind::Transient { ceiling } else { least(curve.cap, ceiling * longer) };
                Some(self.inside(ceiling as i64 as u64))
            }
            Route::Decorrelated => {
                let base = least(curve.cap, curve.first * longer);
                let previous = if *carry > base { *carry } else { base };
                let hi = least(curve.cap, 3.0 * previous);
                let hi = if hi > base { hi } else { base };
                Some(Interval { lo: base as i64 as u64, hi: hi as i64 as u64 })
            }
            Route::List => match &self.settings.backoff {
                Backoff::List(list) if n > 0 => Some(self.inside(list.nanos(n))),
                _ => None,
            },
            Route::Stop => None,
        }
        .filter(|_| n > 0)
    }

    /// The delay, and, for decorrelated jitter, the memory of it.
    #[inline]
    pub(crate) fn draw(&self, carry: &mut f64, interval: Interval, bits: u64) -> u64 {
        let delay = draw_nanos(interval.lo, interval.hi, bits);
        if self.curve.route == Route::Decorrelated {
            *carry = delay as f64;
        }
        delay
    }

    /// The interval inside a ceiling.
    #[inline]
    pub(crate) fn inside(&self, ceiling: u64) -> Interval {
        let (lo, hi) = match self.curve.draw {
            Draw::Full => (0, ceiling),
            Draw::None => (ceiling, ceiling),
            Draw::Equal => (ceiling / 2, ceiling),
            Draw::Factor(share) => {
                let part = (ceiling as f64 * share) as i64 as u64;
                (ceiling - part.min(ceiling), ceiling + part)
            }
        };
        let floor = self.curve.floor;
        if floor == 0 { Interval { lo, hi } } else { Interval { lo: lo.max(floor), hi: hi.max(floor) } }
    }
}

/// The smaller of two numbers, neither of them NaN; one instruction.
#[inline]
fn least(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}
