use core::time::Duration;
use std::collections::HashSet;
use std::sync::Mutex;

use stagger_core::{Breaker, BreakerOpen, Outcome, guard::BreakerPermit, guard::Now};

/// A breaker that does as it is told, numbers its passes and keeps book of what comes back.
#[derive(Debug, Default)]
pub(crate) struct Watch(Mutex<Book>);

#[derive(Debug, Default)]
struct Book {
    last: u64,
    out: HashSet<u64>,
    refuses: bool,
    /// Refuses attempts that start after a wait longer than this, or any if it is zero.
    refuses_from: Option<Duration>,
    reads_clock: bool,
    peeks: Vec<Duration>,
    records: Vec<(u64, Outcome)>,
    faults: Vec<String>,
}

impl Watch {
    /// How long it says that it stays open.
    const OPEN: Duration = Duration::from_secs(1);

    /// A breaker that asks for the time whenever it can.
    pub(crate) fn with_clock() -> Self {
        Self(Mutex::new(Book { reads_clock: true, ..Book::default() }))
    }

    /// Whether attempts may start now.
    pub(crate) fn set_open(&self, open: bool) {
        self.book(|book| book.refuses = open);
    }

    /// From which wait on a later attempt would be refused.
    pub(crate) fn set_refuses_from(&self, wait: Option<Duration>) {
        self.book(|book| book.refuses_from = wait);
    }

    /// The waits that it was asked about since the last time of asking.
    pub(crate) fn peeks(&self) -> Vec<Duration> {
        self.book(|book| core::mem::take(&mut book.peeks))
    }

    /// What it was told since the last time of asking.
    pub(crate) fn records(&self) -> Vec<(u64, Outcome)> {
        self.book(|book| core::mem::take(&mut book.records))
    }

    /// How many passes are out.
    pub(crate) fn out(&self) -> usize {
        self.book(|book| book.out.len())
    }

    /// Every pass was recorded once, and nothing that was not given.
    pub(crate) fn assert_balanced(&self) {
        self.book(|book| assert!(book.faults.is_empty() && book.out.is_empty(), "{book:#?}"));
    }

    pub(crate) fn faults(&self) -> Vec<String> {
        self.book(|book| book.faults.clone())
    }

    fn book<R>(&self, f: impl FnOnce(&mut Book) -> R) -> R {
        f(&mut self.0.lock().unwrap())
    }
}

impl Book {
    fn look(&self, now: &dyn Now) {
        if self.reads_clock {
            assert_eq!(now.now(), now.now());
        }
    }
}

impl Breaker for Watch {
    fn admit(&self, now: &dyn Now) -> Result<BreakerPermit, BreakerOpen> {
        self.book(|book| {
            book.look(now);
            if book.refuses {
                return Err(BreakerOpen { retry_in: Self::OPEN });
            }
            book.last += 1;
            book.out.insert(book.last);
            Ok(BreakerPermit(book.last))
        })
    }

    fn retry_in(&self, now: &dyn Now) -> Duration {
        self.book(|book| {
            book.look(now);
            if book.refuses { Self::OPEN } else { Duration::ZERO }
        })
    }

    fn would_reject(&self, after: Duration, now: &dyn Now) -> bool {
        self.book(|book| {
            book.look(now);
            book.peeks.push(after);
            book.refuses_from.is_some_and(|from| after >= from)
        })
    }

    fn record(&self, pass: BreakerPermit, outcome: &Outcome, now: &dyn Now) {
        self.book(|book| {
            book.look(now);
            if !book.out.remove(&pass.0) {
                book.faults.push(format!("pass {} came back, but is not out", pass.0));
            }
            book.records.push((pass.0, *outcome));
        });
    }
}
