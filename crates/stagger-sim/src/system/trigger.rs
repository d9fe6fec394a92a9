//! Triggers: faults of a service or of the users for a while.

use core::fmt;
use core::time::Duration;

use stagger_core::text::Compact;

/// A fault of the system for a while, inclusive of its start and exclusive of its end.
///
/// Several triggers make a sequence; the system is judged from the start of the first. Triggers of the same kind that
/// overlap act together: shares and factors multiply, and the fewest workers count.
#[derive(Clone, Debug, PartialEq)]
#[must_use]
pub struct Trigger {
    pub(super) fault: Fault,
    pub(super) on: Option<String>,
    pub(super) at: Duration,
    pub(super) length: Duration,
}

/// What a trigger does.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Fault {
    Share(f64),
    Reject,
    Error(f64),
    Workers(u32),
    SlowStart(f64),
    SlowArrival(f64),
    Spike(f64),
    Cold,
}

impl Trigger {
    const fn new(fault: Fault) -> Self {
        Self { fault, on: None, at: Duration::from_secs(20), length: Duration::from_secs(10) }
    }

    /// The service stands still, with what it has begun.
    pub const fn stall() -> Self {
        Self::new(Fault::Share(0.0))
    }

    /// The workers work at this share of their speed, from 0 to 1, also on what they have begun.
    pub const fn share(share: f64) -> Self {
        Self::new(Fault::Share(share))
    }

    /// The service refuses every arrival at once. What waits is worked off.
    pub const fn reject() -> Self {
        Self::new(Fault::Reject)
    }

    /// The service refuses each arrival with this probability, at no cost.
    pub const fn error(probability: f64) -> Self {
        Self::new(Fault::Error(probability))
    }

    /// Only this many workers take up work. What is in service is finished.
    pub const fn workers(workers: u32) -> Self {
        Self::new(Fault::Workers(workers))
    }

    /// An attempt that is taken up during the fault takes `factor` times as long, all of it.
    pub const fn slow_from_start(factor: f64) -> Self {
        Self::new(Fault::SlowStart(factor))
    }

    /// An attempt that arrives during the fault takes `factor` times as long, whenever it is taken up.
    pub const fn slow_from_arrival(factor: f64) -> Self {
        Self::new(Fault::SlowArrival(factor))
    }

    /// The users' rate is multiplied by `factor`.
    pub const fn spike(factor: f64) -> Self {
        Self::new(Fault::Spike(factor))
    }

    /// All caches are emptied at the start.
    pub const fn cold() -> Self {
        Self::new(Fault::Cold).lasting(Duration::ZERO)
    }

    /// Sets the service that it affects. Default: the service that was added last. Without effect for a spike and a
    /// cold start.
    pub fn on(mut self, service: impl Into<String>) -> Self {
        self.on = Some(service.into());
        self
    }

    /// Sets its start. Default: 20 s.
    pub const fn at(mut self, at: Duration) -> Self {
        self.at = at;
        self
    }

    /// Sets its length. Default: 10 s; a cold start has none.
    pub const fn lasting(mut self, length: Duration) -> Self {
        self.length = length;
        self
    }
}

/// Says what affects which service, and when: `stall of database from 20s to 30s`.
impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.fault {
            Fault::Share(0.0) => f.write_str("stall")?,
            Fault::Share(share) => write!(f, "{:.0}% of the speed", 100.0 * share)?,
            Fault::Reject => f.write_str("refusals")?,
            Fault::Error(share) => write!(f, "{:.0}% errors", 100.0 * share)?,
            Fault::Workers(workers) => write!(f, "{workers} workers")?,
            Fault::SlowStart(factor) => write!(f, "{factor}x service time from the start of service")?,
            Fault::SlowArrival(factor) => write!(f, "{factor}x service time from arrival")?,
            Fault::Spike(factor) => write!(f, "{factor}x load")?,
            Fault::Cold => f.write_str("cold caches")?,
        }
        match (self.fault, &self.on) {
            // These do not affect one service, whatever is set.
            (Fault::Spike(_) | Fault::Cold, _) | (_, None) => {}
            (_, Some(service)) => write!(f, " of {service}")?,
        }
        let end = self.at + self.length;
        match self.fault {
            Fault::Cold => write!(f, " at {}", Compact(self.at)),
            _ => write!(f, " from {} to {}", Compact(self.at), Compact(end)),
        }
    }
}
