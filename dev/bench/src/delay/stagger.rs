//! The cost of a next delay and of a complete decision in stagger.

use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use stagger_core::{
    Breaker, BreakerOpen, Budget, FailureKind, Guards, Instant, Jitter, Outcome, Policy, PolicyBuilder, Seed,
    guard::BreakerPermit, guard::BudgetPermit, guard::Now, guard::Permits, machine::Decision, machine::RetryMachine,
    machine::RetryState,
};

use super::session::{BASE, CAP, LENGTH, sessions};
use crate::case::{Case, Role, Table};

/// The row of the goals for policies built at run time.
pub(crate) const ANY_MULTIPLIER: &str = "full jitter, multiplier 1.7, policy built at run time";
/// The row of the goal for constant policies.
pub(crate) const CONSTANT: &str = "full jitter, `for delay in POLICY.delays(seed)`";
/// The row of the goal for complete decisions.
pub(crate) const GUARDED: &str = "complete decision, budget and breaker";

/// Allows one attempt more than a session has delays.
const POLICY: Policy = stagger_core::policy!(exponential(ms(100), secs(30)).max_attempts(9));

/// Returns the rows of this project.
pub(super) fn cases() -> Vec<Case> {
    let row = |name, run| Case::work(Table::Delay, Role::Stagger, name, run);
    vec![
        row(ANY_MULTIPLIER, |n| at_run_time(n, exponential().multiplier(1.7))),
        row("full jitter, multiplier 2, policy built at run time", |n| at_run_time(n, exponential())),
        row(CONSTANT, constant).note("const policy: the ceilings are known at compile time"),
        row("equal jitter, policy built at run time", |n| at_run_time(n, exponential().jitter(Jitter::Equal))),
        row("decorrelated jitter, policy built at run time", |n| at_run_time(n, Policy::decorrelated(BASE, CAP))),
        row("complete decision, no guards", |n| decisions(n, &Guards::none())),
        row(GUARDED, guarded).note("each guard is one atomic, behind `dyn`"),
    ]
}

const fn exponential() -> PolicyBuilder {
    Policy::exponential(BASE, CAP)
}

fn build(builder: PolicyBuilder) -> Policy {
    // Only invalid settings are rejected, and these are valid.
    builder.unlimited_attempts().build().expect("a valid policy")
}

fn at_run_time(iterations: u64, builder: PolicyBuilder) {
    let mut seed = black_box(7);
    sessions(iterations, &build(builder), |policy| {
        seed += 1;
        policy.schedule(Seed::new(seed))
    });
}

/// Draws delays in a loop as a user would write it.
fn constant(iterations: u64) {
    let mut seed = black_box(7);
    for _ in 0..iterations / LENGTH {
        seed += 1;
        for delay in POLICY.delays(Seed::new(seed)) {
            black_box(&delay);
        }
    }
}

/// Runs `begin` and `decide` for [`LENGTH`] attempts of a call that keeps failing.
fn decisions(iterations: u64, guards: &Guards<'_>) {
    let policy = build(exponential());
    let now = || Instant::ZERO;
    for seed in 0..iterations / LENGTH {
        let mut state = RetryState::new();
        let mut retry = RetryMachine::new(black_box(&policy), &mut state, Seed::new(seed));
        let mut permit = Permits::NONE;
        for _ in 0..black_box(LENGTH) {
            let Ok(granted) = retry.begin(permit, now, guards) else {
                return;
            };
            let outcome = Outcome::Failed { kind: black_box(FailureKind::Transient), hint: None };
            let decision = retry.decide(outcome, granted, now, guards);
            black_box(&decision);
            let Decision::Retry { permit: granted, .. } = decision else {
                return;
            };
            permit = granted;
        }
    }
}

fn guarded(iterations: u64) {
    let budget = CounterBudget(AtomicU64::new(1 << 40));
    let breaker = Closed(AtomicU64::new(0));
    decisions(iterations, black_box(&Guards::none().budget(&budget).breaker(&breaker)));
}

/// A budget that grants one retry per token and consists of a counter only.
#[derive(Debug)]
struct CounterBudget(AtomicU64);

impl Budget for CounterBudget {
    fn try_acquire(&self, _kind: FailureKind, _now: &dyn Now) -> Option<BudgetPermit> {
        self.0.fetch_sub(1, Ordering::Relaxed);
        Some(BudgetPermit(1))
    }

    fn record(&self, _permit: BudgetPermit, _outcome: &Outcome, _now: &dyn Now) {}

    fn release(&self, permit: BudgetPermit) {
        self.0.fetch_add(permit.0, Ordering::Relaxed);
    }
}

/// A breaker that checks whether it is open, and never is.
#[derive(Debug)]
struct Closed(AtomicU64);

impl Closed {
    fn is_open(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

impl Breaker for Closed {
    fn admit(&self, _now: &dyn Now) -> Result<BreakerPermit, BreakerOpen> {
        if self.is_open() {
            return Err(BreakerOpen { retry_in: Duration::ZERO });
        }
        Ok(BreakerPermit::NONE)
    }

    fn would_reject(&self, _after: Duration, _now: &dyn Now) -> bool {
        self.is_open()
    }

    fn retry_in(&self, _now: &dyn Now) -> Duration {
        Duration::ZERO
    }

    fn record(&self, _permit: BreakerPermit, _outcome: &Outcome, _now: &dyn Now) {}
}
