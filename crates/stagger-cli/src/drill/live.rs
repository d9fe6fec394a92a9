use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

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

    pub(super) fn failed(&self, why: impl FnOnce() -> String) {
        if self.failed.fetch_add(1, Ordering::Relaxed) == 0 {
            *self.why.lock().unwrap_or_else(PoisonError::into_inner) = Some(why());
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

    /// Why the first attempt failed, of those that did.
    pub(super) fn why(&self) -> Option<String> {
        self.why.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
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
