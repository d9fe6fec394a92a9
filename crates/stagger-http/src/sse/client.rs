use core::fmt;
use core::future::{Future as _, poll_fn};
use core::pin::Pin;
use core::task::{Context, Poll, ready};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::Arc;

use futures_core::Stream;
use http::{Request, Response};
use http_body::Body;
use stagger::machine::{Generation, ReconnectPhase, ReconnectStep, Unreachable};
use stagger::reconnect::ReconnectDriver;
use stagger::time::{Sleep as _, Tokio};
use stagger::{DelaySource, Outcome, Rejected, Retrier, ServerHint, StopReason, scope};
use tokio::time::{Instant, Sleep};
use tower_service::Service;

use super::builder::{ClientBuilder, ClientSettings, OnClosed};
use super::classify::{Classification, Classifier};
use super::connect::{Connect, ConnectAttempt, ConnectFailure, Connecting, HeldReservation};
use super::event::{BoxError, ConnectionError};
use super::event::{Closed, Event, Fatal, Opened};
use super::parser::{Message, Parser};
use super::stream::EventStream;
use super::transport::BoxBody;

/// A client for server-sent events that reconnects: a stream of [`Event`]s. See the [module](super) for what it does.
///
/// It reads, waits and connects only while it is polled; while it is not, the server meets backpressure. Dropping it
/// closes the connection.
// It has no task, because it only reads: nothing has to happen while nobody polls it, and no events are buffered
// between a task and its reader.
pub struct Client {
    connect: Connect,
    driver: ReconnectDriver<Tokio>,
    classifier: Classifier,
    parser: Parser,
    activity: Activity,
    /// Events that are returned before anything else happens.
    pending: VecDeque<Event>,
    /// Why no request can ever be sent.
    invalid: Option<ConnectionError>,
    reservation: Option<HeldReservation>,
    idle_timeout: Option<Duration>,
    max_retry: Duration,
    retry_cap: RetryCap,
    /// When the last stream ended.
    down_since: Option<Instant>,
    on_closed: Option<OnClosed>,
}

/// The current activity. Kept here and not in a future, so that cancelling the caller loses nothing.
///
/// ```text
///                       ┌────── failed ──────┐
///                       │                    ▼
///  Start ──▶ Connecting ┴─▶ Open ───────▶ Waiting ──▶ Connecting ──▶ …
///    ▲                           ended
///    └─ reconnect_now, from everywhere     any ──▶ Stopped, by a permanent failure, 204, a limit, a guard or `close`
/// ```
enum Activity {
    /// An attempt is due now: the first one, or one requested by [`Client::reconnect_now`].
    Start,
    Connecting(Generation, scope::Scoped<Connecting>),
    Waiting(Pin<Box<Sleep>>, DelaySource),
    Open(Generation, EventStream),
    /// With an error that has not been returned yet, if there is one.
    Stopped(Option<Fatal>),
}

/// Whether it has been reported for this stream that its `retry` is capped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RetryCap {
    Unreported,
    Reported,
}

impl Client {
    /// Returns the builder of a client over a tower service, such as hyper-util's client or a service with a
    /// [`RetryLayer`](crate::tower::RetryLayer), which then makes one attempt: this client retries.
    ///
    /// `B` is the body of the service's requests.
    #[must_use]
    pub fn with_service<S, B, R>(service: S) -> ClientBuilder<B>
    where
        S: Service<Request<B>, Response = Response<R>> + Clone + Send + Sync + 'static,
        S::Error: Into<BoxError>,
        S::Future: Send,
        B: Send + 'static,
        R: Body + Send + 'static,
        R::Error: Into<BoxError>,
    {
        ClientBuilder::from_service(service)
    }

    /// Returns the builder of a client over a [`reqwest::Client`](::reqwest::Client), or over one with middleware.
    ///
    /// It follows redirects as that client does: build it with [`within_origin`](crate::reqwest::within_origin), so
    /// that headers such as `X-Api-Key` are not sent to another origin. A redirect that is not followed stops the
    /// client.
    #[cfg(feature = "reqwest-middleware")]
    #[cfg_attr(docsrs, doc(cfg(feature = "reqwest-middleware")))]
    #[must_use]
    pub fn with_reqwest(client: impl Into<reqwest_middleware::ClientWithMiddleware>) -> ClientBuilder<::reqwest::Body> {
        ClientBuilder::new(super::transport::Transport::from_reqwest(client.into()))
    }

    pub(super) fn new(
        connect: Connect,
        retrier: Retrier,
        settings: ClientSettings,
        invalid: Option<ConnectionError>,
    ) -> Self {
        let ClientSettings { idle_timeout, max_retry, max_event_bytes, max_auth_retries, last_event_id, on_closed } =
            settings;
        Self {
            connect,
            driver: ReconnectDriver::new(retrier, Tokio),
            classifier: Classifier::new(max_auth_retries),
            parser: Parser::new().max_event_bytes(max_event_bytes).with_last_event_id(last_event_id),
            activity: Activity::Start,
            pending: VecDeque::new(),
            invalid,
            reservation: None,
            idle_timeout,
            max_retry,
            retry_cap: RetryCap::Unreported,
            down_since: None,
            on_closed,
        }
    }

    /// Waits for the next event. Returns `None` after the server ended the stream for good, with 204, after
    /// [`close`](Self::close), and after an error.
    ///
    /// Cancel-safe: the next call continues the wait, the attempt or the stream.
    ///
    /// # Errors
    /// [`Fatal`] when the client gives up.
    pub async fn next(&mut self) -> Option<Result<Event, Fatal>> {
        poll_fn(|cx| self.poll_event(cx)).await
    }

    /// Converts this into a stream of messages only.
    #[must_use]
    pub const fn messages(self) -> Messages {
        Messages(self)
    }

    /// Starts an attempt when the client is next polled, without a wait and with the attempt count reset: instead of
    /// the current stream, during a wait, or after giving up. Does nothing after [`close`](Self::close).
    pub fn reconnect_now(&mut self) {
        if self.driver.phase() == ReconnectPhase::Closed {
            return;
        }
        if let Activity::Open(..) = self.activity {
            self.down_since = Some(Instant::now());
        }
        self.classifier.reset();
        self.parser.restart();
        self.activity = Activity::Start;
    }

    /// Closes the client permanently: drops the connection, and returns no further events.
    pub fn close(&mut self) {
        self.driver.close();
        self.pending.clear();
        self.activity = Activity::Stopped(None);
    }

    /// Returns the id of the last event that had one; empty if there is none. Store it to
    /// [continue](ClientBuilder::last_event_id) in another process.
    #[must_use]
    pub fn last_event_id(&self) -> &str {
        self.parser.last_event_id()
    }

    /// Returns the number of attempts since the last healthy stream.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.driver.attempts()
    }

    /// Returns for how long and how many attempts the server could not be reached, if at least ten attempts in a row
    /// have failed since the last stream was open.
    #[must_use]
    pub const fn unreachable(&self) -> Option<Unreachable> {
        self.driver.unreachable()
    }

    /// Returns the time of the next attempt, if the client is waiting for one.
    #[must_use]
    pub fn next_attempt_at(&self) -> Option<Instant> {
        match &self.activity {
            Activity::Waiting(sleep, _) => Some(sleep.deadline()),
            _ => None,
        }
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Event, Fatal>>> {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return Poll::Ready(Some(Ok(event)));
            }
            match &mut self.activity {
                Activity::Start => match &self.invalid {
                    Some(cause) => {
                        let fatal = Fatal::new(StopReason::Permanent, cause.clone(), 0);
                        self.activity = Activity::Stopped(Some(fatal));
                    }
                    None => {
                        let step = self.driver.reconnect_now();
                        self.apply(&step);
                    }
                },
                Activity::Connecting(generation, connecting) => {
                    let generation = *generation;
                    match ready!(Pin::new(connecting).poll(cx)) {
                        Ok(response) => self.opened(generation, response),
                        Err(failure) => {
                            let ConnectFailure { cause, outcome, reservation } = *failure;
                            self.reservation = reservation;
                            self.closed(generation, cause, outcome);
                        }
                    }
                }
                Activity::Waiting(sleep, source) => {
                    ready!(sleep.as_mut().poll(cx));
                    let step = self.driver.timer_fired(*source);
                    self.apply(&step);
                }
                Activity::Open(generation, stream) => {
                    let generation = *generation;
                    let message = stream.poll_message(&mut self.parser, cx);
                    self.report_capped_retry();
                    match message {
                        Poll::Ready(Ok(message)) => self.pending.push_back(Event::Message(message)),
                        Poll::Ready(Err(cause)) => {
                            self.down_since = Some(Instant::now());
                            self.closed(generation, cause, None);
                        }
                        Poll::Pending if self.pending.is_empty() => return Poll::Pending,
                        Poll::Pending => {}
                    }
                }
                Activity::Stopped(fatal) => return Poll::Ready(fatal.take().map(Err)),
            }
        }
    }

    fn opened(&mut self, generation: Generation, response: Response<BoxBody>) {
        let attempt = self.driver.attempts();
        // The generation is the current one, so this is never `Stale`.
        let _ = self.driver.opened(generation);
        self.classifier.reset();
        self.parser.restart();
        self.retry_cap = RetryCap::Unreported;
        let (mut head, body) = response.into_parts();
        head.extensions.clear();
        self.activity = Activity::Open(generation, EventStream::new(body, self.idle_timeout));
        let downtime = self.down_since.take().map(|since| since.elapsed());
        self.pending.push_back(Event::Open(Opened { attempt, response: Response::from_parts(head, ()), downtime }));
    }

    /// Reports the end of an attempt or of a stream to the driver.
    fn closed(&mut self, generation: Generation, cause: ConnectionError, by_client: Option<Outcome>) {
        let attempt = self.driver.attempts();
        let classification = self.classifier.classify(&cause, by_client, &self.driver);
        let outcome = match classification {
            Classification::NormalEnd => Outcome::Permanent,
            Classification::Failed(outcome) => self.with_retry(outcome),
        };
        let step = self.driver.ended(generation, outcome, Some(&cause));
        let retry_in = match step {
            ReconnectStep::Wait { after, .. } => Some(after),
            _ => None,
        };
        if let ReconnectStep::GiveUp(stop) = step {
            self.activity = Activity::Stopped(match classification {
                Classification::NormalEnd => None,
                Classification::Failed(_) => Some(Fatal::new(stop, cause.clone(), self.driver.attempts())),
            });
        } else {
            self.apply(&step);
        }
        let closed = Closed::new(cause, retry_in, attempt, self.driver.unreachable());
        if let Some(on_closed) = &mut self.on_closed {
            on_closed(&closed);
        }
        self.pending.push_back(Event::Closed(closed));
        self.pending.extend(self.driver.take_unreachable_report().map(Event::Unreachable));
    }

    /// Adds the wait that the server asked for with `retry`, unless it has asked for a longer one in its response.
    fn with_retry(&self, outcome: Outcome) -> Outcome {
        let (Some((_, wait)), Outcome::Failed { kind, hint }) = (self.retry(), outcome) else { return outcome };
        let hint = match hint {
            // A hint of zero would replace the backoff's delay by a draw from zero.
            None if wait.is_zero() => None,
            None => Some(ServerHint::AtLeast(wait)),
            Some(ServerHint::AtLeast(asked)) => Some(ServerHint::AtLeast(asked.max(wait))),
            other => other,
        };
        Outcome::Failed { kind, hint }
    }

    /// Returns the wait that the server last asked for with `retry`, and the wait that is used.
    fn retry(&self) -> Option<(Duration, Duration)> {
        let asked = self.parser.retry()?;
        let used = match self.driver.policy().max_hint() {
            Some(longest) => asked.min(self.max_retry).min(longest),
            None => asked.min(self.max_retry),
        };
        Some((asked, used))
    }

    /// Reports that the server's `retry` is capped, once per stream.
    fn report_capped_retry(&mut self) {
        let Some((asked, used)) = self.retry() else { return };
        if asked > used && self.retry_cap == RetryCap::Unreported {
            self.retry_cap = RetryCap::Reported;
            self.pending.push_back(Event::RetryCapped { asked, used });
        }
    }

    /// Carries out the driver's step.
    fn apply(&mut self, step: &ReconnectStep) {
        self.activity = match *step {
            ReconnectStep::Connect { generation } => {
                let attempt = ConnectAttempt {
                    number: self.driver.attempts(),
                    last_event_id: Arc::clone(self.parser.last_event_id()),
                    auth_rejection: self.classifier.last_auth_rejection,
                    reservation: self.reservation.take(),
                };
                // Retries of the HTTP client would multiply with those of the policy.
                Activity::Connecting(generation, scope::inside((self.connect)(attempt)))
            }
            ReconnectStep::Wait { after, source, .. } => {
                let delay = self.driver.on_ticks(after, source, Tokio.resolution());
                Activity::Waiting(Tokio.sleep(delay), source)
            }
            ReconnectStep::GiveUp(stop) => Activity::Stopped(Some(self.rejected(stop))),
            // The driver has been closed.
            _ => Activity::Stopped(None),
        };
    }

    /// Returns the error of a client whose guards rejected an attempt to connect.
    fn rejected(&self, stop: StopReason) -> Fatal {
        let cause = match self.driver.rejection(stop) {
            Rejected::ByGuard { guard, retry_in } => ConnectionError::ByGuard { guard, retry_in },
            _ => ConnectionError::ClosedLocally,
        };
        Fatal::new(stop, cause, self.driver.attempts())
    }
}

impl Stream for Client {
    type Item = Result<Event, Fatal>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_event(cx)
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("driver", &self.driver).finish_non_exhaustive()
    }
}

/// A stream of a [`Client`]'s messages only: see [`Client::messages`].
#[derive(Debug)]
pub struct Messages(Client);

impl Messages {
    /// Waits for the next message. Returns `None` as [`Client::next`] does.
    ///
    /// Cancel-safe.
    ///
    /// # Errors
    /// [`Fatal`] when the client gives up.
    pub async fn next(&mut self) -> Option<Result<Message, Fatal>> {
        poll_fn(|cx| self.poll_message(cx)).await
    }

    /// Returns the client.
    #[must_use]
    pub fn into_inner(self) -> Client {
        self.0
    }

    fn poll_message(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Message, Fatal>>> {
        loop {
            match ready!(self.0.poll_event(cx)) {
                Some(Ok(Event::Message(message))) => return Poll::Ready(Some(Ok(message))),
                Some(Ok(_)) => {}
                Some(Err(fatal)) => return Poll::Ready(Some(Err(fatal))),
                None => return Poll::Ready(None),
            }
        }
    }
}

impl Stream for Messages {
    type Item = Result<Message, Fatal>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_message(cx)
    }
}
