use core::time::Duration;

use crate::time::Clock;

/// When the ticks come. A ticker asks it, and waits.
///
/// Lengths are counted from the present of `clock`; zero is for no wait at all. `resolution` is the timer's.
pub trait Times {
    /// The wait before the first tick.
    fn first(&mut self, clock: &impl Clock, resolution: Duration) -> Duration;

    /// A tick is being given; says how many were left out before it.
    fn ticked(&mut self, clock: &impl Clock) -> u64;

    /// The wait before the next tick; `None`: there is none.
    fn next(&mut self, clock: &impl Clock, resolution: Duration) -> Option<Duration>;

    /// Begins anew, as if the tick that was given last had been the first.
    fn restart(&mut self, clock: &impl Clock);
}
