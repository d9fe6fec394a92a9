use core::time::Duration;
use std::io;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, StatusCode};
use stagger::breaker::CircuitBreaker;
use stagger::budget::Tokens;
use stagger::testing::{Recorded, Recorder};
use stagger::time::{Clock as _, Tokio};
use stagger::{Cause, Jitter, NestedRetries, Policy, Rejected, Retrier, Seed};

/// What the server does with one attempt of a script.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reply {
    Status(u16),
    /// A status with one header.
    Hint(u16, &'static str, &'static str),
    /// The connection fails.
    Broken(io::ErrorKind),
    /// The attempt never ends.
    Silent,
}

/// The status of a request that was not processed: every client refreshes its credentials after it, once.
pub(super) const NOT_PROCESSED: Reply = Reply::Status(401);

impl Reply {
    /// Returns status and headers of the response, or the error of the connection.
    pub(super) fn response(self) -> Result<(StatusCode, HeaderMap), io::Error> {
        let status = |code| StatusCode::from_u16(code).unwrap();
        match self {
            Self::Status(code) => Ok((status(code), HeaderMap::new())),
            Self::Hint(code, name, value) => {
                let header = (HeaderName::from_static(name), value.parse().unwrap());
                Ok((status(code), HeaderMap::from_iter([header])))
            }
            Self::Broken(kind) => Err(kind.into()),
            Self::Silent => unreachable!("it never responds"),
        }
    }
}

/// What the retrier has in addition to its policy, or what the call is made inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setup {
    Plain,
    /// A budget of two retries.
    Budget,
    /// A breaker that opens after three failures.
    Breaker,
    /// A breaker that is open from the start.
    OpenBreaker,
    /// A timeout of 30 ms for each attempt.
    Timeout,
    /// A deadline that is so far ahead, or has passed if it is zero.
    Deadline(Duration),
    /// The call is made inside an attempt of another call.
    Nested(NestedRetries),
}

/// The input of one call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Case<'a> {
    pub(super) policy: &'a Policy,
    pub(super) script: &'a [Reply],
    pub(super) setup: Setup,
    pub(super) seed: Seed,
}

impl Case<'_> {
    /// Returns a retrier with guards of its own, whose events are recorded.
    pub(super) fn retrier(&self, recorder: &Recorder) -> Retrier {
        let retrier = Retrier::new(*self.policy).named("api").seed(self.seed).on_event(recorder.listener());
        match self.setup {
            Setup::Budget => retrier.budget(Tokens::builder().capacity(2).cost(1).build().unwrap()),
            Setup::Breaker => retrier.breaker(breaker()),
            Setup::OpenBreaker => {
                let breaker = Arc::new(breaker());
                breaker.force_open(&Tokio.now());
                retrier.shared_guard(breaker)
            }
            Setup::Timeout => retrier.timeout(Duration::from_millis(30)),
            Setup::Nested(nested) => {
                retrier.budget(Tokens::builder().capacity(2).cost(1).build().unwrap()).nested(nested)
            }
            Setup::Plain | Setup::Deadline(_) => retrier,
        }
    }

    /// Returns the deadline of the call, on tokio's clock.
    pub(super) fn deadline(&self) -> Option<stagger::Instant> {
        if let Setup::Deadline(ahead) = self.setup { Some(Tokio.now().saturating_add(ahead)) } else { None }
    }
}

fn breaker() -> CircuitBreaker {
    let open = Policy::constant(Duration::from_secs(60)).jitter(Jitter::None).build().unwrap();
    CircuitBreaker::builder(Seed::new(1)).consecutive(3).open(open).build().unwrap()
}

/// The end of a call, as its caller sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Status(u16),
    Broken(io::ErrorKind),
    Rejected(Rejected),
}

impl End {
    pub(super) fn from_cause(cause: &Cause<Self>) -> Self {
        match *cause {
            Cause::Operation(end) => end,
            Cause::Rejected(rejected) => Self::Rejected(rejected),
        }
    }
}

/// What one call did. Events include the target, the attempt, the action with its delay, and what is left in the
/// budget.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Trace {
    pub(super) events: Vec<Recorded>,
    /// When each attempt was made, from the start of the call.
    pub(super) attempts: Vec<Duration>,
    pub(super) end: End,
}

impl Trace {
    pub(super) fn new(recorder: &Recorder, attempts: Vec<Duration>, end: End) -> Self {
        // The types of the errors differ from client to client.
        let without_error = |event: Recorded| {
            let mut event = event;
            event.error = None;
            event
        };
        Self { events: recorder.events().into_iter().map(without_error).collect(), attempts, end }
    }
}
