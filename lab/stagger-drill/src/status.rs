use core::sync::atomic::{AtomicU64, Ordering};
use std::io::{self, ErrorKind};
use std::sync::{Mutex, PoisonError};

use stagger_ws::ConnectionError;

use super::log::Event;
use stagger_terminal::plot::Unit;

/// Progress of all clients. The clients update it, and the drill samples it ten times a second, so that observing it
/// does not slow them down.
#[derive(Debug, Default)]
pub(super) struct FleetStatus {
    /// Number of each [`Event`].
    counts: [AtomicU64; 5],
    /// Attempts that failed for lack of local ports or file descriptors.
    exhausted: AtomicU64,
    first_failure: Mutex<Option<String>>,
}

/// Values of [`FleetStatus`] at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Snapshot {
    pub(super) connected: u64,
    pub(super) lost: u64,
    pub(super) gave_up: u64,
    pub(super) attempts: u64,
    pub(super) failed: u64,
}

impl FleetStatus {
    /// Counts an event of a client; returns how many there were before.
    pub(super) fn record(&self, event: Event) -> u64 {
        self.counts[event as usize].fetch_add(1, Ordering::Relaxed)
    }

    pub(super) fn failed(&self, cause: &ConnectionError) {
        if let ConnectionError::Io(error) = cause
            && is_exhaustion(error)
        {
            self.exhausted.fetch_add(1, Ordering::Relaxed);
        }
        if self.record(Event::Failed) == 0 {
            *self.first_failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(cause.to_string());
        }
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        let count = |event| self.counts[event as usize].load(Ordering::Relaxed);
        // The losses last: a connection that is lost in between must not count as connected.
        let (opened, lost) = (count(Event::Connected), count(Event::Lost));
        Snapshot {
            connected: opened.saturating_sub(lost),
            lost,
            gave_up: count(Event::GaveUp),
            attempts: count(Event::Sent),
            failed: count(Event::Failed),
        }
    }

    pub(super) fn exhausted(&self) -> u64 {
        self.exhausted.load(Ordering::Relaxed)
    }

    pub(super) fn first_failure(&self) -> Option<String> {
        self.first_failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Returns whether this machine, rather than the server, ran out of resources.
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
    pub(super) fn line(&self, phase: &str, clients: u64, before: &Self, per_second: f64) -> String {
        let count = |number: u64| Unit::Count.label(number as f64);
        let rate = (self.attempts.saturating_sub(before.attempts)) as f64 * per_second;
        format!(
            "{phase}: {} of {} connected, {} attempts/s, {} failed",
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
    fn local_exhaustion_is_distinguished_from_a_server_failure() {
        let status = FleetStatus::default();
        for kind in [ErrorKind::ConnectionRefused, ErrorKind::AddrNotAvailable, ErrorKind::ConnectionReset] {
            status.failed(&ConnectionError::Io(Arc::new(kind.into())));
        }
        status.failed(&ConnectionError::Lost);
        assert_eq!((status.snapshot().failed, status.exhausted()), (4, 1));
        #[cfg(unix)]
        assert!(is_exhaustion(&rustix::io::Errno::MFILE.into()));
        assert!(status.first_failure().is_some_and(|cause| cause.contains("refused")), "{:?}", status.first_failure());
    }

    #[test]
    fn the_progress_line_shows_attempts_per_second() {
        let before = Snapshot { attempts: 100, ..Snapshot::default() };
        let now = Snapshot { connected: 1_234, attempts: 185, failed: 60, ..Snapshot::default() };
        assert_eq!(
            now.line("ours: storm", 3_000, &before, 10.0),
            "ours: storm: 1,234 of 3,000 connected, 850 attempts/s, 60 failed"
        );
    }
}
