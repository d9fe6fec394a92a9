use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};

use stagger::guard::{BudgetPermit, Now};
use stagger::{Budget, FailureKind, Outcome};

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
