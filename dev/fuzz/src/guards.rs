//! A budget and a breaker whose answers come from the fuzzer and that count permits.

use core::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use core::time::Duration;

use stagger_core::{
    Breaker, BreakerOpen, Budget, FailureKind, Outcome, guard::BreakerPermit, guard::BudgetPermit, guard::Now,
};

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

    fn grant(&self) -> u64 {
        self.outstanding.fetch_add(1, Ordering::Relaxed);
        1
    }

    /// Takes a permit back. A permit that no guard granted counts as 0.
    fn take_back(&self, granted: u64) {
        self.outstanding.fetch_sub(granted.cast_signed(), Ordering::Relaxed);
    }
}

impl Budget for FuzzedGuard {
    fn on_first_attempt(&self, _: &dyn Now) -> BudgetPermit {
        BudgetPermit(self.grant())
    }

    fn try_acquire(&self, _: FailureKind, now: &dyn Now) -> Option<BudgetPermit> {
        now.now();
        self.next_answer().then(|| BudgetPermit(self.grant()))
    }

    fn record(&self, permit: BudgetPermit, _: &Outcome, _: &dyn Now) {
        self.take_back(permit.0);
    }

    fn release(&self, permit: BudgetPermit) {
        self.take_back(permit.0);
    }
}

impl Breaker for FuzzedGuard {
    fn admit(&self, now: &dyn Now) -> Result<BreakerPermit, BreakerOpen> {
        now.now();
        if self.next_answer() {
            Ok(BreakerPermit(self.grant()))
        } else {
            Err(BreakerOpen { retry_in: Duration::from_secs(1) })
        }
    }

    fn would_reject(&self, _: Duration, _: &dyn Now) -> bool {
        !self.next_answer()
    }

    fn retry_in(&self, now: &dyn Now) -> Duration {
        now.now();
        Duration::from_secs(1)
    }

    fn record(&self, permit: BreakerPermit, _: &Outcome, _: &dyn Now) {
        self.take_back(permit.0);
    }
}
