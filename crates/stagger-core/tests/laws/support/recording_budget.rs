use std::collections::HashMap;
use std::sync::Mutex;

use stagger_core::guard::{BudgetPermit, Now};
use stagger_core::{Budget, FailureKind, Outcome};

/// A budget that numbers its permits and records every call to it.
#[derive(Debug, Default)]
pub(crate) struct RecordingBudget(Mutex<Inner>);

#[derive(Debug, Default)]
struct Inner {
    last_id: u64,
    outstanding: HashMap<u64, &'static str>,
    rejects: bool,
    reads_clock: bool,
    events: Vec<String>,
    problems: Vec<String>,
}

impl RecordingBudget {
    /// Creates a budget that rejects every retry.
    pub(crate) fn rejecting() -> Self {
        let budget = Self::default();
        budget.set_rejects(true);
        budget
    }

    /// Creates a budget that reads the clock on every call that offers one.
    pub(crate) fn with_clock() -> Self {
        Self(Mutex::new(Inner { reads_clock: true, ..Inner::default() }))
    }

    pub(crate) fn set_rejects(&self, rejects: bool) {
        self.with_inner(|inner| inner.rejects = rejects);
    }

    /// Returns the calls since the previous `events()`, in order, such as `try_acquire Transient` and
    /// `record 2 Healthy`.
    pub(crate) fn events(&self) -> Vec<String> {
        self.with_inner(|inner| core::mem::take(&mut inner.events))
    }

    /// Returns the number of outstanding permits.
    pub(crate) fn outstanding(&self) -> usize {
        self.with_inner(|inner| inner.outstanding.len())
    }

    /// Panics unless every permit was returned exactly once, and only permits that were granted.
    pub(crate) fn assert_balanced(&self) {
        self.with_inner(|inner| assert!(inner.problems.is_empty() && inner.outstanding.is_empty(), "{inner:#?}"));
    }

    pub(crate) fn problems(&self) -> Vec<String> {
        self.with_inner(|inner| inner.problems.clone())
    }

    fn with_inner<R>(&self, f: impl FnOnce(&mut Inner) -> R) -> R {
        f(&mut self.0.lock().unwrap())
    }

    fn grant(&self, attempt: &'static str, now: &dyn Now) -> BudgetPermit {
        self.with_inner(|inner| {
            inner.read_clock(now);
            inner.last_id += 1;
            inner.outstanding.insert(inner.last_id, attempt);
            BudgetPermit(inner.last_id)
        })
    }
}

impl Inner {
    fn read_clock(&self, now: &dyn Now) {
        if self.reads_clock {
            // Repeated reads within one decision return the same instant.
            assert_eq!(now.now(), now.now());
        }
    }

    fn return_permit(&mut self, permit: &BudgetPermit, method: &str) {
        if self.outstanding.remove(&permit.0).is_none() {
            self.problems.push(format!("{method}: permit {} is not outstanding", permit.0));
        }
        self.events.push(format!("{method} {}", permit.0));
    }
}

impl Budget for RecordingBudget {
    fn on_first_attempt(&self, now: &dyn Now) -> BudgetPermit {
        self.with_inner(|inner| inner.events.push("on_first_attempt".into()));
        self.grant("first attempt", now)
    }

    fn try_acquire(&self, kind: FailureKind, now: &dyn Now) -> Option<BudgetPermit> {
        self.with_inner(|inner| inner.events.push(format!("try_acquire {kind:?}")));
        if self.with_inner(|inner| inner.rejects) { None } else { Some(self.grant("retry", now)) }
    }

    fn record(&self, permit: BudgetPermit, outcome: &Outcome, now: &dyn Now) {
        self.with_inner(|inner| {
            inner.read_clock(now);
            let health = outcome.verdict();
            inner.return_permit(&permit, "record");
            if let Some(event) = inner.events.last_mut() {
                event.push_str(&format!(" {health:?}"));
            }
        });
    }

    fn release(&self, permit: BudgetPermit) {
        self.with_inner(|inner| inner.return_permit(&permit, "release"));
    }
}
