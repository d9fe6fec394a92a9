use std::collections::HashMap;
use std::sync::Mutex;

use stagger_core::{Budget, FailureKind, Outcome, guard::BudgetPermit, guard::Now};

/// A budget that numbers what it lends and keeps book of what comes back.
#[derive(Debug, Default)]
pub(crate) struct Purse(Mutex<Book>);

#[derive(Debug, Default)]
struct Book {
    last: u64,
    out: HashMap<u64, &'static str>,
    tight: bool,
    reads_clock: bool,
    events: Vec<String>,
    faults: Vec<String>,
}

impl Purse {
    /// A budget that refuses every retry.
    pub(crate) fn tight() -> Self {
        let purse = Self::default();
        purse.set_tight(true);
        purse
    }

    /// A budget that asks for the time whenever it can.
    pub(crate) fn with_clock() -> Self {
        Self(Mutex::new(Book { reads_clock: true, ..Book::default() }))
    }

    pub(crate) fn set_tight(&self, tight: bool) {
        self.book(|book| book.tight = tight);
    }

    /// What was asked of it since the last time of asking, in order, like `lend Transient` and `settle 2 Success`.
    pub(crate) fn events(&self) -> Vec<String> {
        self.book(|book| core::mem::take(&mut book.events))
    }

    /// How many loans are out.
    pub(crate) fn out(&self) -> usize {
        self.book(|book| book.out.len())
    }

    /// Every loan was settled once, and nothing that was not lent.
    pub(crate) fn assert_balanced(&self) {
        self.book(|book| assert!(book.faults.is_empty() && book.out.is_empty(), "{book:#?}"));
    }

    pub(crate) fn faults(&self) -> Vec<String> {
        self.book(|book| book.faults.clone())
    }

    fn book<R>(&self, f: impl FnOnce(&mut Book) -> R) -> R {
        f(&mut self.0.lock().unwrap())
    }

    fn hand_out(&self, what: &'static str, now: &dyn Now) -> BudgetPermit {
        self.book(|book| {
            book.look(now);
            book.last += 1;
            book.out.insert(book.last, what);
            BudgetPermit(book.last)
        })
    }
}

impl Book {
    fn look(&self, now: &dyn Now) {
        if self.reads_clock {
            // Twice: a decision has one instant, however often it is asked for.
            assert_eq!(now.now(), now.now());
        }
    }

    fn back(&mut self, loan: &BudgetPermit, how: &str) {
        if self.out.remove(&loan.0).is_none() {
            self.faults.push(format!("loan {} came back ({how}), but is not out", loan.0));
        }
        self.events.push(format!("{how} {}", loan.0));
    }
}

impl Budget for Purse {
    fn on_first_attempt(&self, now: &dyn Now) -> BudgetPermit {
        self.book(|book| book.events.push("first".into()));
        self.hand_out("first", now)
    }

    fn try_acquire(&self, kind: FailureKind, now: &dyn Now) -> Option<BudgetPermit> {
        self.book(|book| book.events.push(format!("lend {kind:?}")));
        if self.book(|book| book.tight) { None } else { Some(self.hand_out("retry", now)) }
    }

    fn record(&self, loan: BudgetPermit, outcome: &Outcome, now: &dyn Now) {
        self.book(|book| {
            book.look(now);
            let verdict = outcome.verdict();
            book.back(&loan, "settle");
            if let Some(event) = book.events.last_mut() {
                event.push_str(&format!(" {verdict:?}"));
            }
        });
    }

    fn release(&self, loan: BudgetPermit) {
        self.book(|book| book.back(&loan, "give back"));
    }
}
