use core::time::Duration;
use std::collections::HashSet;
use std::sync::Mutex;

use stagger_core::guard::{BreakerPermit, Now};
use stagger_core::{Breaker, BreakerOpen, Outcome};

/// A breaker with settable decisions that numbers its permits and records every call to it.
#[derive(Debug, Default)]
pub(crate) struct RecordingBreaker(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    last_id: u64,
    outstanding: HashSet<u64>,
    open: bool,
    /// Makes `would_reject` return true for this wait and longer ones.
    rejects_from: Option<Duration>,
    reads_clock: bool,
    checked_waits: Vec<Duration>,
    records: Vec<(u64, Outcome)>,
    problems: Vec<String>,
}

impl RecordingBreaker {
    /// The `retry_in` that it reports while open.
    const OPEN: Duration = Duration::from_secs(1);

    /// Creates a breaker that reads the clock on every call.
    pub(crate) fn with_clock() -> Self {
        Self(Mutex::new(Inner { reads_clock: true, ..Inner::default() }))
    }

    /// Sets whether the breaker rejects attempts.
    pub(crate) fn set_open(&self, open: bool) {
        self.with_inner(|inner| inner.open = open);
    }

    /// Sets the shortest wait for which `would_reject` returns true; with `None` it never does.
    pub(crate) fn set_rejects_from(&self, wait: Option<Duration>) {
        self.with_inner(|inner| inner.rejects_from = wait);
    }

    /// Returns the waits passed to `would_reject` since the previous call.
    pub(crate) fn checked_waits(&self) -> Vec<Duration> {
        self.with_inner(|inner| core::mem::take(&mut inner.checked_waits))
    }

    /// Returns the outcomes recorded since the previous call, each with its permit's number.
    pub(crate) fn records(&self) -> Vec<(u64, Outcome)> {
        self.with_inner(|inner| core::mem::take(&mut inner.records))
    }

    /// Returns the number of outstanding permits.
    pub(crate) fn outstanding(&self) -> usize {
        self.with_inner(|inner| inner.outstanding.len())
    }

    /// Panics unless every permit was recorded exactly once, and only permits that were granted.
    pub(crate) fn assert_balanced(&self) {
        self.with_inner(|inner| assert!(inner.problems.is_empty() && inner.outstanding.is_empty(), "{inner:#?}"));
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        self.with_inner(|inner| inner.problems.clone())
    }

    fn with_inner<R>(&self, f: impl FnOnce(&mut Inner) -> R) -> R {
        f(&mut self.0.lock().unwrap())
    }
}

impl Inner {
    fn read_clock(&self, now: &dyn Now) {
        if self.reads_clock {
            assert_eq!(now.now(), now.now());
        }
    }
}

impl Breaker for RecordingBreaker {
    fn admit(&self, now: &dyn Now) -> Result<BreakerPermit, BreakerOpen> {
        self.with_inner(|inner| {
            inner.read_clock(now);
            if inner.open {
                return Err(BreakerOpen { retry_in: Self::OPEN });
            }
            inner.last_id += 1;
            inner.outstanding.insert(inner.last_id);
            Ok(BreakerPermit(inner.last_id))
        })
    }

    fn retry_in(&self, now: &dyn Now) -> Duration {
        self.with_inner(|inner| {
            inner.read_clock(now);
            if inner.open { Self::OPEN } else { Duration::ZERO }
        })
    }

    fn would_reject(&self, after: Duration, now: &dyn Now) -> bool {
        self.with_inner(|inner| {
            inner.read_clock(now);
            inner.checked_waits.push(after);
            inner.rejects_from.is_some_and(|from| after >= from)
        })
    }

    fn record(&self, permit: BreakerPermit, outcome: &Outcome, now: &dyn Now) {
        self.with_inner(|inner| {
            inner.read_clock(now);
            if !inner.outstanding.remove(&permit.0) {
                inner.problems.push(format!("record: permit {} is not outstanding", permit.0));
            }
            inner.records.push((permit.0, *outcome));
        });
    }
}
