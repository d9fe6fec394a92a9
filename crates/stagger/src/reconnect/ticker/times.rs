//! The times of ticks: by a policy's schedule, or around a period.

use core::time::Duration;

use stagger_core::guard::Permits;
use stagger_core::machine::{Decision, RetryMachine, RetryState, spread_again};
use stagger_core::schedule::draw;
use stagger_core::{DelaySource, Guards, Instant, Outcome, Ratio, Seed, StopReason};

use crate::retrier::event::{Action, Event};
use crate::retrier::handle::Retrier;
use crate::time::{Clock, entropy};

/// The tick times of a ticker, which only waits for them.
///
/// Waits are counted from the current instant of `clock`; zero means no wait. `resolution` is that of the timer.
pub trait Times {
    /// Sets the seed that the tick times are drawn from.
    fn set_seed(&mut self, seed: Seed);

    /// Returns the wait before the first tick.
    fn first(&mut self, clock: &impl Clock, resolution: Duration) -> Duration;

    /// Records that a tick is yielded. Returns how many were skipped before it.
    fn ticked(&mut self, clock: &impl Clock) -> u64;

    /// Returns the wait before the next tick, or `None` if there is none.
    fn next(&mut self, clock: &impl Clock, resolution: Duration) -> Option<Duration>;

    /// Returns another wait if the timer of the last one fired long after its `end`: the machine has slept, and the
    /// timers of all processes fire at once.
    fn overslept(&mut self, end: Instant, now: Instant) -> Option<Duration>;

    /// Restarts the schedule, as if the latest tick had been the first.
    fn restart(&mut self, clock: &impl Clock);
}

/// Tick times from a policy: a tick corresponds to an attempt, and the delay to the next tick to that of a retry.
#[derive(Clone, Debug)]
pub struct Scheduled {
    retrier: Retrier,
    state: RetryState,
    seed: Seed,
}

impl Scheduled {
    pub(super) fn new(retrier: Retrier) -> Self {
        let seed = retrier.shared().seed.unwrap_or_else(entropy::seed);
        Self { retrier, state: RetryState::new(), seed }
    }

    fn retry(&mut self) -> RetryMachine<'_> {
        let strategy = self.retrier.shared().strategy.as_deref();
        RetryMachine::new(self.retrier.policy(), &mut self.state, self.seed).strategy(strategy)
    }

    /// Counts a tick as an attempt. There is no guard that could reject it.
    fn begin(&mut self, clock: &impl Clock) {
        if self.retrier.shared().has_listeners() && self.state.attempt() == 0 {
            self.state = RetryState::started(clock.now());
        }
        let _ = self.retry().begin(Permits::NONE, || clock.now(), &Guards::none());
    }

    fn emit(&self, clock: &impl Clock, action: Action) {
        self.retrier.shared().emit(|| Event {
            target: "",
            attempt: self.state.attempt(),
            max_attempts: self.retrier.policy().max_attempts(),
            elapsed: self.state.start().map_or(Duration::ZERO, |start| clock.now().saturating_since(start)),
            budget_left: None,
            action,
            error: None,
            retry_in: None,
            unreachable: None,
            rules: None,
        });
    }
}

impl Times for Scheduled {
    fn set_seed(&mut self, seed: Seed) {
        self.seed = seed;
    }

    fn first(&mut self, clock: &impl Clock, resolution: Duration) -> Duration {
        if self.retrier.policy().spread().is_zero() {
            return Duration::ZERO;
        }
        let mut retry = self.retry();
        let spread = retry.spread(|| clock.now());
        retry.on_ticks(spread, DelaySource::Spread, resolution)
    }

    fn ticked(&mut self, clock: &impl Clock) -> u64 {
        self.begin(clock);
        0
    }

    fn next(&mut self, clock: &impl Clock, resolution: Duration) -> Option<Duration> {
        let mut retry = self.retry();
        // A ticker does not know the result of the work; requesting the next tick corresponds to a failure.
        let (action, delay) = match retry.decide(Outcome::TRANSIENT, Permits::NONE, || clock.now(), &Guards::none()) {
            Decision::Retry { after, source, .. } => {
                (Action::Retry { after, source }, Some(retry.on_ticks(after, source, resolution)))
            }
            Decision::Stop(stop) => (Action::Stop(stop), None),
            _ => (Action::Stop(StopReason::Exhausted), None),
        };
        self.emit(clock, action);
        delay
    }

    fn overslept(&mut self, end: Instant, now: Instant) -> Option<Duration> {
        self.retry().spread_again(now.saturating_since(end), now)
    }

    fn restart(&mut self, clock: &impl Clock) {
        self.state = RetryState::new();
        // New draws, so that it does not repeat the previous delays.
        self.seed = self.seed.for_call(0);
        self.begin(clock);
    }
}

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
