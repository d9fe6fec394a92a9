use core::time::Duration;

use stagger_core::{Instant, Seed};

use crate::time::Clock;

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

    /// Returns another wait if the timer of the last one fired long after its `end`: the machine has slept, and the timers of
    /// all processes fire at once.
    fn overslept(&mut self, end: Instant, now: Instant) -> Option<Duration>;

    /// Restarts the schedule, as if the latest tick had been the first.
    fn restart(&mut self, clock: &impl Clock);
}
