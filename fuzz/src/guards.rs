//! A budget and a breaker that refuse as the fuzzer likes, and keep accounts.

use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use core::time::Duration;

use stagger_core::{Breaker, BreakerOpen, Budget, Kind, Loan, Now, Outcome, Pass};

/// Says yes or no by the bits that it is given, one after the other, and counts what is still out.
#[derive(Debug, Default)]
pub(crate) struct Whim {
    answers: AtomicU64,
    outstanding: AtomicI64,
}

impl Whim {
    pub(crate) fn new(answers: u64) -> Self {
        Self { answers: AtomicU64::new(answers), ..Self::default() }
    }

    /// What was lent and not settled.
    pub(crate) fn outstanding(&self) -> i64 {
        self.outstanding.load(Ordering::Relaxed)
    }

    fn yes(&self) -> bool {
        let answers = self.answers.load(Ordering::Relaxed);
        self.answers.store(answers.rotate_right(1), Ordering::Relaxed);
        answers & 1 == 1
    }

    fn lend(&self) -> u64 {
        self.outstanding.fetch_add(1, Ordering::Relaxed);
        1
    }

    /// A permit that nobody lent is settled too, and says so.
    fn settle(&self, lent: u64) {
        self.outstanding.fetch_sub(lent.cast_signed(), Ordering::Relaxed);
    }
}

impl Budget for Whim {
    fn first(&self, _: &dyn Now) -> Loan {
        Loan(self.lend())
    }

    fn lend(&self, _: Kind, now: &dyn Now) -> Option<Loan> {
        now.now();
        self.yes().then(|| Loan(Self::lend(self)))
    }

    fn settle(&self, loan: Loan, _: &Outcome, _: &dyn Now) {
        Self::settle(self, loan.0);
    }

    fn give_back(&self, loan: Loan) {
        Self::settle(self, loan.0);
    }
}

impl Breaker for Whim {
    fn admit(&self, now: &dyn Now) -> Result<Pass, BreakerOpen> {
        now.now();
        if self.yes() { Ok(Pass(self.lend())) } else { Err(BreakerOpen { retry_in: Duration::from_secs(1) }) }
    }

    fn would_refuse(&self, _: Duration, _: &dyn Now) -> bool {
        !self.yes()
    }

    fn retry_in(&self, now: &dyn Now) -> Duration {
        now.now();
        Duration::from_secs(1)
    }

    fn record(&self, pass: Pass, _: &Outcome, _: &dyn Now) {
        Self::settle(self, pass.0);
    }
}
