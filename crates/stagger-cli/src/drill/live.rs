use core::sync::atomic::{AtomicU64, Ordering};
use std::io::{self, ErrorKind};
use std::sync::{Mutex, PoisonError};

use stagger_ws::ConnectionError;

use crate::plot::Unit;

/// How far all clients are: they write it as they go, and whoever wants to know looks, ten times a second, so that watching
/// changes nothing.
#[derive(Debug, Default)]
pub(super) struct Live {
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
pub(super) struct Look {
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

impl Live {
    pub(super) fn sent(&self) {
        add(&self.attempts);
    }

    pub(super) fn failed(&self, cause: &ConnectionError) {
        if let ConnectionError::Io(error) = cause
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

    pub(super) fn look(&self) -> Look {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Look {
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
    pub(super) fn why(&self) -> Option<String> {
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

impl Look {
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
        let live = Live::default();
        for kind in [ErrorKind::ConnectionRefused, ErrorKind::AddrNotAvailable, ErrorKind::ConnectionReset] {
            live.failed(&ConnectionError::Io(Arc::new(kind.into())));
        }
        live.failed(&ConnectionError::Lost);
        assert_eq!((live.look().failed, live.exhausted()), (4, 1));
        #[cfg(unix)]
        assert!(is_exhaustion(&rustix::io::Errno::MFILE.into()));
        assert!(live.why().is_some_and(|why| why.contains("refused")), "{:?}", live.why());
    }

    #[test]
    fn the_line_has_attempts_by_the_second() {
        let before = Look { attempts: 100, ..Look::default() };
        let now = Look { connected: 1_234, attempts: 185, failed: 60, ..Look::default() };
        assert_eq!(
            now.line("ours: storm", 3_000, &before, 10.0),
            "ours: storm: 1,234 of 3,000 connected, 850/s attempts, 60 in vain"
        );
    }
}
