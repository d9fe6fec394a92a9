use core::time::Duration;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use crate::{Instant, time::Clock, time::SystemClock};

/// Limits the logs of retries, per target: the first is logged in full, then one summary a second at most.
///
/// In an outage every call fails, and a line for every retry of every call is an outage of the logs. A target that was
/// quiet for a second is logged in full again. A summary is made by the first event after its second is over; what is
/// not yet summed up when a target falls silent is told with its next event. At most 1,024 targets are remembered; the
/// one that was quiet for longest makes room.
///
/// ```
/// use std::time::Duration;
/// use stagger::observe::{LogLimit, Verbosity};
/// use stagger::testing::VirtualClock;
///
/// let clock = VirtualClock::new();
/// let limit = LogLimit::with_clock(clock.clone());
/// assert_eq!(limit.admit("api"), Verbosity::Full { since: 0 });
/// assert_eq!(limit.admit("database"), Verbosity::Full { since: 0 });
/// clock.advance(Duration::from_millis(700));
/// assert_eq!(limit.admit("api"), Verbosity::Silent);
/// clock.advance(Duration::from_millis(700));
/// assert_eq!(limit.admit("api"), Verbosity::Summary { silenced: 1 });
/// ```
#[derive(Debug)]
pub struct LogLimit<C = SystemClock> {
    clock: C,
    targets: Mutex<HashMap<Box<str>, Target>>,
}

/// How much of an event is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verbosity {
    /// All of it. So many events were not logged since the last that was, long ago.
    Full {
        /// How many.
        since: u64,
    },
    /// It, and how many there were since the last line.
    Summary {
        /// Events since then that were not logged, this one not included.
        silenced: u64,
    },
    /// Nothing.
    Silent,
}

#[derive(Clone, Copy, Debug)]
struct Target {
    /// When a line was logged last.
    logged: Instant,
    /// When an event came last.
    seen: Instant,
    silenced: u64,
}

/// Between two lines of a target.
const PERIOD: Duration = Duration::from_secs(1);
/// How many targets are remembered.
const TARGETS: usize = 1024;

impl LogLimit {
    /// By the system's clock.
    #[must_use]
    pub fn new() -> Self {
        Self::with_clock(SystemClock)
    }
}

impl Default for LogLimit {
    fn default() -> Self {
        Self::new()
    }
}

impl<C: Clock> LogLimit<C> {
    /// By this clock.
    pub fn with_clock(clock: C) -> Self {
        Self { clock, targets: Mutex::new(HashMap::new()) }
    }

    /// An event of this target has come: how much of it is logged?
    pub fn admit(&self, target: &str) -> Verbosity {
        let now = self.clock.now();
        // A count that a panic left behind is still a count.
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = targets.get_mut(target) {
            let quiet = now.saturating_since(known.seen);
            known.seen = now;
            if now.saturating_since(known.logged) < PERIOD {
                known.silenced += 1;
                return Verbosity::Silent;
            }
            known.logged = now;
            let silenced = core::mem::take(&mut known.silenced);
            return if quiet >= PERIOD { Verbosity::Full { since: silenced } } else { Verbosity::Summary { silenced } };
        }
        if targets.len() >= TARGETS {
            let quietest = targets.iter().min_by_key(|(_, target)| target.seen).map(|(name, _)| name.clone());
            if let Some(quietest) = quietest {
                targets.remove(&quietest);
            }
        }
        targets.insert(target.into(), Target { logged: now, seen: now, silenced: 0 });
        Verbosity::Full { since: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::VirtualClock;

    #[test]
    fn a_storm_is_one_line_a_second_and_every_event_is_counted() {
        let clock = VirtualClock::new();
        let limit = LogLimit::with_clock(clock.clone());
        let (mut lines, mut counted) = (0, 0);
        for _ in 0..10_000 {
            match limit.admit("api") {
                Verbosity::Full { since: silenced } | Verbosity::Summary { silenced } => {
                    lines += 1;
                    counted += silenced + 1;
                }
                Verbosity::Silent => {}
            }
            clock.advance(Duration::from_millis(1));
        }
        assert_eq!(lines, 10);
        // What came after the last line is told with the next.
        clock.advance(Duration::from_secs(60));
        let Verbosity::Full { since } = limit.admit("api") else { panic!("a quiet target is logged in full") };
        assert_eq!(counted + since, 10_000);
    }

    #[test]
    fn memory_is_bounded_by_forgetting_the_quietest() {
        let clock = VirtualClock::new();
        let limit = LogLimit::with_clock(clock.clone());
        for n in 0..3 * TARGETS {
            limit.admit(&n.to_string());
            limit.admit("busy");
            clock.advance(Duration::from_micros(1));
        }
        assert_eq!(limit.targets.lock().unwrap().len(), TARGETS);
        assert_eq!(limit.admit("busy"), Verbosity::Silent);
    }
}
