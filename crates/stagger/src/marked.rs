use core::fmt;
use core::time::Duration;

use crate::{FailureKind, Outcome, ServerHint};

/// An error with a mark that says whether to retry, for operations that know best themselves.
///
/// The operation returns `Result<T, Marked<E>>`, and the call is [`with_marks`](crate::RetryFuture::with_marks): the caller gets
/// the original `E` back. `?` makes an unmarked fault, for which the call's rule decides.
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
    /// It would fail again: no retry.
    pub const fn permanent(error: E) -> Self {
        Self::with_outcome(error, Outcome::Permanent)
    }

    /// It may work next time, whatever the rule says.
    pub const fn transient(error: E) -> Self {
        Self::with_outcome(error, Outcome::TRANSIENT)
    }

    /// It may work next time, and the server asked not to be called before `delay` has passed.
    pub const fn retry_after(error: E, delay: Duration) -> Self {
        Self::with_outcome(
            error,
            Outcome::Failed { kind: FailureKind::Transient, hint: Some(ServerHint::AtLeast(delay)) },
        )
    }

    /// The server has too much to do.
    pub const fn throttled(error: E, hint: Option<ServerHint>) -> Self {
        Self::with_outcome(error, Outcome::throttled(hint))
    }

    /// This side is out of something: descriptors, ports, pooled connections.
    pub const fn local_exhaustion(error: E) -> Self {
        Self::with_outcome(error, Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None })
    }

    /// Something of it may have been carried out, and it must not be done twice: no retry.
    pub const fn unsafe_to_retry(error: E) -> Self {
        Self::with_outcome(error, Outcome::UnsafeToRetry(FailureKind::Transient))
    }

    /// It was certainly not processed; it is repeated at once, once per call.
    pub const fn not_processed(error: E) -> Self {
        Self::with_outcome(error, Outcome::NotProcessed)
    }

    /// With this outcome.
    pub const fn with_outcome(error: E, outcome: Outcome) -> Self {
        Self { error, mark: Some(outcome) }
    }

    /// The mark, if there is one.
    pub const fn mark(&self) -> Option<&Outcome> {
        self.mark.as_ref()
    }

    /// The original error.
    pub const fn error(&self) -> &E {
        &self.error
    }

    /// The original error.
    pub fn into_error(self) -> E {
        self.error
    }

    pub(crate) fn into_parts(self) -> (E, Option<Outcome>) {
        (self.error, self.mark)
    }
}

/// Without a mark: the call's rule decides.
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
