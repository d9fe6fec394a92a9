use core::any::Any;
use core::fmt;
use core::num::NonZeroU32;
use core::time::Duration;

use crate::setup::Listening;
use crate::{DelaySource, StopReason};

/// What was decided after an attempt: one event for each decision, before the sleep.
///
/// Attempts are counted from 1. Events are made whatever features are on; a call without a sink makes none.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Event<'a> {
    /// What the call is made to: the name that the [`Retrier`](crate::Retrier) was given, or "".
    pub target: &'a str,
    /// The attempt that has just ended.
    pub attempt: u32,
    /// The policy's limit of attempts, if there is one.
    pub max_attempts: Option<NonZeroU32>,
    /// The time since the start of the call.
    pub elapsed: Duration,
    /// What is left of the retry budget, in retries, if there is a budget and it can tell.
    pub budget_left: Option<u64>,
    /// What was decided.
    pub action: Action,
    /// The error of the attempt, if it had one.
    pub error: Option<&'a dyn EventError>,
}

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// It worked.
    Done,
    /// Another attempt is made.
    Retry {
        /// After this delay.
        after: Duration,
        /// Which comes from here.
        source: DelaySource,
    },
    /// No further attempt is made.
    Stop(StopReason),
}

/// An error in an event: it can be printed, and asked for by its type.
///
/// It is there for every `Debug + 'static`.
pub trait EventError: Any + fmt::Debug {
    /// It, to be asked for by its type.
    fn as_any(&self) -> &dyn Any;
}

impl<E: Any + fmt::Debug> EventError for E {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

impl<'a> Event<'a> {
    /// The error of the attempt, if it is of this type.
    #[must_use]
    pub fn error_as<E: Any>(&self) -> Option<&'a E> {
        self.error?.as_any().downcast_ref()
    }
}

/// Where the events of a call go.
pub trait Sink<E>: Listening {
    /// What the call is made to.
    fn target(&self) -> &str {
        ""
    }

    /// Whether anybody listens just now.
    fn is_listening(&self) -> bool {
        Self::LISTENS
    }

    /// Takes one event.
    fn emit(&self, event: Event<'_>, error: Option<&E>);
}

/// Nobody listens: no event is made.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Listening for Silent {
    const LISTENS: bool = false;
}

impl<E> Sink<E> for Silent {
    #[inline]
    fn emit(&self, _: Event<'_>, _: Option<&E>) {}
}

/// A function listens.
#[derive(Clone, Copy)]
pub struct OnEvent<F>(pub(crate) F);

impl<F> fmt::Debug for OnEvent<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnEvent")
    }
}

impl<F> Listening for OnEvent<F> {
    const LISTENS: bool = true;
}

impl<E: EventError, F: Fn(&Event<'_>)> Sink<E> for OnEvent<F> {
    fn emit(&self, event: Event<'_>, error: Option<&E>) {
        (self.0)(&Event { error: error.map(|error| error as &dyn EventError), ..event });
    }
}
