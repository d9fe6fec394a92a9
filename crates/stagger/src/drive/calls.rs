//! The calls that can be made through a retrier, in every form.

use super::blocking::BlockingRetry;
use super::future::{Operation, RetryFuture, Returned};
use super::retry_loop::{ContextOperation, RetryLoop};
use super::steps::Handlers;
use crate::call::machine::Attempt;
use crate::call::options::Configured;
use crate::call::output::Detailed;
use crate::classify::marked::OperationError;
use crate::classify::rule::{Plain, ResultReader};
use crate::error::call_error::Error;
use crate::retrier::event::EventError;
use crate::retrier::handle::Retrier;
use crate::retrier::shared::RetrierState;
use crate::time::{Sleep, ThreadSleep};

/// The future of a call made through a retrier.
type RetrierFuture<'a, F, T> = RetryFuture<F, T, &'a RetrierState, Handlers, Detailed>;

/// A blocking call made through a retrier.
type RetrierBlocking<'a, F, O> = BlockingRetry<F, O, ThreadSleep, &'a RetrierState, Handlers, Detailed>;

/// The calls that can be made through a retrier.
impl Retrier {
    /// Runs an async operation; see [`retry`](fn@crate::retry). Returns a future that is also a builder:
    /// `.with_report()`, `.with_inner_error()`, `.validate(..)`, `.deadline(..)` and `.cancelled_by(..)` can
    /// follow.
    #[cfg(feature = "tokio")]
    pub fn run<F>(&self, operation: F) -> RetrierFuture<'_, F, crate::time::Tokio>
    where
        F: Operation,
        Plain: ResultReader<Returned<F>>,
    {
        self.run_on(crate::time::Tokio, operation)
    }

    /// Runs an async operation with the given timer instead of tokio's; see [`run`](Self::run).
    pub fn run_on<F, T>(&self, timer: T, operation: F) -> RetrierFuture<'_, F, T>
    where
        F: Operation,
        T: Sleep + Clone,
        Plain: ResultReader<Returned<F>>,
    {
        RetryFuture::new(timer, self.shared(), operation)
    }

    /// Runs an async operation that borrows `context` mutably for each attempt.
    ///
    /// The future is `Send` if the operation's futures are, so it can be spawned whatever the operation borrows.
    ///
    /// # Errors
    /// Returns [`Error<E>`], with the last error, if the call gives up.
    ///
    /// ```
    /// # use stagger::{Policy, Retrier, policy};
    /// # const POLICY: Policy = policy!(exponential(ms(1), ms(10)));
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// let mut connection = vec![0];
    /// let answer = Retrier::new(POLICY)
    ///     .run_with(&mut connection, async |connection, attempt| {
    ///         connection.push(attempt.number);
    ///         if connection.len() < 4 { Err("not yet") } else { Ok(connection.len()) }
    ///     })
    ///     .await;
    /// assert_eq!((answer, connection), (Ok(4), vec![0, 1, 2, 3]));
    /// # });
    /// ```
    #[cfg(feature = "tokio")]
    pub async fn run_with<C, Op, T, E>(&self, context: &mut C, operation: Op) -> Result<T, Error<E::Inner>>
    where
        C: ?Sized,
        Op: AsyncFnMut(&mut C, Attempt) -> Result<T, E> + for<'a> ContextOperation<'a, C, Result<T, E>>,
        E: OperationError<Inner: EventError>,
    {
        self.run_with_on(crate::time::Tokio, context, operation).await
    }

    /// Runs an async operation that borrows `context`, with the given timer instead of tokio's; see
    /// [`run_with`](Self::run_with).
    ///
    /// # Errors
    /// Returns [`Error<E>`], with the last error, if the call gives up.
    pub async fn run_with_on<S, C, Op, T, E>(
        &self,
        timer: S,
        context: &mut C,
        mut operation: Op,
    ) -> Result<T, Error<E::Inner>>
    where
        S: Sleep + Clone,
        C: ?Sized,
        Op: AsyncFnMut(&mut C, Attempt) -> Result<T, E> + for<'a> ContextOperation<'a, C, Result<T, E>>,
        E: OperationError<Inner: EventError>,
    {
        let mut call = self.call_on(timer);
        loop {
            let done = call.attempt_with(|attempt| operation.start(&mut *context, attempt)).await;
            if let Some(done) = done {
                return done;
            }
        }
    }

    /// Runs a blocking operation on the current thread, which sleeps between attempts.
    ///
    /// # Errors
    /// Returns [`Error<E>`], with the last error, if the call gives up.
    pub fn blocking<F, T, E>(&self, mut operation: F) -> Result<T, Error<E::Inner>>
    where
        F: FnMut() -> Result<T, E>,
        E: OperationError<Inner: EventError>,
    {
        self.blocking_call(move |_| operation()).run()
    }

    /// Creates a blocking call that can be configured before it runs: `.with_report()`,
    /// `.deadline(..)`, `.cancelled_by(..)`. The operation receives the [`Attempt`], with its number and time limit.
    pub fn blocking_call<F, O>(&self, operation: F) -> RetrierBlocking<'_, F, O>
    where
        F: FnMut(Attempt) -> O,
        Plain: ResultReader<O>,
    {
        BlockingRetry::new(ThreadSleep, self.shared(), operation)
    }

    /// Creates a call in loop form: the operation may borrow anything, needs no closure, and can use `?` and `break`.
    /// See [`RetryLoop`].
    #[cfg(feature = "tokio")]
    pub fn call(&self) -> RetryLoop<'_, crate::time::Tokio> {
        self.call_on(crate::time::Tokio)
    }

    /// Creates a call in loop form with the given timer instead of tokio's; see [`call`](Self::call).
    pub fn call_on<T: Sleep + Clone>(&self, timer: T) -> RetryLoop<'_, T> {
        RetryLoop::new(Configured::through(self.shared()), timer)
    }
}
