//! Classifiers that decide whether an error is transient, throttled, local exhaustion or permanent.
//!
//! They take wire values, so that no client library's type appears in a signature. A typed rule is one line:
//!
//! ```
//! use stagger::classify;
//! # #[derive(Debug)] struct SqlError { code: Option<&'static str> }
//! let rule = |error: &SqlError| error.code.map_or(stagger::Outcome::TRANSIENT, classify::sqlstate);
//! assert_eq!(rule(&SqlError { code: Some("23505") }), stagger::Outcome::Permanent);
//! ```

mod grpc;
mod io;
mod redis;
mod sqlstate;

use core::any::Any;
use core::error::Error;

pub use grpc::grpc;
pub use io::io;
pub use redis::redis;
pub use sqlstate::sqlstate;

use crate::{BreakerOpen, FailureKind, Outcome, Rejected, ServerHint};

/// Classifies an error for which there is no rule. An [`io::Error`](std::io::Error) is classified by its kind, see
/// [`io`]; a boxed error by the first `io::Error` in its chain of sources. The rejection of an open circuit breaker is
/// local exhaustion, with a hint to wait until the breaker admits calls again. All other errors are transient.
///
/// Only `Box<dyn Error>` and `Box<dyn Error + Send + Sync>` are looked into. Other wrappers are opaque here, and
/// therefore transient: use [`chain`] in a rule of your own.
pub fn built_in<E: Any>(error: &E) -> Outcome {
    let error: &dyn Any = error;
    let known: Option<&dyn Error> = if let Some(error) = error.downcast_ref::<std::io::Error>() {
        Some(error)
    } else if let Some(error) = error.downcast_ref::<Box<dyn Error + Send + Sync>>() {
        Some(&**error)
    } else if let Some(error) = error.downcast_ref::<Box<dyn Error>>() {
        Some(&**error)
    } else if let Some(error) = error.downcast_ref::<Rejected>() {
        Some(error)
    } else if let Some(error) = error.downcast_ref::<BreakerOpen>() {
        Some(error)
    } else {
        None
    };
    known.and_then(chain).unwrap_or(Outcome::TRANSIENT)
}

/// Classifies the first error in this chain of sources that is known: an [`io::Error`](std::io::Error), see [`io`], or
/// a rejection by this crate. Returns `None` if there is none.
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
    let mut next = Some(error);
    while let Some(error) = next {
        let known = match error.downcast_ref::<std::io::Error>() {
            // An `io::Error` may wrap a rejection by this crate.
            Some(error) => {
                let inside = error.get_ref().and_then(|inside| refusal(inside));
                Some(inside.unwrap_or_else(|| io(error)))
            }
            None => refusal(error),
        };
        if known.is_some() {
            return known;
        }
        next = error.source();
    }
    None
}

fn refusal(error: &(dyn Error + 'static)) -> Option<Outcome> {
    let open = match error.downcast_ref::<Rejected>() {
        Some(Rejected::BreakerOpen(open)) => open,
        Some(Rejected::TimedOut | Rejected::Lost) => return Some(Outcome::TRANSIENT),
        // Nothing was sent: it says nothing about the server.
        Some(Rejected::DeadlinePassed) => {
            return Some(Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: None });
        }
        Some(Rejected::Cancelled) => return Some(Outcome::Cancelled),
        None => error.downcast_ref::<BreakerOpen>()?,
    };
    Some(Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: Some(ServerHint::AtLeast(open.retry_in)) })
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
    fn a_wrapped_open_breaker_is_local_exhaustion_with_a_hint() {
        let retry_in = Duration::from_secs(3);
        let want = Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: Some(ServerHint::AtLeast(retry_in)) };
        let refused = Rejected::BreakerOpen(BreakerOpen { retry_in });
        assert_eq!(built_in(&refused), want);
        assert_eq!(built_in(&BreakerOpen { retry_in }), want);
        assert_eq!(built_in(&std::io::Error::from(refused)), want);
    }
}
