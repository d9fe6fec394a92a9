//! Fakes that record what a machine asks of its guards and its clock.

use core::cell::Cell;
use core::time::Duration;
use std::collections::{HashMap, HashSet};
use std::sync::Mutex;

use stagger_core::guard::{BreakerPermit, BudgetPermit, Now};
use stagger_core::{Breaker, BreakerOpen, Budget, FailureKind, Instant, Outcome};

/// A breaker with settable decisions that numbers its permits and records every call to it.
#[derive(Debug, Default)]
pub(crate) struct RecordingBreaker(Mutex<BreakerRecord>);

#[derive(Debug, Default)]
struct BreakerRecord {
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
        Self(Mutex::new(BreakerRecord { reads_clock: true, ..BreakerRecord::default() }))
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

    fn with_inner<R>(&self, f: impl FnOnce(&mut BreakerRecord) -> R) -> R {
        f(&mut self.0.lock().unwrap())
    }
}

impl BreakerRecord {
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

/// A budget that numbers its permits and records every call to it.
#[derive(Debug, Default)]
pub(crate) struct RecordingBudget(Mutex<BudgetRecord>);

#[derive(Debug, Default)]
struct BudgetRecord {
    last_id: u64,
    outstanding: HashMap<u64, &'static str>,
    rejects: bool,
    reads_clock: bool,
    events: Vec<String>,
    problems: Vec<String>,
}

impl RecordingBudget {
    /// Creates a budget that rejects every retry.
    pub(crate) fn rejecting() -> Self {
        let budget = Self::default();
        budget.set_rejects(true);
        budget
    }

    /// Creates a budget that reads the clock on every call that offers one.
    pub(crate) fn with_clock() -> Self {
        Self(Mutex::new(BudgetRecord { reads_clock: true, ..BudgetRecord::default() }))
    }

    pub(crate) fn set_rejects(&self, rejects: bool) {
        self.with_inner(|inner| inner.rejects = rejects);
    }

    /// Returns the calls since the previous `events()`, in order, such as `try_acquire Transient` and
    /// `record 2 Healthy`.
    pub(crate) fn events(&self) -> Vec<String> {
        self.with_inner(|inner| core::mem::take(&mut inner.events))
    }

    /// Returns the number of outstanding permits.
    pub(crate) fn outstanding(&self) -> usize {
        self.with_inner(|inner| inner.outstanding.len())
    }

    /// Panics unless every permit was returned exactly once, and only permits that were granted.
    pub(crate) fn assert_balanced(&self) {
        self.with_inner(|inner| assert!(inner.problems.is_empty() && inner.outstanding.is_empty(), "{inner:#?}"));
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        self.with_inner(|inner| inner.problems.clone())
    }

    fn with_inner<R>(&self, f: impl FnOnce(&mut BudgetRecord) -> R) -> R {
        f(&mut self.0.lock().unwrap())
    }

    fn grant(&self, attempt: &'static str, now: &dyn Now) -> BudgetPermit {
        self.with_inner(|inner| {
            inner.read_clock(now);
            inner.last_id += 1;
            inner.outstanding.insert(inner.last_id, attempt);
            BudgetPermit(inner.last_id)
        })
    }
}

impl BudgetRecord {
    fn read_clock(&self, now: &dyn Now) {
        if self.reads_clock {
            // Repeated reads within one decision return the same instant.
            assert_eq!(now.now(), now.now());
        }
    }

    fn return_permit(&mut self, permit: &BudgetPermit, method: &str) {
        if self.outstanding.remove(&permit.0).is_none() {
            self.problems.push(format!("{method}: permit {} is not outstanding", permit.0));
        }
        self.events.push(format!("{method} {}", permit.0));
    }
}

impl Budget for RecordingBudget {
    fn on_first_attempt(&self, now: &dyn Now) -> BudgetPermit {
        self.with_inner(|inner| inner.events.push("on_first_attempt".into()));
        self.grant("first attempt", now)
    }

    fn try_acquire(&self, kind: FailureKind, now: &dyn Now) -> Option<BudgetPermit> {
        self.with_inner(|inner| inner.events.push(format!("try_acquire {kind:?}")));
        if self.with_inner(|inner| inner.rejects) { None } else { Some(self.grant("retry", now)) }
    }

    fn record(&self, permit: BudgetPermit, outcome: &Outcome, now: &dyn Now) {
        self.with_inner(|inner| {
            inner.read_clock(now);
            let health = outcome.verdict();
            inner.return_permit(&permit, "record");
            if let Some(event) = inner.events.last_mut() {
                event.push_str(&format!(" {health:?}"));
            }
        });
    }

    fn release(&self, permit: BudgetPermit) {
        self.with_inner(|inner| inner.return_permit(&permit, "release"));
    }
}

/// A clock that does not advance by itself and counts how often it is read.
pub(crate) struct CountingClock {
    now: Cell<Instant>,
    count: Cell<u32>,
}

impl CountingClock {
    pub(crate) const fn at(now: Instant) -> Self {
        Self { now: Cell::new(now), count: Cell::new(0) }
    }

    /// Returns a closure that reads the clock, to pass to a machine.
    pub(crate) fn reader(&self) -> impl FnOnce() -> Instant + '_ {
        || {
            self.count.set(self.count.get() + 1);
            self.now.get()
        }
    }

    /// Returns the number of reads since the previous call.
    pub(crate) fn take_reads(&self) -> u32 {
        self.count.replace(0)
    }

    pub(crate) fn set(&self, now: Instant) {
        self.now.set(now);
    }
}
