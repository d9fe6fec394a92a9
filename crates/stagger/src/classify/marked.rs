//! Errors with a mark that says whether to retry, and how a call tells them from all others.

use core::any::Any;
use core::fmt;
use core::time::Duration;

use stagger_core::{FailureKind, Outcome, ServerHint};

use crate::error::chain::{Fact, leave_fact};

/// An error with an optional mark that says whether to retry it, for operations that classify their own errors.
///
/// The operation returns `Result<T, Marked<E>>`. The call honors the mark and removes it: the caller gets the original
/// `E` back. `?` converts an `E` into an unmarked error, which the call's rule classifies. A marked error inside
/// another error, such as a `Box<dyn Error>` or an `anyhow::Error`, keeps its mark and its wrapper.
///
/// ```
/// use std::io;
/// use stagger::{Marked, Policy, blocking};
///
/// let mut calls = 0;
/// let answer: Result<(), io::Error> = blocking::retry(&Policy::DEFAULT, || {
///     calls += 1;
///     Err(Marked::permanent(io::Error::other("no such account")))
/// })
/// .run();
/// assert_eq!(answer.unwrap_err().to_string(), "no such account");
/// assert_eq!(calls, 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marked<E> {
    error: E,
    mark: Option<Outcome>,
}

/// The error of an operation: a [`Marked<E>`], which a call takes apart into mark and `E`, or any other type.
///
/// Implemented for every `Unpin` type, which all usual error types are, and for `Marked<E>`, which is not `Unpin`; that
/// is how the two are told apart. Code that is generic over the operation's error needs the bound `E: Unpin`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the error of an operation, because it may not be `Unpin`",
    note = "in generic code, add the bound `{Self}: Unpin`; otherwise box the error"
)]
pub trait OperationError: Sized {
    /// The error that the caller gets.
    type Inner: OperationError;
    /// The mark; zero-sized if there cannot be one.
    type Mark: Into<Option<Outcome>> + Default;

    /// Returns the mark, if there is one.
    fn mark(&self) -> Option<Outcome>;

    /// Returns the error without its mark, for downcasting.
    fn as_any(&self) -> &dyn Any
    where
        Self: 'static;

    /// Separates the error from its mark.
    fn into_parts(self) -> (Self::Inner, Self::Mark);
}

/// The mark of an error that cannot be marked: a zero-sized `Option<Outcome>`.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unmarked;

impl From<Unmarked> for Option<Outcome> {
    #[inline]
    fn from(_: Unmarked) -> Self {
        None
    }
}

#[diagnostic::do_not_recommend]
impl<E: Unpin> OperationError for E {
    type Inner = E;
    type Mark = Unmarked;

    fn mark(&self) -> Option<Outcome> {
        None
    }

    fn as_any(&self) -> &dyn Any
    where
        E: 'static,
    {
        self
    }

    #[inline]
    fn into_parts(self) -> (E, Unmarked) {
        (self, Unmarked)
    }
}

#[diagnostic::do_not_recommend]
impl<E: OperationError> OperationError for Marked<E> {
    type Inner = E;
    type Mark = Option<Outcome>;

    fn mark(&self) -> Option<Outcome> {
        self.mark
    }

    fn as_any(&self) -> &dyn Any
    where
        Self: 'static,
    {
        self.error.as_any()
    }

    #[inline]
    fn into_parts(self) -> (E, Option<Outcome>) {
        (self.error, self.mark)
    }
}

mod never {
    /// Implemented by no type.
    pub trait Never {}
}

/// Never applies. It takes the place of the automatic implementation, so that `Marked` is known not to be `Unpin`, and
/// a call can distinguish it from every other error; see [`OperationError`].
impl<E> Unpin for Marked<E> where Self: never::Never {}

impl<E> Marked<E> {
    /// Creates a permanent error: it is not retried.
    pub const fn permanent(error: E) -> Self {
        Self::with_outcome(error, Outcome::Permanent)
    }

    /// Creates a transient error: it is retried, whatever the rule says.
    pub const fn transient(error: E) -> Self {
        Self::with_outcome(error, Outcome::TRANSIENT)
    }

    /// Creates a transient error with a hint: the server asked the client to wait at least `delay`.
    pub const fn retry_after(error: E, delay: Duration) -> Self {
        Self::with_outcome(
            error,
            Outcome::Failed { kind: FailureKind::Transient, hint: Some(ServerHint::AtLeast(delay)) },
        )
    }

    /// Creates an error of an overloaded server, with its hint if it sent one.
    pub const fn throttled(error: E, hint: Option<ServerHint>) -> Self {
        Self::with_outcome(error, Outcome::throttled(hint))
    }

    /// Creates an error of local resource exhaustion: file descriptors, ports, pooled connections. It is retried, and
    /// not counted against the server.
    pub const fn local_exhaustion(error: E) -> Self {
        Self::with_outcome(error, Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None })
    }

    /// Creates an error of a request that may have been processed and must not be repeated: it is not retried.
    pub const fn unsafe_to_retry(error: E) -> Self {
        Self::with_outcome(error, Outcome::UnsafeToRetry { kind: FailureKind::Transient, hint: None })
    }

    /// Creates an error of a request that was certainly not processed. It is retried immediately, once per call.
    pub const fn not_processed(error: E) -> Self {
        Self::with_outcome(error, Outcome::NotProcessed)
    }

    /// Creates an error with this outcome.
    pub const fn with_outcome(error: E, outcome: Outcome) -> Self {
        Self { error, mark: Some(outcome) }
    }

    /// Returns the mark, if there is one.
    pub const fn mark(&self) -> Option<&Outcome> {
        self.mark.as_ref()
    }

    /// Returns a reference to the original error.
    pub const fn error(&self) -> &E {
        &self.error
    }

    /// Returns the original error, without the mark.
    pub fn into_error(self) -> E {
        self.error
    }
}

/// Creates an unmarked error: the call's rule classifies it.
impl<E> From<E> for Marked<E> {
    fn from(error: E) -> Self {
        Self { error, mark: None }
    }
}

impl<E: fmt::Display> fmt::Display for Marked<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl<E: core::error::Error + 'static> core::error::Error for Marked<E> {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        if let Some(mark) = self.mark {
            leave_fact(Fact::Mark(mark));
        }
        self.error.source()
    }
}
