use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};

use stagger::{Budget, FailureKind, Outcome, guard::BudgetPermit, guard::Now};

/// A budget with so many loans, which keeps books: every loan has a number, and settling one that is not outstanding
/// fails the test.
#[derive(Debug)]
pub(crate) struct Bank {
    books: Mutex<Books>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Books {
    /// Retries that may still be paid for.
    pub(crate) funds: u64,
    given_out: u64,
    outstanding: BTreeSet<u64>,
    /// The outcomes of attempts that were brought to their end, or dropped before it.
    pub(crate) settled: Vec<Outcome>,
    /// Loans whose attempts were never made.
    pub(crate) returned: u32,
}

impl Bank {
    pub(crate) fn of(funds: u64) -> Self {
        Self { books: Mutex::new(Books { funds, ..Books::default() }) }
    }

    /// What the books say now.
    pub(crate) fn books(&self) -> Books {
        self.lock().clone()
    }

    /// Attempts for which something is lent and not yet settled.
    pub(crate) fn in_flight(&self) -> usize {
        self.lock().outstanding.len()
    }

    fn lock(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap()
    }
}

impl Books {
    fn open(&mut self) -> BudgetPermit {
        self.given_out += 1;
        self.outstanding.insert(self.given_out);
        BudgetPermit(self.given_out)
    }

    fn close(&mut self, loan: &BudgetPermit) {
        assert!(self.outstanding.remove(&loan.0), "{loan:?} is settled, but not outstanding: {self:?}");
    }
}

impl Budget for Bank {
    fn on_first_attempt(&self, _: &dyn Now) -> BudgetPermit {
        self.lock().open()
    }

    fn try_acquire(&self, _: FailureKind, _: &dyn Now) -> Option<BudgetPermit> {
        let mut books = self.lock();
        books.funds = books.funds.checked_sub(1)?;
        Some(books.open())
    }

    fn record(&self, loan: BudgetPermit, outcome: &Outcome, _: &dyn Now) {
        let mut books = self.lock();
        books.close(&loan);
        books.settled.push(*outcome);
    }

    fn release(&self, loan: BudgetPermit) {
        let mut books = self.lock();
        books.close(&loan);
        books.funds += 1;
        books.returned += 1;
    }

    fn available(&self) -> Option<u64> {
        Some(self.lock().funds)
    }
}
