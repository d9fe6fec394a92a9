//! A budget and a breaker whose answers come from the fuzzer and that count permits.

use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use core::time::Duration;

use stagger_core::{Breaker, BreakerOpen, Budget, Kind, Loan, Now, Outcome, Pass};

/// A guard that grants or rejects by the bits of a number, one after another, and counts outstanding permits.
#[derive(Debug, Default)]
pub(crate) struct FuzzedGuard {
    answers: AtomicU64,
    outstanding: AtomicI64,
}

impl FuzzedGuard {
    pub(crate) fn new(answers: u64) -> Self {
        Self { answers: AtomicU64::new(answers), ..Self::default() }
    }

    /// Returns the number of permits that were granted and not returned.
    pub(crate) fn outstanding(&self) -> i64 {
        self.outstanding.load(Ordering::Relaxed)
    }

    fn next_answer(&self) -> bool {
        let answers = self.answers.load(Ordering::Relaxed);
        self.answers.store(answers.rotate_right(1), Ordering::Relaxed);
        answers & 1 == 1
    }

    fn lend(&self) -> u64 {
        self.outstanding.fetch_add(1, Ordering::Relaxed);
        1
    }

    /// Takes a permit back. A permit that no guard granted counts as 0.
    fn settle(&self, lent: u64) {
        self.outstanding.fetch_sub(lent.cast_signed(), Ordering::Relaxed);
    }
}

impl Budget for FuzzedGuard {
    fn first(&self, _: &dyn Now) -> Loan {
        Loan(self.lend())
    }

    fn lend(&self, _: Kind, now: &dyn Now) -> Option<Loan> {
        now.now();
        self.next_answer().then(|| Loan(Self::lend(self)))
    }

    fn settle(&self, loan: Loan, _: &Outcome, _: &dyn Now) {
        Self::settle(self, loan.0);
    }

    fn give_back(&self, loan: Loan) {
        Self::settle(self, loan.0);
    }
}

impl Breaker for FuzzedGuard {
    fn admit(&self, now: &dyn Now) -> Result<Pass, BreakerOpen> {
        now.now();
        if self.next_answer() { Ok(Pass(self.lend())) } else { Err(BreakerOpen { retry_in: Duration::from_secs(1) }) }
    }

    fn would_refuse(&self, _: Duration, _: &dyn Now) -> bool {
        !self.next_answer()
    }

    fn retry_in(&self, now: &dyn Now) -> Duration {
        now.now();
        Duration::from_secs(1)
    }

    fn record(&self, pass: Pass, _: &Outcome, _: &dyn Now) {
        Self::settle(self, pass.0);
    }
}
