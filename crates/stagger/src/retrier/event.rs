//! What listeners receive.

use core::any::Any;
use core::error::Error;
use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;

use stagger_core::machine::Unreachable;
use stagger_core::text::{Compact, Outside};
use stagger_core::{DelaySource, StopReason};

use crate::classify::rule::RuleSet;
use crate::error::chain::display_chain;
use crate::error::links::as_error;
use crate::observe::redact::hide_url_secrets;

/// A decision after an attempt. One event is emitted per decision, before the sleep.
///
/// Attempts are counted from 1. Events do not depend on cargo features; a call without a listener creates none.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Event<'a> {
    /// The name of the target, as passed to [`Retrier::named`](crate::Retrier::named), or "".
    pub target: &'a str,
    /// The attempt that has just ended; 0 if a guard rejected the first one.
    pub attempt: u32,
    /// The policy's limit on attempts, if there is one.
    pub max_attempts: Option<NonZeroU32>,
    /// Time since the start of the call.
    pub elapsed: Duration,
    /// Retries left in the guard that has the fewest, if there is one that can report it.
    pub budget_left: Option<u64>,
    /// The decision.
    pub action: Action,
    /// In how long an attempt could start, as far as is known, if a guard ended the call.
    pub retry_in: Option<Duration>,
    /// The error of the attempt, if there is one.
    pub error: Option<&'a dyn EventError>,
    /// Set if it is due to be reported that the server of a connection that is kept up cannot be reached: after the
    /// tenth failed attempt in a row, and then each time the outage has lasted twice as long as at the last report.
    /// Always `None` for calls. It is a field and not an event of its own, because listeners count attempts by events.
    pub unreachable: Option<Unreachable>,
    /// The rules of the retrier, if there is one.
    pub(crate) rules: Option<&'a RuleSet>,
}

/// One line for a log: `attempt 1/4 failed: connection refused; next in 142ms`, behind the name of the target if it has
/// one. The error is its [text](Self::error_text), in which control characters are escaped and the user information,
/// queries and fragments of URLs replaced by `***`.
impl fmt::Display for Event<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.target.is_empty() {
            write!(f, "{}: ", self.target)?;
        }
        write!(f, "attempt {}", self.attempt)?;
        if let Some(most) = self.max_attempts {
            write!(f, "/{most}")?;
        }
        match self.error_text() {
            Some(error) => write!(f, " failed: {}", Outside(&hide_url_secrets(&error)))?,
            None if self.action == Action::Done => f.write_str(" succeeded")?,
            None => {}
        }
        match self.action {
            Action::Done => Ok(()),
            Action::Retry { after, .. } => write!(f, "; next in {:.0}", Compact(after)),
            Action::Held { after } => write!(f, "; held for {:.0}", Compact(after)),
            Action::Resumed => f.write_str("; no longer held"),
            Action::Stop(stop) => write!(f, "; gave up, {stop}"),
        }
    }
}

/// A decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// The call succeeded.
    Done,
    /// Another attempt follows.
    Retry {
        /// Delay before the next attempt.
        after: Duration,
        /// What determined the delay.
        source: DelaySource,
    },
    /// The attempt is due, and a [guard](crate::Retrier::guard) lets it wait, such as a quiet period.
    /// [`Resumed`](Self::Resumed) or [`Stop`](Self::Stop) follows, unless the call is dropped. Of a queue: guards hold
    /// items that are due, and held none before.
    Held {
        /// For how long, as far as is known.
        after: Duration,
    },
    /// The attempt that waited begins. Of a queue: an item begins, and guards hold no other.
    Resumed,
    /// There is no further attempt.
    Stop(StopReason),
}

/// An error in an event, which can be printed and downcast.
///
/// Implemented for every `Debug + 'static` type.
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not implement `Debug`, which listeners need to print the errors of a call",
    label = "cannot be printed",
    note = "add `#[derive(Debug)]` to `{Self}`; only a call of a bare policy, without guards, limits and \
            listeners, does not need it"
)]
pub trait EventError: Any + fmt::Debug {
    /// Returns `self` as `&dyn Any`, for downcasting.
    fn as_any(&self) -> &dyn Any;
}

// Hidden, or it would be listed on the page of every type.
#[doc(hidden)]
#[diagnostic::do_not_recommend]
impl<E: Any + fmt::Debug> EventError for E {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl<'a> Event<'a> {
    /// Returns the error of the attempt, if it is of type `E`.
    #[must_use]
    pub fn error_as<E: Any>(&self) -> Option<&'a E> {
        self.error?.as_any().downcast_ref()
    }

    /// Returns the error of the attempt as an [`Error`], for its message and its sources, if its type is known to be
    /// one: an I/O error, a boxed error, anyhow's and eyre's, [`Rejected`](crate::Rejected), and every type that the
    /// retrier has a rule for or [looks into](crate::Retrier::look_into).
    #[must_use]
    pub fn as_error(&self) -> Option<&'a (dyn Error + 'static)> {
        let error = self.error?.as_any();
        match self.rules {
            Some(rules) => rules.as_error(error),
            None => as_error(error),
        }
    }

    /// Returns the text of the error of the attempt: the messages of the error and its sources, if its type is
    /// [known to be an error](Self::as_error); a text as it is; and anything else in its `Debug` form, because nothing
    /// more is known of its type. [`look_into`](crate::Retrier::look_into) makes a type known, and
    /// [`error_as`](Self::error_as) returns the error itself.
    ///
    /// ```
    /// use stagger::testing::NoSleep;
    /// use stagger::{Policy, Retrier, policy};
    ///
    /// #[derive(Debug)]
    /// enum ApiError { Busy }
    ///
    /// impl std::fmt::Display for ApiError {
    ///     fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
    ///         f.write_str("the server is busy")
    ///     }
    /// }
    ///
    /// impl std::error::Error for ApiError {}
    ///
    /// const POLICY: Policy = policy!(exponential(ms(1), ms(10)).max_attempts(1));
    ///
    /// let api = Retrier::new(POLICY).look_into::<ApiError>().on_event(|event| {
    ///     assert_eq!(event.error_text().as_deref(), Some("the server is busy"));
    ///     assert_eq!(event.to_string(), "attempt 1/1 failed: the server is busy; gave up, every attempt was used");
    /// });
    /// let _ = api.blocking_call(|_| Err::<(), _>(ApiError::Busy)).timer(NoSleep).run();
    /// ```
    #[must_use]
    pub fn error_text(&self) -> Option<String> {
        let error = self.error?;
        Some(if let Some(error) = self.as_error() {
            display_chain(error).to_string()
        } else if let Some(text) = self.error_as::<&'static str>() {
            (*text).to_owned()
        } else if let Some(text) = self.error_as::<String>() {
            text.clone()
        } else {
            format!("{error:?}")
        })
    }
}

/// The listener of one call.
pub trait Listen {
    /// Whether there is a listener.
    const LISTENS: bool;

    /// Passes one event to the listener.
    fn listen(&self, event: &Event<'_>);
}

/// No listener.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Listen for Silent {
    const LISTENS: bool = false;

    #[inline]
    fn listen(&self, _: &Event<'_>) {}
}

/// A closure as listener.
#[derive(Clone, Copy)]
pub struct OnEvent<F>(pub(crate) F);

impl<F> fmt::Debug for OnEvent<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnEvent")
    }
}

impl<F: Fn(&Event<'_>)> Listen for OnEvent<F> {
    const LISTENS: bool = true;

    fn listen(&self, event: &Event<'_>) {
        (self.0)(event);
    }
}
