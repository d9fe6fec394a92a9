//! Guards that record how they are used.

use core::time::Duration;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};

use stagger::guard::{BreakerPermit, BudgetPermit, Now, ServerHealth};
use stagger::{Breaker, BreakerOpen, Budget, FailureKind, Instant, Outcome};

/// A breaker that opens for a fixed time after a number of consecutive failures, and records its use as
/// [`RecordingBudget`](super::RecordingBudget) does.
#[derive(Debug)]
pub(crate) struct RecordingBreaker {
    threshold: u32,
    open_for: Duration,
    record: Mutex<BreakerRecord>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BreakerRecord {
    failures: u32,
    open_until: Instant,
    issued: u64,
    outstanding: BTreeSet<u64>,
    /// Outcomes of the admitted attempts.
    pub(crate) recorded: Vec<Outcome>,
}

impl RecordingBreaker {
    pub(crate) fn new(threshold: u32, open_for: Duration) -> Self {
        Self { threshold, open_for, record: Mutex::default() }
    }

    /// Creates a breaker that is open from the start, for `open_for`.
    pub(crate) fn open(open_for: Duration) -> Self {
        let breaker = Self::new(u32::MAX, Duration::ZERO);
        breaker.open_until(Instant::ZERO.saturating_add(open_for));
        breaker
    }

    /// Opens the breaker until `until`.
    pub(crate) fn open_until(&self, until: Instant) {
        self.lock().open_until = until;
    }

    /// Returns a copy of the record.
    pub(crate) fn snapshot(&self) -> BreakerRecord {
        self.lock().clone()
    }

    /// Returns the number of outstanding permits.
    pub(crate) fn in_flight(&self) -> usize {
        self.lock().outstanding.len()
    }

    fn lock(&self) -> MutexGuard<'_, BreakerRecord> {
        self.record.lock().unwrap()
    }
}

impl Breaker for RecordingBreaker {
    fn admit(&self, now: &dyn Now) -> Result<BreakerPermit, BreakerOpen> {
        let mut record = self.lock();
        let retry_in = record.open_until.saturating_since(now.now());
        if !retry_in.is_zero() {
            return Err(BreakerOpen { retry_in });
        }
        record.issued += 1;
        let permit = record.issued;
        record.outstanding.insert(permit);
        Ok(BreakerPermit(permit))
    }

    fn retry_in(&self, now: &dyn Now) -> Duration {
        self.lock().open_until.saturating_since(now.now())
    }

    fn would_reject(&self, after: Duration, now: &dyn Now) -> bool {
        self.lock().open_until > now.now().saturating_add(after)
    }

    fn record(&self, permit: BreakerPermit, outcome: &Outcome, now: &dyn Now) {
        let mut record = self.lock();
        assert!(record.outstanding.remove(&permit.0), "{permit:?} is not outstanding: {record:?}");
        record.recorded.push(*outcome);
        match outcome.verdict() {
            ServerHealth::Healthy => record.failures = 0,
            ServerHealth::Ailing => record.failures += 1,
            ServerHealth::Unknown => {}
        }
        if record.failures >= self.threshold {
            record.failures = 0;
            record.open_until = now.now().saturating_add(self.open_for);
        }
    }
}

/// A budget with a fixed number of retries that records its use.
///
/// Permits are numbered. Returning a permit that is not outstanding fails the test.
#[derive(Debug)]
pub(crate) struct RecordingBudget {
    record: Mutex<BudgetRecord>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BudgetRecord {
    /// Retries that can still be granted.
    pub(crate) retries_left: u64,
    issued: u64,
    outstanding: BTreeSet<u64>,
    /// Outcomes of the attempts that completed or were dropped.
    pub(crate) recorded: Vec<Outcome>,
    /// Number of permits whose attempts never started.
    pub(crate) released: u32,
}

impl RecordingBudget {
    pub(crate) fn new(retries: u64) -> Self {
        Self { record: Mutex::new(BudgetRecord { retries_left: retries, ..BudgetRecord::default() }) }
    }

    /// Returns a copy of the record.
    pub(crate) fn snapshot(&self) -> BudgetRecord {
        self.lock().clone()
    }

    /// Returns the number of outstanding permits.
    pub(crate) fn in_flight(&self) -> usize {
        self.lock().outstanding.len()
    }

    fn lock(&self) -> MutexGuard<'_, BudgetRecord> {
        self.record.lock().unwrap()
    }
}

impl BudgetRecord {
    fn issue(&mut self) -> BudgetPermit {
        self.issued += 1;
        self.outstanding.insert(self.issued);
        BudgetPermit(self.issued)
    }

    fn take_back(&mut self, permit: &BudgetPermit) {
        assert!(self.outstanding.remove(&permit.0), "{permit:?} is not outstanding: {self:?}");
    }
}

impl Budget for RecordingBudget {
    fn on_first_attempt(&self, _: &dyn Now) -> BudgetPermit {
        self.lock().issue()
    }

    fn try_acquire(&self, _: FailureKind, _: &dyn Now) -> Option<BudgetPermit> {
        let mut record = self.lock();
        record.retries_left = record.retries_left.checked_sub(1)?;
        Some(record.issue())
    }

    fn record(&self, permit: BudgetPermit, outcome: &Outcome, _: &dyn Now) {
        let mut record = self.lock();
        record.take_back(&permit);
        record.recorded.push(*outcome);
    }

    fn release(&self, permit: BudgetPermit) {
        let mut record = self.lock();
        record.take_back(&permit);
        record.retries_left += 1;
        record.released += 1;
    }

    fn available(&self) -> Option<u64> {
        Some(self.lock().retries_left)
    }
}
