use core::time::Duration;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard};

use stagger::{Breaker, BreakerOpen, Instant, Outcome, guard::BreakerPermit, guard::Now, guard::ServerHealth};

/// A breaker that opens for a while after so many failures in a row, and keeps books like a
/// [`Bank`](super::Bank).
#[derive(Debug)]
pub(crate) struct Gate {
    most: u32,
    open_for: Duration,
    books: Mutex<Passes>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Passes {
    failures: u32,
    open_until: Instant,
    given_out: u64,
    outstanding: BTreeSet<u64>,
    pub(crate) recorded: Vec<Outcome>,
}

impl Gate {
    pub(crate) fn new(most: u32, open_for: Duration) -> Self {
        Self { most, open_for, books: Mutex::default() }
    }

    /// Open from the beginning, for this long.
    pub(crate) fn open(open_for: Duration) -> Self {
        let gate = Self::new(u32::MAX, Duration::ZERO);
        gate.open_until(Instant::ZERO.saturating_add(open_for));
        gate
    }

    /// Opens it from outside.
    pub(crate) fn open_until(&self, until: Instant) {
        self.lock().open_until = until;
    }

    /// What the books say now.
    pub(crate) fn books(&self) -> Passes {
        self.lock().clone()
    }

    /// Attempts that were let in and have not come to their end.
    pub(crate) fn in_flight(&self) -> usize {
        self.lock().outstanding.len()
    }

    fn lock(&self) -> MutexGuard<'_, Passes> {
        self.books.lock().unwrap()
    }
}

impl Breaker for Gate {
    fn admit(&self, now: &dyn Now) -> Result<BreakerPermit, BreakerOpen> {
        let mut books = self.lock();
        let retry_in = books.open_until.saturating_since(now.now());
        if !retry_in.is_zero() {
            return Err(BreakerOpen { retry_in });
        }
        books.given_out += 1;
        let pass = books.given_out;
        books.outstanding.insert(pass);
        Ok(BreakerPermit(pass))
    }

    fn retry_in(&self, now: &dyn Now) -> Duration {
        self.lock().open_until.saturating_since(now.now())
    }

    fn would_reject(&self, after: Duration, now: &dyn Now) -> bool {
        self.lock().open_until > now.now().saturating_add(after)
    }

    fn record(&self, pass: BreakerPermit, outcome: &Outcome, now: &dyn Now) {
        let mut books = self.lock();
        assert!(books.outstanding.remove(&pass.0), "{pass:?} is recorded, but not outstanding: {books:?}");
        books.recorded.push(*outcome);
        match outcome.verdict() {
            ServerHealth::Healthy => books.failures = 0,
            ServerHealth::Ailing => books.failures += 1,
            ServerHealth::Unknown => {}
        }
        if books.failures >= self.most {
            books.failures = 0;
            books.open_until = now.now().saturating_add(self.open_for);
        }
    }
}
