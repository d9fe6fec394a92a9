//! A budget and a breaker that refuse as the fuzzer likes, and keep accounts.

use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use core::time::Duration;

use stagger_core::{
    Breaker, BreakerOpen, Budget, FailureKind, Outcome, guard::BreakerPermit, guard::BudgetPermit, guard::Now,
};

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

    fn try_acquire(&self) -> u64 {
        self.outstanding.fetch_add(1, Ordering::Relaxed);
        1
    }

    /// A permit that nobody lent is settled too, and says so.
    fn record(&self, lent: u64) {
        self.outstanding.fetch_sub(lent.cast_signed(), Ordering::Relaxed);
    }
}

impl Budget for Whim {
    fn on_first_attempt(&self, _: &dyn Now) -> BudgetPermit {
        BudgetPermit(self.try_acquire())
    }

    fn try_acquire(&self, _: FailureKind, now: &dyn Now) -> Option<BudgetPermit> {
        now.now();
        self.yes().then(|| BudgetPermit(Self::try_acquire(self)))
    }

    fn record(&self, loan: BudgetPermit, _: &Outcome, _: &dyn Now) {
        Self::record(self, loan.0);
    }

    fn release(&self, loan: BudgetPermit) {
        Self::record(self, loan.0);
    }
}

impl Breaker for Whim {
    fn admit(&self, now: &dyn Now) -> Result<BreakerPermit, BreakerOpen> {
        now.now();
        if self.yes() {
            Ok(BreakerPermit(self.try_acquire()))
        } else {
            Err(BreakerOpen { retry_in: Duration::from_secs(1) })
        }
    }

    fn would_reject(&self, _: Duration, _: &dyn Now) -> bool {
        !self.yes()
    }

    fn retry_in(&self, now: &dyn Now) -> Duration {
        now.now();
        Duration::from_secs(1)
    }

    fn record(&self, pass: BreakerPermit, _: &Outcome, _: &dyn Now) {
        Self::record(self, pass.0);
    }
}
