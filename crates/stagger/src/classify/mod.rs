//! Ready classifiers: what is transient, what is throttled, what is our own exhaustion, what is permanent.
//!
//! They work on wire values, so that no client library's type is in a signature; a typed rule is one line:
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

/// What is done without a rule: an [`io::Error`](std::io::Error) is judged by its kind, see [`io`]; a boxed error by
/// the first `io::Error` in its chain of sources; the refusal of an open circuit breaker is our own and waits until the
/// breaker lets calls in again; everything else is transient.
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

/// What the first error means that is known, of this one and its sources: an [`io::Error`](std::io::Error), by [`io`], or a
/// refusal of our own. `None` if none is.
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
            // An `io::Error` may carry one of our own refusals inside.
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
    fn a_boxed_error_is_judged_by_the_io_error_in_its_chain() {
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
    fn an_open_breaker_inside_is_our_own_and_says_when() {
        let retry_in = Duration::from_secs(3);
        let want = Outcome::Failed { kind: FailureKind::LocalExhaustion, hint: Some(ServerHint::AtLeast(retry_in)) };
        let refused = Rejected::BreakerOpen(BreakerOpen { retry_in });
        assert_eq!(built_in(&refused), want);
        assert_eq!(built_in(&BreakerOpen { retry_in }), want);
        assert_eq!(built_in(&std::io::Error::from(refused)), want);
    }
}
