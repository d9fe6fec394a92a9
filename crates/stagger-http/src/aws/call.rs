use core::fmt;
use core::task::{Context, Poll, Waker};
use core::time::Duration;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use aws_smithy_runtime_api::client::interceptors::context::{Error, InterceptorContext};
use aws_smithy_runtime_api::client::orchestrator::OrchestratorError;
use aws_smithy_types::config_bag::{Storable, StoreReplace};
use stagger::time::Clock;
use stagger::{Outcome, PollRetry, Rejected, Retrier};

use super::timer::{SdkTimer, SharedClock};
use crate::request::Idempotency;

/// The most polls after which an attempt whose wait is over has begun: one that starts the wait, one that yields, one
/// that ends it.
const POLLS: u32 = 4;

/// The calls in flight, by the address of their context, which is all that a classifier knows of a call. The call
/// itself is in the configuration of its execution, and dropped with it.
pub(super) struct Calls(Mutex<HashMap<Key, Weak<Call>>>);

/// The address of a context, which stays in place for as long as its execution lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key(usize);

impl Key {
    fn of(context: &InterceptorContext) -> Self {
        Self(core::ptr::from_ref(context).addr())
    }
}

impl Calls {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::default()))
    }

    /// Returns the call with this context.
    pub(super) fn of(&self, context: &InterceptorContext) -> Option<Arc<Call>> {
        self.lock().get(&Key::of(context))?.upgrade()
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.lock().len()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Key, Weak<Call>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call in flight: one execution of an operation.
pub(super) struct Call {
    key: Key,
    calls: Arc<Calls>,
    timer: SdkTimer,
    pub(super) idempotency: Idempotency,
    progress: Mutex<Progress>,
}

struct Progress {
    call: PollRetry<SdkTimer>,
    phase: Phase,
    /// The delay after which the next attempt follows, once it is decided.
    delay: Option<Duration>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Attempting,
    Ended,
}

impl Call {
    /// Creates the call with this context. `time` is the limit of the whole call; `target` selects its guards.
    pub(super) fn start(
        calls: &Arc<Calls>,
        context: &InterceptorContext,
        retrier: &Retrier,
        clock: SharedClock,
        time: Option<Duration>,
        target: &str,
        idempotency: Idempotency,
    ) -> CallInFlight {
        let timer = SdkTimer::new(clock);
        let deadline = time.map(|time| timer.now().saturating_add(time));
        let call = PollRetry::with_deadline(retrier, timer.clone(), deadline).target(target).reject_waits();
        let progress = Mutex::new(Progress { call, phase: Phase::Waiting, delay: None });
        let call = Arc::new(Self { key: Key::of(context), calls: Arc::clone(calls), timer, idempotency, progress });
        calls.lock().insert(call.key, Arc::downgrade(&call));
        CallInFlight(call)
    }

    /// Returns whether the call is one of these.
    pub(super) fn is_of(&self, calls: &Arc<Calls>) -> bool {
        Arc::ptr_eq(&self.calls, calls)
    }

    /// Begins the next attempt, whose delay has passed, if the guards admit it.
    pub(super) fn begin(&self) -> Result<(), Rejected> {
        let mut progress = self.lock();
        let cx = &mut Context::from_waker(Waker::noop());
        for _ in 0..POLLS {
            match progress.call.poll_begin(cx) {
                Poll::Ready(Ok(_)) => {
                    progress.call.attempt(|| ());
                    progress.phase = Phase::Attempting;
                    break;
                }
                Poll::Ready(Err(rejected)) => {
                    (progress.phase, progress.delay) = (Phase::Ended, None);
                    return Err(rejected);
                }
                Poll::Pending => self.timer.end_wait(),
            }
        }
        Ok(())
    }

    /// Records that the attempt succeeded.
    pub(super) fn succeeded(&self) {
        let mut progress = self.lock();
        if progress.phase == Phase::Attempting {
            progress.phase = Phase::Ended;
            progress.call.succeeded();
        }
    }

    /// Records that the attempt failed. Returns the delay after which another one follows, or `None` if none does.
    ///
    /// Only the first call for an attempt decides, and others return the same: the SDK asks its classifiers twice about
    /// some attempts, first to know whether the connection shall be used again.
    pub(super) fn failed(&self, outcome: Outcome, error: Option<&OrchestratorError<Error>>) -> Option<Duration> {
        let mut progress = self.lock();
        if progress.phase != Phase::Attempting {
            return progress.delay;
        }
        self.timer.begin_wait();
        let stop = progress.call.failed(outcome, error);
        (progress.phase, progress.delay) = match stop {
            None => (Phase::Waiting, Some(self.timer.asked())),
            Some(_) => (Phase::Ended, None),
        };
        progress.delay
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        let mut calls = self.calls.lock();
        // Another call may have the address by now.
        if calls.get(&self.key).is_some_and(|call| call.strong_count() == 0) {
            calls.remove(&self.key);
        }
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call").field("idempotency", &self.idempotency).finish_non_exhaustive()
    }
}

/// The call as the configuration of its execution owns it.
#[derive(Clone, Debug)]
pub(super) struct CallInFlight(pub(super) Arc<Call>);

impl Storable for CallInFlight {
    type Storer = StoreReplace<Self>;
}

#[cfg(test)]
mod tests {
    use aws_smithy_runtime_api::client::interceptors::context::Input;
    use stagger::guard::{Answer, Ask, End, Now, Permit, QuietPeriod};
    use stagger::time::SystemClock;
    use stagger::{FailureKind, Guard, Policy, policy};

    use super::*;

    const POLICY: Policy = policy!(exponential(secs(1), secs(60)).jitter(Jitter::None).max_attempts(4));

    fn start(calls: &Arc<Calls>, context: &InterceptorContext, retrier: &Retrier) -> CallInFlight {
        Call::start(calls, context, retrier, Arc::new(SystemClock), None, "S3", Idempotency::Declared)
    }

    #[test]
    fn a_call_waits_for_the_delays_of_its_policy_although_the_clock_stands_still() {
        let (calls, context) = (Calls::new(), InterceptorContext::new(Input::erase(())));
        let CallInFlight(call) = start(&calls, &context, &Retrier::new(POLICY));
        for seconds in [Some(1), Some(2), Some(4), None] {
            call.begin().unwrap();
            for _ in 0..2 {
                assert_eq!(
                    call.failed(Outcome::TRANSIENT, None),
                    seconds.map(Duration::from_secs),
                    "once for each attempt"
                );
            }
        }
    }

    #[test]
    fn a_call_does_not_wait_for_an_initial_spread_or_between_immediate_retries() {
        const SPREAD: Policy = policy!(zero().max_attempts(100).spread(secs(60)));
        let (calls, context) = (Calls::new(), InterceptorContext::new(Input::erase(())));
        let CallInFlight(call) = start(&calls, &context, &Retrier::new(SPREAD));
        for number in 1..=100 {
            call.begin().unwrap();
            let delay = call.failed(Outcome::Failed { kind: FailureKind::Transient, hint: None }, None);
            assert_eq!(delay, (number < 100).then_some(Duration::ZERO), "attempt {number}");
        }
    }

    /// A guard that lets all attempts wait.
    #[derive(Debug)]
    struct Full;

    impl Guard for Full {
        fn name(&self) -> &'static str {
            "full"
        }

        fn ask(&self, _: Ask, permit: Permit, _: &dyn Now) -> Answer {
            Answer::Wait { after: Duration::from_millis(1), permit }
        }

        fn settle(&self, _: Permit, _: End<'_>, _: &dyn Now) {}
    }

    /// An interceptor cannot wait.
    #[test]
    fn a_guard_that_would_let_an_attempt_wait_rejects_it() {
        let (calls, context) = (Calls::new(), InterceptorContext::new(Input::erase(())));
        let CallInFlight(call) = start(&calls, &context, &Retrier::new(POLICY).guard(Full));
        assert_eq!(call.begin(), Err(Rejected::ByGuard { guard: "full", retry_in: Duration::ZERO }));

        let quiet = Arc::new(QuietPeriod::new());
        let CallInFlight(call) = start(&calls, &context, &Retrier::new(POLICY).shared_guard(Arc::clone(&quiet) as _));
        call.begin().unwrap();
        assert_eq!(call.failed(Outcome::TRANSIENT, None), Some(Duration::from_secs(1)));
        quiet.pause(Duration::from_secs(60), &SystemClock.now());
        let rejected = call.begin().unwrap_err();
        let Rejected::ByGuard { guard: "quiet", retry_in } = rejected else { panic!("{rejected:?}") };
        assert!(retry_in > Duration::from_secs(50), "{retry_in:?}");
    }

    /// The time that is left limits the call, and is no wait.
    #[test]
    fn a_call_with_a_time_limit_waits_for_the_same_delays_within_it() {
        let (calls, context) = (Calls::new(), InterceptorContext::new(Input::erase(())));
        let limit = Some(Duration::from_secs(5));
        let CallInFlight(call) = Call::start(
            &calls,
            &context,
            &Retrier::new(POLICY),
            Arc::new(SystemClock),
            limit,
            "S3",
            Idempotency::Declared,
        );
        for seconds in [Some(1), Some(2), None] {
            call.begin().unwrap();
            assert_eq!(call.failed(Outcome::TRANSIENT, None), seconds.map(Duration::from_secs));
        }
    }

    #[test]
    fn a_call_is_found_by_its_context_until_it_is_dropped() {
        let (calls, retrier) = (Calls::new(), Retrier::new(POLICY));
        let contexts = [(), ()].map(|()| InterceptorContext::new(Input::erase(())));
        let calls_in_flight = [0, 1].map(|number: usize| start(&calls, &contexts[number], &retrier));
        for (context, CallInFlight(call)) in contexts.iter().zip(&calls_in_flight) {
            assert!(calls.of(context).is_some_and(|found| Arc::ptr_eq(&found, call)));
        }
        drop(calls_in_flight);
        assert!(calls.of(&contexts[0]).is_none());
        assert_eq!(calls.len(), 0, "a cancelled call leaves nothing behind");
    }

    #[test]
    fn a_call_that_replaces_another_one_is_found_after_that_is_dropped() {
        let (calls, retrier) = (Calls::new(), Retrier::new(POLICY));
        let context = InterceptorContext::new(Input::erase(()));
        let first = start(&calls, &context, &retrier);
        let second = start(&calls, &context, &retrier);
        drop(first);
        assert!(calls.of(&context).is_some_and(|found| Arc::ptr_eq(&found, &second.0)));
    }
}
