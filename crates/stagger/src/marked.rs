use core::fmt;
use core::time::Duration;

use crate::{FailureKind, Outcome, ServerHint};

/// An error with an optional mark that says whether to retry it, for operations that classify their own errors.
///
/// The operation returns `Result<T, Marked<E>>` and the call uses [`with_marks`](crate::RetryFuture::with_marks): the
/// caller gets the original `E` back. `?` converts an `E` into an unmarked error, which the call's rule classifies.
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
/// .with_marks()
/// .run();
/// assert_eq!(answer.unwrap_err().to_string(), "no such account");
/// assert_eq!(calls, 1);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marked<E> {
    error: E,
    mark: Option<Outcome>,
}

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
        Self::with_outcome(error, Outcome::UnsafeToRetry(FailureKind::Transient))
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

    pub(crate) fn into_parts(self) -> (E, Option<Outcome>) {
        (self.error, self.mark)
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
        self.error.source()
    }
}
