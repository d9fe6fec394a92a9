//! What a connection that is kept up reports while its server cannot be reached.

use core::time::Duration;

use crate::numbers::instant::Instant;

/// A server that could not be reached for at least ten attempts in a row.
///
/// A connection that is kept up does not give up by default, so this is what it tells its user: a banner in a user
/// interface, a line in a log. See [`ReconnectMachine::unreachable`](crate::machine::ReconnectMachine::unreachable).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Unreachable {
    /// When the last connection ended, or, if there was none, when the first attempt began.
    pub since: Instant,
    /// The time from then until the latest attempt failed.
    pub lasted: Duration,
    /// The number of attempts that have failed since, in a row.
    pub attempts: u32,
}

/// Counts failed attempts to connect, and says when to report them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outage {
    unreachable: Unreachable,
    /// How long it must have lasted for the next report.
    next_report: Duration,
    is_report_due: bool,
}

impl Outage {
    /// The number of failed attempts in a row before the first report.
    const ATTEMPTS: u32 = 10;
    /// The shortest time between reports, for attempts that fail without a wait between them.
    const SHORTEST: Duration = Duration::from_secs(1);

    pub(super) const fn new(since: Instant) -> Self {
        let unreachable = Unreachable { since, lasted: Duration::ZERO, attempts: 0 };
        Self { unreachable, next_report: Duration::ZERO, is_report_due: false }
    }

    /// Records that an attempt has failed.
    pub(super) fn attempt_failed(&mut self, now: Instant) {
        let Unreachable { since, lasted, attempts } = &mut self.unreachable;
        *attempts = attempts.saturating_add(1);
        *lasted = now.saturating_since(*since);
        if *attempts >= Self::ATTEMPTS && *lasted >= self.next_report {
            self.next_report = lasted.saturating_mul(2).max(lasted.saturating_add(Self::SHORTEST));
            self.is_report_due = true;
        }
    }

    /// Returns the state; `None` below ten failed attempts.
    pub(super) const fn unreachable(&self) -> Option<Unreachable> {
        if self.unreachable.attempts >= Self::ATTEMPTS { Some(self.unreachable) } else { None }
    }

    /// Returns the state if it is to be reported now.
    pub(super) const fn take_report(&mut self) -> Option<Unreachable> {
        if core::mem::replace(&mut self.is_report_due, false) { self.unreachable() } else { None }
    }
}
