use core::time::Duration;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex};

use stagger::breaker::{BreakerState, CircuitBreaker};
use stagger::testing::{NoSleep, Script};
use stagger::{
    Breaker as _, Budget, FailureKind, Guards, Instant, Jitter, Outcome, Policy, Retrier, Seed, blocking, policy,
    scope, time::Sleep,
};

use super::Driver;
use super::budgets::{Made, Watched};
use crate::suite::support::{Fail, ms};

pub(super) const POLICY: Policy = policy!(constant(ms(10)).local_base(ms(10)).jitter(Jitter::None).max_attempts(4));
/// How long an attempt takes.
pub(super) const ATTEMPT: Duration = ms(2);

/// What panics, and which time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    Nothing,
    /// The closure that makes an attempt.
    Making(u64),
    /// The attempt, halfway through.
    Attempt(u64),
    /// The rule that judges its error.
    Rule(u64),
    /// Somebody who is told of the decision.
    Listener(u64),
}

/// A budget and a breaker for one call, and an operation that fails every time.
pub(super) struct World {
    driver: Driver,
    kind: FailureKind,
    trouble: Trouble,
    watched: Watched,
    breaker: Arc<CircuitBreaker>,
    rest: BreakerState,
    counts: Mutex<Counts>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    made: Made,
    judged: u64,
    told: u64,
}

impl World {
    pub(super) fn new(driver: Driver, watched: Watched, kind: FailureKind, trouble: Trouble) -> Self {
        // Failures of our own leave a half-open breaker as it is, so that every attempt is a probe.
        let (breaker, rest) = match kind {
            FailureKind::LocalExhaustion => (half_open(), BreakerState::HalfOpen),
            _ => (CircuitBreaker::builder(Seed::new(1)).consecutive(99).build().unwrap(), BreakerState::Closed),
        };
        Self { driver, kind, trouble, watched, breaker: Arc::new(breaker), rest, counts: Mutex::default() }
    }

    pub(super) fn guards(&self) -> Guards<'_> {
        Guards::none().budget(&*self.watched.budget).breaker(&*self.breaker)
    }

    pub(super) fn budget(&self) -> &dyn Budget {
        &*self.watched.budget
    }

    pub(super) fn shared(&self) -> (Arc<dyn Budget>, Arc<CircuitBreaker>) {
        (Arc::clone(&self.watched.budget), Arc::clone(&self.breaker))
    }

    pub(super) fn retrier(self: &Arc<Self>) -> Retrier {
        let (judge, listener, (budget, breaker)) = (Arc::clone(self), Arc::clone(self), self.shared());
        let retrier = Retrier::new(POLICY).shared_budget(budget).shared_breaker(breaker);
        retrier.classify(move |error: &Fail| judge.judge(error)).on_event(move |_| listener.listen())
    }

    /// An attempt that takes its time.
    pub(super) fn attempt<T: Sleep>(&self, timer: &T) -> impl Future<Output = Result<(), Fail>> + use<'_, T> {
        let (number, sleep) = (self.begin(), timer.sleep(ATTEMPT));
        async move {
            sleep.await;
            self.finish(number)
        }
    }

    /// An attempt that takes none.
    pub(super) fn blocking_attempt(&self) -> Result<(), Fail> {
        let number = self.begin();
        self.finish(number)
    }

    fn begin(&self) -> u64 {
        let made = self.count(|counts| {
            counts.made.attempts += 1;
            // A queue makes the first attempts of all its items before the second one of any.
            counts.made.firsts = counts.made.attempts.min(self.driver.calls());
            counts.made
        });
        self.panic_if(Trouble::Making(made.attempts));
        made.attempts
    }

    fn finish(&self, number: u64) -> Result<(), Fail> {
        self.panic_if(Trouble::Attempt(number));
        Err(Fail(Outcome::Failed { kind: self.kind, hint: None }))
    }

    pub(super) fn judge(&self, error: &Fail) -> Outcome {
        let judged = self.count(|counts| {
            counts.judged += 1;
            counts.judged
        });
        self.panic_if(Trouble::Rule(judged));
        self.count(|counts| counts.made.ailing += u64::from(self.kind == FailureKind::Transient));
        error.outcome()
    }

    pub(super) fn listen(&self) {
        let told = self.count(|counts| {
            counts.told += 1;
            counts.told
        });
        self.panic_if(Trouble::Listener(told));
    }

    pub(super) fn attempts(&self) -> u64 {
        self.count(|counts| counts.made.attempts)
    }

    /// Nothing is borrowed any more, and nothing but attempts that were begun was paid for; and the next call is retried
    /// and succeeds.
    pub(super) fn expect_settled(&self, how: impl core::fmt::Debug) {
        let what = (self.driver, self.kind, self.trouble, how);
        let made = self.count(|counts| counts.made);
        self.watched.expect(made, &what);
        let breaker = self.breaker.snapshot(&Instant::ZERO);
        assert_eq!((breaker.state, breaker.probes), (self.rest, 0), "{}, {what:?}", self.watched.name);
        assert_eq!(scope::depth(), 0, "{what:?}: the mark of the attempt is gone");
        self.expect_of_use(&what);
    }

    fn expect_of_use(&self, what: impl core::fmt::Debug) {
        let before = self.count(|counts| counts.made);
        let mut script =
            Script::new([Err(Fail(Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None })), Ok(())]);
        let call = blocking::retry(&POLICY, || script.next(Fail::TRANSIENT)).timer(NoSleep).classify(Fail::outcome);
        let report = call.guards(self.guards()).with_report().run();
        assert_eq!((report.result.is_ok(), report.attempts), (true, 2), "{}, {what:?}, {before:?}", self.watched.name);
        assert_eq!((self.breaker.state(), self.breaker.snapshot(&Instant::ZERO).probes), (BreakerState::Closed, 0));
    }

    fn count<R>(&self, change: impl FnOnce(&mut Counts) -> R) -> R {
        change(&mut self.counts.lock().unwrap())
    }

    /// Without a word from the panic hook.
    fn panic_if(&self, now: Trouble) {
        if self.trouble == now {
            resume_unwind(Box::new("as it shall"));
        }
    }
}

/// With room for two probes, and none of them on its way.
fn half_open() -> CircuitBreaker {
    let open = Policy::constant(ms(1)).jitter(Jitter::None).build().unwrap();
    let breaker =
        CircuitBreaker::builder(Seed::new(1)).consecutive(1).probes(2).healthy_probes(1).open(open).build().unwrap();
    let (before, after) = (Instant::ZERO, Instant::ZERO.saturating_add(ms(1)));
    breaker.record(breaker.admit(&before).unwrap(), &Outcome::TRANSIENT, &before);
    breaker.record(breaker.admit(&after).unwrap(), &Outcome::Cancelled, &after);
    breaker
}
