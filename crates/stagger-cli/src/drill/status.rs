use core::sync::atomic::{AtomicU64, Ordering};
use std::io::{self, ErrorKind};
use std::sync::{Mutex, PoisonError};

use stagger_ws::Cause;

use crate::plot::Unit;

/// How far all clients are: they write it as they go, and whoever wants to know looks, ten times a second, so that watching
/// changes nothing.
#[derive(Debug, Default)]
pub(super) struct FleetStatus {
    connected: AtomicU64,
    lost: AtomicU64,
    gave_up: AtomicU64,
    attempts: AtomicU64,
    failed: AtomicU64,
    /// Those that failed before they left the machine.
    exhausted: AtomicU64,
    /// Why the first attempt failed.
    why: Mutex<Option<String>>,
}

/// How far they were at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Snapshot {
    /// Clients that have a connection.
    pub(super) connected: u64,
    /// Connections that were lost, ever.
    pub(super) lost: u64,
    /// Clients that gave up.
    pub(super) gave_up: u64,
    /// Attempts, ever.
    pub(super) attempts: u64,
    /// Those that failed.
    pub(super) failed: u64,
}

fn add(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl FleetStatus {
    pub(super) fn sent(&self) {
        add(&self.attempts);
    }

    pub(super) fn failed(&self, cause: &Cause) {
        if let Cause::Io(error) = cause
            && is_exhaustion(error)
        {
            add(&self.exhausted);
        }
        if self.failed.fetch_add(1, Ordering::Relaxed) == 0 {
            *self.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(cause.to_string());
        }
    }

    pub(super) fn connected(&self) {
        add(&self.connected);
    }

    pub(super) fn lost(&self) {
        add(&self.lost);
        self.connected.fetch_sub(1, Ordering::Relaxed);
    }

    pub(super) fn gave_up(&self) {
        add(&self.gave_up);
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Snapshot {
            connected: read(&self.connected),
            lost: read(&self.lost),
            gave_up: read(&self.gave_up),
            attempts: read(&self.attempts),
            failed: read(&self.failed),
        }
    }

    /// How many attempts failed for want of ports or descriptors.
    pub(super) fn exhausted(&self) -> u64 {
        self.exhausted.load(Ordering::Relaxed)
    }

    /// Why the first attempt failed, of those that did.
    pub(super) fn first_failure(&self) -> Option<String> {
        self.why.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Whether it was this side that had nothing left.
fn is_exhaustion(error: &io::Error) -> bool {
    #[cfg(unix)]
    if [rustix::io::Errno::MFILE, rustix::io::Errno::NFILE]
        .iter()
        .any(|full| error.raw_os_error() == Some(full.raw_os_error()))
    {
        return true;
    }
    matches!(error.kind(), ErrorKind::AddrNotAvailable | ErrorKind::AddrInUse)
}

impl Snapshot {
    /// The line that people see.
    pub(super) fn line(&self, phase: &str, clients: u64, before: &Self, per_second: f64) -> String {
        let count = |number: u64| Unit::Count.label(number as f64);
        let rate = (self.attempts.saturating_sub(before.attempts)) as f64 * per_second;
        format!(
            "{phase}: {} of {} connected, {}/s attempts, {} in vain",
            count(self.connected),
            count(clients),
            Unit::Count.label(rate.round()),
            count(self.failed),
        )
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn a_machine_that_has_nothing_left_is_told_from_a_server_that_is_gone() {
        let status = FleetStatus::default();
        for kind in [ErrorKind::ConnectionRefused, ErrorKind::AddrNotAvailable, ErrorKind::ConnectionReset] {
            status.failed(&Cause::Io(Arc::new(kind.into())));
        }
        status.failed(&Cause::Lost);
        assert_eq!((status.snapshot().failed, status.exhausted()), (4, 1));
        #[cfg(unix)]
        assert!(is_exhaustion(&rustix::io::Errno::MFILE.into()));
        assert!(status.first_failure().is_some_and(|why| why.contains("refused")), "{:?}", status.first_failure());
    }

    #[test]
    fn the_line_has_attempts_by_the_second() {
        let before = Snapshot { attempts: 100, ..Snapshot::default() };
        let now = Snapshot { connected: 1_234, attempts: 185, failed: 60, ..Snapshot::default() };
        assert_eq!(
            now.line("ours: storm", 3_000, &before, 10.0),
            "ours: storm: 1,234 of 3,000 connected, 850/s attempts, 60 in vain"
        );
    }
}
