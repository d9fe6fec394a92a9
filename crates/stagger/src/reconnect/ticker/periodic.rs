use core::time::Duration;

use stagger_core::machine::spread_again;
use stagger_core::schedule::draw;
use stagger_core::{Instant, Ratio, Seed};

use super::times::Times;
use crate::time::{Clock, entropy};

/// Tick times around a period, without drift: see [`interval`](crate::reconnect::interval).
#[derive(Clone, Debug)]
pub struct Periodic {
    /// In nanoseconds, at least 1.
    period: u64,
    /// Width of the interval that each tick is drawn from, starting at its grid point.
    width: Duration,
    pub(super) spread: Duration,
    seed: Seed,
    /// Instant of grid point 0.
    origin: Instant,
    /// Grid point of the tick that was yielded last, or is waited for.
    point: u64,
    missed: u64,
}

/// Numbers of draws other than those of the grid points, which no point ever has.
const FIRST: u64 = u64::MAX;
const RESTART: u64 = u64::MAX - 1;
const AGAIN: u64 = u64::MAX - 2;

impl Periodic {
    pub(super) fn new(period: Duration, jitter: Ratio) -> Self {
        let period = Instant::ZERO.saturating_add(period).as_nanos().max(1);
        // ±jitter is a draw from an interval twice as wide. With more than half a period to either side, ticks would
        // overtake each other.
        let share = Ratio::millionths(jitter.as_millionths().saturating_mul(2).min(1_000_000));
        Self {
            period,
            width: Duration::from_nanos(share.of(period)),
            spread: Duration::from_nanos(period),
            seed: entropy::seed(),
            origin: Instant::ZERO,
            point: 0,
            missed: 0,
        }
    }

    fn draw(&self, longest: Duration, number: u64) -> Duration {
        draw(Duration::ZERO, longest, self.seed.for_call(number).get())
    }

    /// Returns when the tick of a grid point is due.
    fn due(&self, point: u64) -> Instant {
        let grid = Instant::from_nanos(self.origin.as_nanos().saturating_add(point.saturating_mul(self.period)));
        grid.saturating_add(self.draw(self.width, point))
    }

    /// Returns the first grid point from `next` on whose tick has not passed.
    fn point_from(&self, next: u64, now: Instant) -> u64 {
        let current = now.saturating_since(self.origin).as_nanos() as u64 / self.period;
        let point = next.max(current);
        // If its tick has passed, that of the following point cannot have.
        if self.due(point) < now { point.saturating_add(1) } else { point }
    }
}

impl Times for Periodic {
    fn set_seed(&mut self, seed: Seed) {
        self.seed = seed;
    }

    fn first(&mut self, clock: &impl Clock, _: Duration) -> Duration {
        let now = clock.now();
        self.origin = now.saturating_add(self.draw(self.spread, FIRST));
        self.due(0).saturating_since(now)
    }

    fn ticked(&mut self, _: &impl Clock) -> u64 {
        core::mem::take(&mut self.missed)
    }

    fn next(&mut self, clock: &impl Clock, _: Duration) -> Option<Duration> {
        let now = clock.now();
        let next = self.point.saturating_add(1);
        let point = self.point_from(next, now);
        self.missed = point - next;
        self.point = point;
        Some(self.due(point).saturating_since(now))
    }

    fn overslept(&mut self, end: Instant, now: Instant) -> Option<Duration> {
        let late = now.saturating_since(end);
        let next = self.point.saturating_add(1);
        let point = self.point_from(next, now);
        let until_next = self.due(point).saturating_since(now);
        let bits = self.seed.for_call(AGAIN).for_call(self.point).get();
        let again = spread_again(late, until_next, bits)?;
        if point == next {
            return Some(again);
        }
        // More ticks than this one have passed, and the grid is spread already.
        self.missed = self.missed.saturating_add(point - self.point);
        self.point = point;
        Some(until_next)
    }

    fn restart(&mut self, clock: &impl Clock) {
        self.origin = clock.now();
        self.point = 0;
        self.missed = 0;
        // New draws, so that it does not repeat the previous times.
        self.seed = self.seed.for_call(RESTART);
    }
}
