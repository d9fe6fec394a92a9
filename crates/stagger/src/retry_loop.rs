use core::convert::Infallible;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};

use pin_project_lite::pin_project;

use crate::call::{Attempt, Call, Next};
use crate::error::{Error, Rejected};
use crate::event::Sink;
use crate::fairness;
use crate::rule::Rule;
use crate::scope::Mark;
use crate::setup::{self, Ending, Extras, Guarded, Setup};
use crate::{Budget, Outcome, Policy, StopReason, time::Sleep};

/// A call that is retried by a loop of the caller's own.
///
/// It lends anything, needs no closure, and leaves `?` and `break` to the loop:
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
/// Dropping it, or the future of an attempt, ends the call: cancel-safe. After its end it begins a new call.
#[must_use = "a call does nothing until `attempt`"]
pub struct RetryLoop<'p, T: Sleep, X: Extras, R> {
    call: Call<&'p Policy, T, X>,
    rule: R,
    sleeping: Option<T::Sleeping>,
    stage: Stage,
}

/// Where a call by hand stands between two attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nothing has happened, or the last call has come to its end.
    Fresh,
    /// The coming attempt has been let through already.
    Begun,
}

impl<T: Sleep, X: Extras, R> fmt::Debug for RetryLoop<'_, T, X, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryLoop").field("attempt", &self.call.attempt()).finish_non_exhaustive()
    }
}

impl<'p, T: Sleep, X: Extras, R> RetryLoop<'p, T, X, R> {
    pub(crate) const fn new(call: Call<&'p Policy, T, X>, rule: R) -> Self {
        Self { call, rule, sleeping: None, stage: Stage::Fresh }
    }

    /// The attempts made so far.
    pub const fn attempts(&self) -> u32 {
        self.call.attempt()
    }

    /// Makes one attempt with this future. `Some` is the end of the call; `None` means that the attempt failed, the
    /// sleep is over, and the next one is due.
    pub async fn attempt<F, V, E>(&mut self, attempt: F) -> Option<Result<V, Error<E>>>
    where
        F: Future<Output = Result<V, E>>,
        X: Sink<E>,
        R: Rule<E>,
    {
        self.attempt_with(|_| attempt).await
    }

    /// The same, with a future that is made when the attempt is due, and told which one it is.
    pub(crate) async fn attempt_with<F, V, E>(&mut self, make: impl FnOnce(Attempt) -> F) -> Option<Result<V, Error<E>>>
    where
        F: Future<Output = Result<V, E>>,
        X: Sink<E>,
        R: Rule<E>,
    {
        let unfinished = Unfinished(self);
        let hand = &mut *unfinished.0;
        if hand.stage == Stage::Fresh {
            hand.call.restart();
            let ask = hand.call.start(hand.call.clock.resolution());
            hand.sleep(ask).await;
            if let Err(end) = hand.begin(None) {
                return Some(Err(end));
            }
        }
        hand.stage = Stage::Fresh;
        hand.call.stands_at(setup::Stage::Attempting);
        let limit = if X::LIMITS { hand.call.time_limit() } else { None };
        let future = make(Attempt::of(&hand.call, limit));
        let limit = limit.map(|limit| hand.call.clock.sleep(limit));
        let (outcome, error) = match (Bounded { future, limit, policy: hand.call.policy() }).await {
            Some(Ok(value)) => {
                hand.call.succeeded::<E>();
                return Some(Ok(value));
            }
            Some(Err(error)) => (hand.rule.outcome(&error), Some(error)),
            None => (Outcome::TRANSIENT, None),
        };
        match hand.call.failed(outcome, error.as_ref(), hand.call.clock.resolution()) {
            Next::Stop(stop) => Some(Err(hand.end(stop, error, Rejected::TimedOut))),
            Next::Wait(ask) => {
                hand.sleep(ask).await;
                // The breaker is asked while the last error is still at hand.
                hand.begin(error).err().map(Err)
            }
        }
    }

    fn begin<E>(&mut self, last: Option<E>) -> Result<(), Error<E>>
    where
        X: Sink<E>,
    {
        match self.call.begin() {
            Ok(()) => {
                self.stage = Stage::Begun;
                self.call.stands_at(setup::Stage::LetIn);
                Ok(())
            }
            Err(stop) => {
                self.call.refused::<E>(stop);
                let why = Rejected::BreakerOpen(self.call.breaker_open());
                Err(self.end(stop, last, why))
            }
        }
    }

    fn end<E>(&mut self, stop: StopReason, last: Option<E>, why: Rejected) -> Error<E> {
        let ending = last.map_or(Ending::Refused(why), Ending::Failed);
        match self.call.end::<Infallible, _, _>(Err((stop, ending))).explained() {
            Err(error) => error,
            Ok(never) => match never {},
        }
    }

    async fn sleep(&mut self, ask: core::time::Duration) {
        if ask.is_zero() {
            return fairness::take_turns(self.attempts()).await;
        }
        let mut left = Some(ask);
        while let Some(length) = left {
            match &mut self.sleeping {
                Some(sleeping) => self.call.clock.rearm(sleeping, length),
                None => self.sleeping = Some(self.call.clock.sleep(length)),
            }
            if let Some(sleeping) = &mut self.sleeping {
                sleeping.await;
            }
            left = self.call.left();
        }
    }
}

/// More about the guards.
impl<'p, T, S, L, Y, M, R> RetryLoop<'p, T, Setup<S, Guarded<'p, T>, L, Y, M>, R>
where
    T: Sleep,
    Setup<S, Guarded<'p, T>, L, Y, M>: Extras,
{
    /// This budget pays for this call, in place of the one that the other calls have. Before the first attempt.
    pub fn budget(self, budget: &'p dyn Budget) -> Self {
        let (policy, timer, mut setup) = self.call.into_parts();
        setup.guards.guards.budget = Some(budget);
        Self::new(Call::new(policy, timer, setup), self.rule)
    }
}

/// A call while the future of an attempt lives: dropped in the middle of it, it gives back what it has borrowed.
struct Unfinished<'a, 'p, T: Sleep, X: Extras, R>(&'a mut RetryLoop<'p, T, X, R>);

impl<T: Sleep, X: Extras, R> Drop for Unfinished<'_, '_, T, X, R> {
    fn drop(&mut self) {
        if self.0.stage == Stage::Fresh {
            self.0.call.let_go();
        }
    }
}

pin_project! {
    /// One attempt, marked as such, and with its limit of time: `None` when that is over.
    struct Bounded<'p, F, S> {
        #[pin]
        future: F,
        limit: Option<S>,
        policy: &'p Policy,
    }
}

impl<F: Future, S: Future<Output = ()> + Unpin> Future for Bounded<'_, F, S> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<F::Output>> {
        let this = self.project();
        let polled = {
            let _mark = Mark::deeper(this.policy);
            this.future.poll(cx)
        };
        match (polled, this.limit) {
            (Poll::Ready(out), _) => Poll::Ready(Some(out)),
            (Poll::Pending, Some(limit)) => Pin::new(limit).poll(cx).map(|()| None),
            (Poll::Pending, None) => Poll::Pending,
        }
    }
}

/// What an operation that borrows its context gives; it is there for every closure that fits.
///
/// It says of the closure what an `AsyncFnMut` bound does not: that the futures it gives are `Send`, where they are.
pub trait Lend<'a, C: ?Sized, Out>: sealed::Sealed<'a, C, Out> {
    /// The future of one attempt.
    type Future: Future<Output = Out>;

    /// Makes it.
    fn lend(&mut self, context: &'a mut C, attempt: Attempt) -> Self::Future;
}

impl<'a, C: ?Sized + 'a, Out, F, Fut> Lend<'a, C, Out> for F
where
    F: FnMut(&'a mut C, Attempt) -> Fut,
    Fut: Future<Output = Out>,
{
    type Future = Fut;

    fn lend(&mut self, context: &'a mut C, attempt: Attempt) -> Fut {
        self(context, attempt)
    }
}

mod sealed {
    use super::{Attempt, Future};

    /// Nobody else implements it.
    pub trait Sealed<'a, C: ?Sized, Out> {}

    impl<'a, C: ?Sized + 'a, Out, F, Fut> Sealed<'a, C, Out> for F
    where
        F: FnMut(&'a mut C, Attempt) -> Fut,
        Fut: Future<Output = Out>,
    {
    }
}
