//! A rate limit for logs.

use core::time::Duration;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use stagger_core::Instant;

use crate::time::{Clock, SystemClock};

/// Rate-limits retry logs per target: the first event is logged in full, then at most one summary per second.
///
/// In an outage every call fails, and a log line for every retry of every call would overload the logs, too. A target
/// that was quiet for a second is logged in full again. A summary is triggered by the first event after its second is
/// over; events not yet summarized when a target goes quiet are reported with its next event. At most 1,024 targets are
/// remembered; beyond that, the one that was quiet for longest is evicted.
///
/// ```
/// use std::time::Duration;
/// use stagger::observe::{LogLimit, Verbosity};
/// use stagger::testing::VirtualClock;
///
/// let clock = VirtualClock::new();
/// let limit = LogLimit::with_clock(clock.clone());
/// assert_eq!(limit.admit("api"), Verbosity::Full { since: 0, over: Duration::ZERO });
/// assert_eq!(limit.admit("database"), Verbosity::Full { since: 0, over: Duration::ZERO });
/// clock.advance(Duration::from_millis(700));
/// assert_eq!(limit.admit("api"), Verbosity::Silent);
/// clock.advance(Duration::from_millis(700));
/// assert_eq!(limit.admit("api"), Verbosity::Summary { silenced: 1, over: Duration::from_millis(700) });
/// ```
#[derive(Debug)]
pub struct LogLimit<C = SystemClock> {
    clock: C,
    targets: Mutex<HashMap<Box<str>, LoggedTarget>>,
}

/// The detail in which an event is logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Verbosity {
    /// The whole event. The target was quiet before it, or is new.
    Full {
        /// Number of events not logged since the previous line.
        since: u64,
        /// Time from the previous line to the latest of them.
        over: Duration,
    },
    /// The event, with the number of events since the previous line.
    Summary {
        /// Number of events not logged since the previous line, not counting this one.
        silenced: u64,
        /// Time from the previous line to the latest of them.
        over: Duration,
    },
    /// Nothing is logged.
    Silent,
}

#[derive(Clone, Copy, Debug)]
struct LoggedTarget {
    /// Time of the latest log line.
    logged: Instant,
    /// Time of the latest event.
    seen: Instant,
    silenced: u64,
}

/// Minimum time between two lines of a target.
const PERIOD: Duration = Duration::from_secs(1);
/// Maximum number of targets remembered.
const TARGETS: usize = 1024;

impl LogLimit {
    /// Creates a limit on the system's clock.
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
    /// Creates a limit on this clock.
    pub fn with_clock(clock: C) -> Self {
        Self { clock, targets: Mutex::new(HashMap::new()) }
    }

    /// Records an event of this target, and returns how much of it to log.
    pub fn admit(&self, target: &str) -> Verbosity {
        let now = self.clock.now();
        // A count left behind by a panic is still a count.
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = targets.get_mut(target) {
            let quiet = now.saturating_since(known.seen);
            let over = known.seen.saturating_since(known.logged);
            known.seen = now;
            if now.saturating_since(known.logged) < PERIOD {
                known.silenced += 1;
                return Verbosity::Silent;
            }
            known.logged = now;
            let silenced = core::mem::take(&mut known.silenced);
            return if quiet >= PERIOD {
                Verbosity::Full { since: silenced, over }
            } else {
                Verbosity::Summary { silenced, over }
            };
        }
        if targets.len() >= TARGETS {
            let quietest = targets.iter().min_by_key(|(_, target)| target.seen).map(|(name, _)| name.clone());
            if let Some(quietest) = quietest {
                targets.remove(&quietest);
            }
        }
        targets.insert(target.into(), LoggedTarget { logged: now, seen: now, silenced: 0 });
        Verbosity::Full { since: 0, over: Duration::ZERO }
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
                Verbosity::Full { since: silenced, .. } | Verbosity::Summary { silenced, .. } => {
                    lines += 1;
                    counted += silenced + 1;
                }
                Verbosity::Silent => {}
            }
            clock.advance(Duration::from_millis(1));
        }
        assert_eq!(lines, 10);
        // Events after the last line are reported with the next one.
        clock.advance(Duration::from_secs(60));
        let Verbosity::Full { since, over } = limit.admit("api") else { panic!("a quiet target is logged in full") };
        assert_eq!(counted + since, 10_000);
        // Up to the last event, and not until now.
        assert_eq!(over, Duration::from_millis(since));
    }

    #[test]
    fn memory_is_bounded_by_evicting_the_quietest_target() {
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
