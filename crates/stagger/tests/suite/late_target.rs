//! [`PollRetry::late_target`]: a target is named, and has guards, only once a call to it has failed.

use core::sync::atomic::{AtomicU32, Ordering};
use core::task::{Context, Poll, Waker};
use std::sync::Arc;

use stagger::breaker::CircuitBreaker;
use stagger::budget::{Concurrent, Tokens};
use stagger::control::RetryControls;
use stagger::guard::{Answer, Ask, End, Now, Permit};
use stagger::testing::VirtualClock;
use stagger::{FailureKind, Guard, Outcome, Policy, PollRetry, Retrier, Seed, StopReason, policy};

const POLICY: Policy = policy!(constant(ms(100)).jitter(Jitter::None).max_attempts(3));
const BUSY: Outcome = Outcome::TRANSIENT;

type Call = PollRetry<VirtualClock>;

/// Allows two retries, and counts the budgets that are made with its settings.
#[derive(Debug)]
struct TwoRetries {
    tokens: Tokens,
    made: Arc<AtomicU32>,
}

impl TwoRetries {
    /// Returns a retrier with this budget, and the number of budgets made since.
    fn retrier() -> (Retrier, impl Fn() -> u32) {
        let made = Arc::new(AtomicU32::new(0));
        let tokens = Tokens::builder().capacity(10).cost(5).reward(5).build().unwrap();
        let retrier = Retrier::new(POLICY).budget(Self { tokens, made: Arc::clone(&made) });
        let before = made.load(Ordering::Relaxed);
        (retrier, move || made.load(Ordering::Relaxed) - before)
    }
}

impl Guard for TwoRetries {
    fn name(&self) -> &'static str {
        self.tokens.name()
    }

    fn ask(&self, ask: Ask, held: Permit, now: &dyn Now) -> Answer {
        self.tokens.ask(ask, held, now)
    }

    fn reserve(&self, kind: FailureKind, now: &dyn Now) -> Option<Permit> {
        self.tokens.reserve(kind, now)
    }

    fn settle(&self, permit: Permit, end: End<'_>, now: &dyn Now) {
        self.tokens.settle(permit, end, now);
    }

    fn is_at_rest(&self, now: &dyn Now) -> bool {
        self.tokens.is_at_rest(now)
    }

    fn needs_every_call(&self) -> bool {
        self.tokens.needs_every_call()
    }

    fn fresh(&self) -> Option<Self> {
        self.made.fetch_add(1, Ordering::Relaxed);
        Some(Self { tokens: self.tokens.fresh()?, made: Arc::clone(&self.made) })
    }
}

/// Starts a call to this target and makes its first attempt.
fn begun(retrier: &Retrier, target: &str) -> Call {
    let mut call = PollRetry::new(retrier, VirtualClock::new()).late_target(|| target.to_owned());
    begin(&mut call);
    call
}

fn begin(call: &mut Call) {
    let mut cx = Context::from_waker(Waker::noop());
    assert!(matches!(call.poll_begin(&mut cx), Poll::Ready(Ok(_))), "the attempt does not begin");
    call.attempt(|| ());
}

fn fail(call: &mut Call, target: &str) -> Option<StopReason> {
    call.failed_at::<(), _>(|| target, BUSY, None)
}

/// Makes a call to this target that fails until it stops, and returns why and after how many attempts.
fn fails_to(retrier: &Retrier, target: &str) -> (StopReason, u32) {
    let mut call = begun(retrier, target);
    loop {
        if let Some(stop) = fail(&mut call, target) {
            return (stop, call.attempts());
        }
        begin(&mut call);
    }
}

/// Makes a call to this target whose first attempt succeeds.
fn succeeds_at(retrier: &Retrier, target: &str) {
    begun(retrier, target).succeeded_at(|| target);
}

#[test]
fn late_targets_have_guards_of_their_own_with_the_settings_of_the_retrier() {
    let (retrier, _) = TwoRetries::retrier();
    for target in ["a", "b"] {
        assert_eq!(fails_to(&retrier, target), (StopReason::Attempts, 3), "{target}");
        assert_eq!(fails_to(&retrier, target), (StopReason::BUDGET, 1), "{target}");
    }
    // One success, one retry.
    succeeds_at(&retrier, "a");
    assert_eq!(fails_to(&retrier, "a"), (StopReason::BUDGET, 2));
    assert_eq!(fails_to(&retrier, "b"), (StopReason::BUDGET, 1));
    // A call that names its target at once has the same guards.
    let mut call = PollRetry::new(&retrier, VirtualClock::new()).target("b");
    begin(&mut call);
    assert_eq!(call.failed::<()>(BUSY, None), Some(StopReason::BUDGET));
}

#[test]
fn a_target_is_not_named_while_no_call_has_failed() {
    let retrier = Retrier::new(POLICY).budget(Tokens::new());
    let name = || -> &str { panic!("asked for the name") };
    let call = || {
        let mut call = PollRetry::new(&retrier, VirtualClock::new()).late_target(name);
        begin(&mut call);
        call
    };
    call().succeeded_at(name);
    // An answer, if not the wanted one: the server is healthy.
    assert_eq!(call().failed_at::<(), _>(name, Outcome::Permanent, None), Some(StopReason::Permanent));
    drop(call());
}

#[test]
fn a_target_is_named_at_once_if_its_guards_need_every_call() {
    let retrier = Retrier::new(POLICY);
    let full = || retrier.clone().budget(Tokens::new());
    let breaker = || CircuitBreaker::new(Seed::new(1));
    for (retrier, what) in [
        (retrier.clone().budget(Concurrent::new()), "a budget that counts calls"),
        (retrier.clone().budget(Tokens::builder().initial(499).build().unwrap()), "a budget that successes fill"),
        (full().breaker(breaker()), "a breaker"),
        (full().shared_guard(Arc::new(breaker())), "a shared breaker"),
        (full().controls(&RetryControls::new()), "operator controls"),
        (full().on_event(|_| {}), "a listener"),
    ] {
        let mut names = 0;
        let name = || {
            names += 1;
            "a"
        };
        let mut call = PollRetry::new(&retrier, VirtualClock::new()).late_target(name);
        begin(&mut call);
        let again = || -> &str { panic!("asked again: {what}") };
        assert_eq!(call.failed_at::<(), _>(again, BUSY, None), None, "{what}");
        assert_eq!(names, 1, "{what}");
    }
}

/// The success counts although its call began when the target had no guards.
#[test]
fn a_success_counts_for_a_target_that_failed_meanwhile() {
    let (retrier, _) = TwoRetries::retrier();
    let mut early = begun(&retrier, "a");
    assert_eq!(fails_to(&retrier, "a"), (StopReason::Attempts, 3));
    early.succeeded_at(|| "a");
    assert_eq!(fails_to(&retrier, "a"), (StopReason::BUDGET, 2));
}

#[test]
fn guards_are_made_by_failures_and_removed_when_they_are_at_rest() {
    let (retrier, made) = TwoRetries::retrier();
    for target in ["a", "b", "c"] {
        succeeds_at(&retrier, target);
    }
    assert_eq!(made(), 0);
    // A retry is charged, and its success pays it back.
    let mut call = begun(&retrier, "a");
    assert_eq!(fail(&mut call, "a"), None);
    assert_eq!(made(), 1);
    begin(&mut call);
    call.succeeded_at(|| "a");
    let mut other = begun(&retrier, "a");
    assert_eq!(fail(&mut other, "a"), None);
    assert_eq!(made(), 2, "the budget at rest is still there");
    // Spent budgets stay.
    let _ = fails_to(&retrier, "b");
    let _ = fails_to(&retrier, "b");
    succeeds_at(&retrier, "c");
    assert_eq!((fails_to(&retrier, "b").1, made()), (1, 3));
}

/// What another call holds is not removed: both would have a budget of their own.
#[test]
fn guards_that_another_call_holds_are_not_removed() {
    let (retrier, made) = TwoRetries::retrier();
    let mut held = begun(&retrier, "a");
    assert_eq!(fail(&mut held, "a"), None);
    succeeds_at(&retrier, "a");
    // At rest now, and held by the call that waits.
    assert_eq!(fails_to(&retrier, "a"), (StopReason::Attempts, 3));
    assert_eq!(made(), 1);
    begin(&mut held);
    assert_eq!(fail(&mut held, "a"), Some(StopReason::BUDGET));
}

#[test]
fn a_call_that_is_dropped_before_its_retry_releases_the_permit_of_its_late_target() {
    let (retrier, _) = TwoRetries::retrier();
    for begins in [false, true] {
        let mut call = begun(&retrier, "a");
        assert_eq!(fail(&mut call, "a"), None);
        if begins {
            begin(&mut call);
        }
    }
    // The second one was in flight: it stays charged.
    assert_eq!(fails_to(&retrier, "a"), (StopReason::BUDGET, 2));
}

/// Targets that anyone can make up neither reset the budget of another one nor leave theirs behind.
#[test]
fn made_up_targets_leave_a_spent_budget_and_no_guards() {
    let (retrier, made) = TwoRetries::retrier();
    assert_eq!(fails_to(&retrier, "a"), (StopReason::Attempts, 3));
    for n in 0..1_200 {
        let target = n.to_string();
        let mut call = begun(&retrier, &target);
        assert_eq!(fail(&mut call, &target), None, "there was no place for {n}");
        begin(&mut call);
        call.succeeded_at(|| target);
    }
    assert_eq!(made(), 1_201);
    assert_eq!(fails_to(&retrier, "a"), (StopReason::BUDGET, 1));
}

/// A driver that forgets the name does not retry without a bound.
#[test]
fn a_call_whose_target_is_never_named_uses_the_guards_of_the_retrier() {
    let (retrier, made) = TwoRetries::retrier();
    let mut retries = 0;
    for _ in 0..3 {
        let mut call = begun(&retrier, "a");
        while call.failed::<()>(BUSY, None).is_none() {
            retries += 1;
            begin(&mut call);
        }
    }
    assert_eq!((retries, made()), (2, 0));
}

/// A success without a name is not one of the retrier's own calls.
#[test]
fn a_success_without_a_name_changes_no_guard() {
    let (retrier, _) = TwoRetries::retrier();
    assert!(begun(&retrier, "a").failed::<()>(BUSY, None).is_none());
    let own = || fails_own(&retrier);
    assert_eq!(own(), (StopReason::Attempts, 3));
    begun(&retrier, "a").succeeded();
    assert_eq!(own(), (StopReason::BUDGET, 1));
}

/// Makes a call without a target that fails until it stops.
fn fails_own(retrier: &Retrier) -> (StopReason, u32) {
    let mut call = PollRetry::new(retrier, VirtualClock::new());
    loop {
        begin(&mut call);
        if let Some(stop) = call.failed::<()>(BUSY, None) {
            return (stop, call.attempts());
        }
    }
}
