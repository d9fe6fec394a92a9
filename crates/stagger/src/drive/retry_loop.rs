//! A call whose loop is written by the caller.

use core::fmt;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::task::Poll;

use stagger_core::{Guard, Outcome};

use crate::call::machine::{Attempt, Call};
use crate::call::options::Configured;
use crate::call::output::Detailed;
use crate::call::poll::PollCall;
use crate::call::scope::ScopeGuard;
use crate::classify::marked::OperationError;
use crate::classify::rule::{BuiltIn, Rule};
use crate::error::call_error::{Cause, Error};
use crate::error::rejected::Rejected;
use crate::retrier::event::{EventError, Silent};
use crate::time::Sleep;

/// A call whose loop is written by the caller.
///
/// The operation may borrow anything, needs no closure, and can use `?` and `break`:
///
/// ```
/// # use stagger::{Error, Policy, Retrier, policy};
/// # struct Connection; impl Connection { async fn query(&mut self, _: &str) -> Result<u32, String> { Ok(7) } }
/// # const POLICY: Policy = policy!(exponential(ms(1), ms(10)));
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// # let (api, mut connection, sql) = (Retrier::new(POLICY), Connection, String::new());
/// let mut call = api.call();
/// let rows = loop {
///     if let Some(done) = call.attempt(connection.query(&sql)).await {
///         break done?;
///     }
/// };
/// # assert_eq!(rows, 7);
/// # Ok::<(), Error<String>>(()) }).unwrap();
/// ```
///
/// Dropping it, or the future of an attempt, ends the call: cancel-safe. After its end, the next attempt starts a new
/// call.
#[must_use = "a call does nothing until `attempt`"]
pub struct RetryLoop<'p, T: Sleep + Clone> {
    driver: PollCall<Configured<'p>, T>,
    /// The next attempt, which has been admitted already; `None` if the call has not started, or has ended.
    next: Option<Attempt>,
}

impl<T: Sleep + Clone> fmt::Debug for RetryLoop<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryLoop").field("attempt", &self.attempts()).finish_non_exhaustive()
    }
}

impl<'p, T: Sleep + Clone> RetryLoop<'p, T> {
    pub(crate) const fn new(options: Configured<'p>, timer: T) -> Self {
        Self { driver: PollCall::new(Call::new(options, timer)), next: None }
    }

    /// Adds a guard for this call only, behind those of the retrier. Comes before the first attempt.
    pub fn guard(mut self, guard: &'p dyn Guard) -> Self {
        self.driver.call.options.guards.push(guard);
        self
    }

    /// Returns the number of attempts made so far.
    pub const fn attempts(&self) -> u32 {
        self.driver.call.attempts()
    }

    /// Makes one attempt with this future. Returns `Some` when the call ends. `None` means that the attempt failed, the
    /// sleep is over, and the next attempt is due.
    pub async fn attempt<F, V, E>(&mut self, attempt: F) -> Option<Result<V, Error<E::Inner>>>
    where
        F: Future<Output = Result<V, E>>,
        E: OperationError<Inner: EventError>,
    {
        self.attempt_with(|_| attempt).await
    }

    /// Makes one attempt with a future that is created when the attempt is due.
    pub(crate) async fn attempt_with<F, V, E>(
        &mut self,
        make: impl FnOnce(Attempt) -> F,
    ) -> Option<Result<V, Error<E::Inner>>>
    where
        F: Future<Output = Result<V, E>>,
        E: OperationError<Inner: EventError>,
    {
        let guard = AttemptGuard(self);
        let Self { driver, next } = &mut *guard.0;
        let attempt = match next.take() {
            Some(attempt) => attempt,
            None => {
                driver.call.restart();
                match begin(driver, None).await {
                    Ok(attempt) => attempt,
                    Err(end) => return Some(Err(end)),
                }
            }
        };
        driver.call.attempting();
        let error = match timed(driver, make(attempt)).await {
            Some(Ok(value)) => {
                driver.call.succeeded(&Silent);
                return Some(Ok(value));
            }
            Some(Err(error)) => Some(error.into_parts()),
            None => None,
        };
        let rules = driver.call.rules();
        let (outcome, error) = match error {
            Some((error, mark)) => (mark.into().unwrap_or_else(|| BuiltIn.outcome(&error, rules)), Some(error)),
            None => (Outcome::TRANSIENT, None),
        };
        if let Some(stop) = driver.failed(&Silent, outcome, error.as_ref()) {
            let cause = Cause::last_or(error, Rejected::TimedOut);
            return driver.call.stopped::<Detailed, V, E::Inner>(cause, stop);
        }
        // The guards are asked here, while the last error is still available.
        match begin(driver, error).await {
            Ok(attempt) => {
                *next = Some(attempt);
                None
            }
            Err(end) => Some(Err(end)),
        }
    }
}

/// Waits for the next attempt, and begins it.
async fn begin<T: Sleep + Clone, E>(
    driver: &mut PollCall<Configured<'_>, T>,
    last: Option<E>,
) -> Result<Attempt, Error<E>> {
    poll_fn(|cx| driver.poll_begin(&Silent, cx)).await.map_err(|(stop, rejected)| {
        driver.call.emit_stop(&Silent, stop);
        driver.call.ended().error(Cause::last_or(last, rejected), stop)
    })
}

/// Runs one attempt inside its scope. Returns `None` if it exceeds its time limit.
async fn timed<T: Sleep + Clone, F: Future>(driver: &mut PollCall<Configured<'_>, T>, attempt: F) -> Option<F::Output> {
    let mut attempt = pin!(attempt);
    poll_fn(|cx| {
        let scope = ScopeGuard::enter(driver.call.policy());
        let polled = attempt.as_mut().poll(cx);
        drop(scope);
        match polled {
            Poll::Ready(out) => Poll::Ready(Some(out)),
            Poll::Pending => driver.poll_limit(cx).map(|()| None),
        }
    })
    .await
}

/// Ends the call if the future of its attempt is dropped.
struct AttemptGuard<'a, 'p, T: Sleep + Clone>(&'a mut RetryLoop<'p, T>);

impl<T: Sleep + Clone> Drop for AttemptGuard<'_, '_, T> {
    fn drop(&mut self) {
        if self.0.next.is_none() {
            self.0.driver.call.abandon();
        }
    }
}

/// An operation that borrows its context; implemented for every closure that fits.
///
/// Unlike an `AsyncFnMut` bound, it carries whether the returned futures are `Send`.
pub trait ContextOperation<'a, C: ?Sized, Out> {
    /// The future of one attempt.
    type Future: Future<Output = Out>;

    /// Starts one attempt.
    fn start(&mut self, context: &'a mut C, attempt: Attempt) -> Self::Future;
}

impl<'a, C: ?Sized + 'a, Out, F, Fut> ContextOperation<'a, C, Out> for F
where
    F: FnMut(&'a mut C, Attempt) -> Fut,
    Fut: Future<Output = Out>,
{
    type Future = Fut;

    fn start(&mut self, context: &'a mut C, attempt: Attempt) -> Fut {
        self(context, attempt)
    }
}
