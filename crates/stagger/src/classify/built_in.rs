//! The rules for errors that no rule of the caller is for.

use core::any::Any;
use core::error::Error;

use stagger_core::{FailureKind, Outcome, ServerHint, StopReason};

use super::io;
use crate::error::chain::{Fact, fact_of};
use crate::error::links::{as_error, links};
use crate::error::rejected::Rejected;

/// Classifies an error for which there is no rule: by the first known error in its [`chain`], or as transient if there
/// is none.
///
/// The chain of an error begins with what it holds: `Box<dyn Error>`, with `Send` and `Sync` or without,
/// `Arc<dyn Error>`, `Rc<dyn Error>`, a box or reference count around an [`io::Error`](std::io::Error), and with the
/// features of these names an `anyhow::Error` or `eyre::Report`. A type of your own cannot be examined here, because
/// this function does not know that it implements `Error`: use [`error`], or
/// [`Retrier::look_into`](crate::Retrier::look_into).
pub fn built_in<E: Any>(error: &E) -> Outcome {
    built_in_any(error)
}

#[inline]
pub(crate) fn built_in_any(error: &dyn Any) -> Outcome {
    let known = match as_error(error) {
        Some(error) => chain(error),
        None => None,
    };
    known.unwrap_or(Outcome::TRANSIENT)
}

/// Classifies an error of any type that implements `Error`: by the first known error in its [`chain`], or as transient
/// if there is none. It is the rule for error types of your own that wrap others:
///
/// ```
/// # use stagger::testing::NoSleep;
/// use stagger::{Policy, blocking, classify};
///
/// #[derive(Debug, thiserror::Error)]
/// enum LoadError {
///     #[error("cannot read the index")]
///     Io(#[from] std::io::Error),
/// }
///
/// let mut calls = 0;
/// let load = || {
///     calls += 1;
///     Err::<(), LoadError>(std::io::Error::from(std::io::ErrorKind::NotFound).into())
/// };
/// let _ = blocking::retry(&Policy::DEFAULT, load).classify(classify::error).run();
/// assert_eq!(calls, 1);
/// ```
pub fn error<E: Error + 'static>(error: &E) -> Outcome {
    chain(error).unwrap_or(Outcome::TRANSIENT)
}

/// Classifies the first known error in this chain of sources. Returns `None` if there is none.
///
/// Known are a marked error, see [`Marked`](crate::Marked), an [`io::Error`](std::io::Error), see [`io`], and a
/// rejection by this crate: that of a guard, such as an open circuit breaker, is local exhaustion, with a hint to wait
/// until the guard lets calls start again. An `io::Error` of the kind `Other` is only a wrapper: it decides if nothing
/// that it holds does.
///
/// An error whose `source()` skips the error that it wraps, as with `#[error(transparent)]` of thiserror, ends the
/// chain early. Its message is the only trace: if it is exactly that of an operating system error or of an
/// `io::ErrorKind`, such as `No such file or directory (os error 2)`, it is classified as that. At most 64 errors are
/// examined.
///
/// ```
/// use stagger::{Outcome, classify};
///
/// let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
/// assert_eq!(classify::chain(&refused), Some(Outcome::TRANSIENT));
/// assert_eq!(classify::chain(&core::fmt::Error), None);
/// ```
#[must_use]
pub fn chain(error: &(dyn Error + 'static)) -> Option<Outcome> {
    let mut wrapper = None;
    let mut root = error;
    for link in links(error) {
        root = link;
        let known = match link.downcast_ref::<std::io::Error>() {
            // `io::Error::other` wraps errors of any type, and its kind says nothing about them.
            Some(error) if error.kind() == std::io::ErrorKind::Other => {
                wrapper = wrapper.or(Some(error));
                None
            }
            Some(error) => Some(io(error)),
            None => mark(link).or_else(|| refusal(link)),
        };
        if known.is_some() {
            return known;
        }
    }
    match wrapper {
        Some(error) => Some(io(error)),
        None => io::by_message(&root.to_string()),
    }
}

/// Returns the mark of a [`Marked`](crate::Marked) error in a chain.
pub(super) fn mark(link: &(dyn Error + 'static)) -> Option<Outcome> {
    match fact_of(link) {
        Some(Fact::Mark(outcome)) => Some(outcome),
        _ => None,
    }
}

fn refusal(error: &(dyn Error + 'static)) -> Option<Outcome> {
    let retry_in = match error.downcast_ref::<Rejected>() {
        // The program was written so, and no retry will change it.
        Some(Rejected::ByGuard { guard, .. }) if StopReason::Guard(guard) == StopReason::TOO_MANY_GUARDS => {
            return Some(Outcome::Permanent);
        }
        Some(Rejected::ByGuard { retry_in, .. }) => *retry_in,
        Some(Rejected::TimedOut | Rejected::Lost) => return Some(Outcome::TRANSIENT),
        // Nothing was sent: it says nothing about the server.
        Some(Rejected::DeadlinePassed) => {
            return Some(Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None });
        }
        Some(Rejected::Cancelled) => return Some(Outcome::Cancelled),
        None => return None,
    };
    Some(Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: Some(ServerHint::AtLeast(retry_in)) })
}

#[cfg(test)]
mod tests {
    use core::time::Duration;
    use std::io::ErrorKind;

    use super::*;

    #[test]
    fn a_boxed_error_is_classified_by_the_io_error_in_its_chain() {
        #[derive(Debug)]
        struct Wrapped(std::io::Error);
        impl core::fmt::Display for Wrapped {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str("wrapped")
            }
        }
        impl Error for Wrapped {
            fn source(&self) -> Option<&(dyn Error + 'static)> {
                Some(&self.0)
            }
        }
        let boxed = |kind: ErrorKind| -> Box<dyn Error + Send + Sync> { Box::new(Wrapped(kind.into())) };
        assert_eq!(built_in(&boxed(ErrorKind::NotFound)), Outcome::Permanent);
        assert_eq!(built_in(&boxed(ErrorKind::ConnectionReset)), Outcome::TRANSIENT);
        assert_eq!(built_in(&std::io::Error::from(ErrorKind::NotFound)), Outcome::Permanent);
        assert_eq!(built_in(&"anything else"), Outcome::TRANSIENT);
    }

    #[test]
    fn a_rejection_of_an_inner_call_has_its_own_outcome() {
        let local = Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None };
        for (rejected, want) in [
            (Rejected::TimedOut, Outcome::TRANSIENT),
            (Rejected::Lost, Outcome::TRANSIENT),
            (Rejected::DeadlinePassed, local),
            (Rejected::Cancelled, Outcome::Cancelled),
        ] {
            assert_eq!(built_in(&rejected), want, "{rejected:?}");
        }
    }

    #[test]
    fn a_wrapped_rejection_by_a_guard_is_local_exhaustion_with_a_hint() {
        let retry_in = Duration::from_secs(3);
        let want = Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: Some(ServerHint::AtLeast(retry_in)) };
        for guard in ["breaker", "quiet", "pacer", "bulkhead"] {
            let rejected = Rejected::ByGuard { guard, retry_in };
            assert_eq!(built_in(&rejected), want, "{guard}");
            assert_eq!(built_in(&std::io::Error::from(rejected)), want, "{guard}");
        }
        let StopReason::Guard(guard) = StopReason::TOO_MANY_GUARDS else { unreachable!() };
        assert_eq!(built_in(&Rejected::ByGuard { guard, retry_in: Duration::ZERO }), Outcome::Permanent);
    }
}
