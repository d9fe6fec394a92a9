use core::time::Duration;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};

use stagger::breaker::{BreakerState, CircuitBreaker};
use stagger::guard::{Answer, Ask, End, Permit};
use stagger::testing::{NoSleep, Script};
use stagger::time::Sleep;
use stagger::{FailureKind, Guard, Instant, Jitter, Outcome, Policy, Retrier, Seed, policy, scope};

use super::Driver;
use super::budgets::{AttemptCounts, BudgetCase};
use crate::suite::support::{Fail, HoldsOnce, Traced, ms};

pub(super) const POLICY: Policy = policy!(constant(ms(10)).local_base(ms(10)).jitter(Jitter::None).max_attempts(4));
/// Duration of an attempt.
pub(super) const ATTEMPT: Duration = ms(2);

/// The function that panics, and at which call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PanicPoint {
    None,
    /// The operation, before it returns the future of the attempt.
    BeforeFuture(u64),
    /// The attempt, after its sleep.
    Attempt(u64),
    /// The classifier of the error.
    Classifier(u64),
    /// The event listener.
    Listener(u64),
}

/// The guards of a call, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    /// The budget.
    One,
    /// A breaker and the budget.
    Two,
    /// A guard that lets every attempt wait once, a breaker and the budget.
    Three,
    /// Also one behind the budget.
    Four,
}

/// A budget and other guards for one call, and an operation that fails every time.
pub(super) struct Fixture {
    driver: Driver,
    kind: FailureKind,
    panic_point: PanicPoint,
    budget_case: BudgetCase,
    list: List,
    holds_once: Arc<HoldsOnce>,
    last: Arc<Traced>,
    breaker: Arc<CircuitBreaker>,
    idle_state: BreakerState,
    counts: Mutex<Counts>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    attempts: AttemptCounts,
    classified: u64,
    events: u64,
}

impl Fixture {
    pub(super) fn new(
        driver: Driver,
        budget_case: BudgetCase,
        list: List,
        kind: FailureKind,
        panic_point: PanicPoint,
    ) -> Self {
        // Local failures do not change the state of a half-open breaker, so every attempt is a probe.
        let (breaker, idle_state) = match kind {
            FailureKind::LocalExhaustion => (half_open(), BreakerState::HalfOpen),
            _ => (CircuitBreaker::builder(Seed::new(1)).consecutive(99).build().unwrap(), BreakerState::Closed),
        };
        Self {
            driver,
            kind,
            panic_point,
            budget_case,
            list,
            holds_once: Arc::default(),
            last: Arc::new(Traced::new("last", &Arc::default())),
            breaker: Arc::new(breaker),
            idle_state,
            counts: Mutex::default(),
        }
    }

    /// Returns the guards, in their order.
    pub(super) fn guards(&self) -> Vec<Arc<dyn Guard>> {
        let (holds_once, breaker) = (self.holds_once.clone(), self.breaker.clone());
        let budget = Arc::clone(&self.budget_case.budget);
        match self.list {
            List::One => vec![budget],
            List::Two => vec![breaker, budget],
            List::Three => vec![holds_once, breaker, budget],
            List::Four => vec![holds_once, breaker, budget, self.last.clone()],
        }
    }

    pub(super) fn budget(&self) -> &dyn Guard {
        &*self.budget_case.budget
    }

    /// Returns a retrier that has nothing but the guards.
    pub(super) fn guarded(&self) -> Retrier {
        self.guards().into_iter().fold(Retrier::new(POLICY), Retrier::shared_guard)
    }

    pub(super) fn retrier(self: &Arc<Self>) -> Retrier {
        let (classifier, listener) = (Arc::clone(self), Arc::clone(self));
        self.guarded().classify(move |error: &Fail| classifier.classify(error)).on_event(move |_| listener.listen())
    }

    /// Starts an attempt that sleeps and fails.
    pub(super) fn attempt<T: Sleep>(&self, timer: &T) -> impl Future<Output = Result<(), Fail>> + use<'_, T> {
        let (number, sleep) = (self.begin(), timer.sleep(ATTEMPT));
        async move {
            sleep.await;
            self.finish(number)
        }
    }

    /// Makes an attempt that fails at once.
    pub(super) fn blocking_attempt(&self) -> Result<(), Fail> {
        let number = self.begin();
        self.finish(number)
    }

    fn begin(&self) -> u64 {
        let attempts = self.count(|counts| {
            counts.attempts.total += 1;
            // A queue makes the first attempts of all items before it retries any.
            counts.attempts.firsts = counts.attempts.total.min(self.driver.calls());
            counts.attempts
        });
        self.panic_if(PanicPoint::BeforeFuture(attempts.total));
        attempts.total
    }

    fn finish(&self, number: u64) -> Result<(), Fail> {
        self.panic_if(PanicPoint::Attempt(number));
        Err(Fail(Outcome::Failed { kind: self.kind, hint: None }))
    }

    pub(super) fn classify(&self, error: &Fail) -> Outcome {
        let classified = self.count(|counts| {
            counts.classified += 1;
            counts.classified
        });
        self.panic_if(PanicPoint::Classifier(classified));
        self.count(|counts| counts.attempts.server_failures += u64::from(self.kind == FailureKind::Transient));
        error.outcome()
    }

    pub(super) fn listen(&self) {
        let events = self.count(|counts| {
            counts.events += 1;
            counts.events
        });
        self.panic_if(PanicPoint::Listener(events));
    }

    pub(super) fn attempts(&self) -> u64 {
        self.count(|counts| counts.attempts.total)
    }

    /// Asserts that no permit is outstanding, that only started attempts are charged, and that the next call is retried
    /// and succeeds.
    pub(super) fn expect_settled(&self, how: impl core::fmt::Debug) {
        let what = (self.driver, self.kind, self.panic_point, how);
        let attempts = self.count(|counts| counts.attempts);
        self.budget_case.expect(attempts, &what);
        let breaker = self.breaker.snapshot(&Instant::ZERO);
        assert_eq!((breaker.state, breaker.probes), (self.idle_state, 0), "{}, {what:?}", self.budget_case.name);
        let others = (self.holds_once.in_flight(), self.last.in_flight());
        assert_eq!(others, (0, 0), "{:?}, {what:?}", self.list);
        assert_eq!(scope::depth(), 0, "{what:?}: the attempt scope has ended");
        self.expect_usable(&what);
    }

    fn expect_usable(&self, what: impl core::fmt::Debug) {
        let before = self.count(|counts| counts.attempts);
        let mut script =
            Script::new([Err(Fail(Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None })), Ok(())]);
        let retrier = self.guarded().classify(Fail::outcome);
        let report = retrier.blocking_call(|_| script.next(Fail::TRANSIENT)).timer(NoSleep).with_report().run();
        assert_eq!(
            (report.result.is_ok(), report.attempts),
            (true, 2),
            "{}, {what:?}, {before:?}",
            self.budget_case.name
        );
        let is_asked = self.list != List::One;
        let want = if is_asked { BreakerState::Closed } else { self.idle_state };
        assert_eq!((self.breaker.state(), self.breaker.snapshot(&Instant::ZERO).probes), (want, 0));
    }

    fn count<R>(&self, update: impl FnOnce(&mut Counts) -> R) -> R {
        update(&mut self.counts.lock().unwrap())
    }

    /// Panics at `point` if it is the configured one, without calling the panic hook.
    fn panic_if(&self, point: PanicPoint) {
        if self.panic_point == point {
            resume_unwind(Box::new("on purpose"));
        }
    }
}

/// Returns a half-open breaker with two free probes.
fn half_open() -> CircuitBreaker {
    let open = Policy::constant(ms(1)).jitter(Jitter::None).build().unwrap();
    let breaker =
        CircuitBreaker::builder(Seed::new(1)).consecutive(1).probes(2).healthy_probes(1).open(open).build().unwrap();
    let (before, after) = (Instant::ZERO, Instant::ZERO.saturating_add(ms(1)));
    for (at, outcome) in [(before, Outcome::TRANSIENT), (after, Outcome::Cancelled)] {
        let Answer::Go(permit) = breaker.ask(Ask::FIRST, Permit::NONE, &at) else { panic!("it rejects") };
        breaker.settle(permit, End::Made(&outcome), &at);
    }
    breaker
}
