use core::fmt;
use core::future::poll_fn;
use core::pin::Pin;
use core::time::Duration;
use std::sync::Arc;

use http::Response;
use stagger::machine::{Generation, ReconnectPhase, ReconnectStep, Unreachable};
use stagger::reconnect::ReconnectDriver;
use stagger::time::{Clock as _, Sleep as _, Tokio};
use stagger::{DelaySource, Outcome, Rejected, StopReason};
use tokio::time::{Instant, Sleep};

use super::builder::{ClientBuilder, OnClosed};
use super::classify::{Classification, Classifier, reservation_token};
use super::connection::{Connection, ConnectionEnd, ConnectionParts};
use super::dial::{ConnectAttempt, Dialer, HeldReservation, WebSocket};
use super::failure::{Closed, ConnectionError, Fatal};
use super::telemetry::{self, ClientGauge};

/// The low-level client: yields one connection at a time, and establishes the next one after the current one is lost.
///
/// Use it to write the loop yourself: subscribing again is ordinary code, and no state leaks from one connection into
/// the next. A [`ReconnectDriver`] makes every decision: the spread before the first attempt after a loss, the backoff
/// after it, the attempt count, which restarts only after a healthy connection, and when to give up. For what close
/// codes and rejected upgrades mean, see [`codes`](crate::codes) and the [crate
/// documentation](crate#what-a-failure-means).
///
/// ```no_run
/// // Needs a server.
/// use futures_util::{SinkExt, StreamExt};
/// use stagger_ws::{Fatal, Message, ReconnectLoop};
///
/// # async fn feed() -> Result<(), Fatal> {
/// let mut connections = ReconnectLoop::builder().url("wss://feed.example/v1").reconnect_loop();
/// while let Some(mut connection) = connections.next_connection().await? {
///     if connection.send(Message::text("subscribe")).await.is_ok() {
///         while let Some(Ok(message)) = connection.next().await {
///             println!("{message}");
///         }
///     }
/// }
/// # Ok(()) }
/// ```
pub struct ReconnectLoop {
    dialer: Arc<Dialer>,
    reservation: Arc<HeldReservation>,
    driver: ReconnectDriver<Tokio>,
    classifier: Classifier,
    keepalive: Option<(Duration, Duration)>,
    close_timeout: Duration,
    on_closed: Option<OnClosed>,
    activity: Activity,
    /// The wait before the current attempt.
    last_wait: Duration,
    /// The number of attempts since a connection was last open.
    since_open: u32,
    /// The number of servers that are tried in turn.
    endpoints: usize,
    /// How many servers in a row have given a permanent answer.
    permanent_in_a_row: usize,
    /// When the last connection ended.
    down_since: Option<Instant>,
    connected: Option<ClientGauge>,
    /// Set while the server cannot be reached.
    unreachable: Option<ClientGauge>,
    end: Option<ConnectionEnd>,
}

type ConnectFuture = Pin<Box<dyn Future<Output = Result<(WebSocket, Response<()>), ConnectionError>> + Send>>;

/// The current activity. Kept here and not in a future, so that cancelling the caller loses no attempt.
///
/// ```text
///                       ┌──────── failed ────────┐
///                       │                        ▼
///  Start ──▶ Connecting ┴─▶ Connected ──────▶ Waiting ──▶ Connecting ──▶ …
///    ▲                                 lost
///    └─ reconnect_now, from everywhere         any ──▶ Stopped, by a permanent failure, a limit, a guard or `close`
/// ```
enum Activity {
    /// An attempt is due now: the first one, or one requested by [`ReconnectLoop::reconnect_now`].
    Start,
    Connecting(Generation, ConnectFuture, Announced),
    Waiting(Pin<Box<Sleep>>, DelaySource),
    /// A connection has been given out.
    Connected(Generation),
    Stopped(Option<Fatal>),
}

/// Whether [`LoopEvent::Connecting`] has been returned for the attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Announced {
    Yes,
    No,
}

/// A step of the loop.
pub(super) enum LoopEvent {
    /// An attempt has started.
    Connecting,
    /// The wait before the attempt was spread again, for this long.
    Postponed(Duration),
    Opened(Box<ConnectionParts>),
    Closed {
        closed: Closed,
        /// Set if it is due to be reported that the server cannot be reached.
        report: Option<Unreachable>,
    },
    /// Without an error, if the server ended the connection normally, or this side closed the loop.
    Stopped(Option<Fatal>),
}

impl ClientBuilder {
    /// Creates the low-level client, for a loop of your own over one connection at a time.
    #[must_use]
    pub fn reconnect_loop(self) -> ReconnectLoop {
        ReconnectLoop::new(self)
    }
}

impl ReconnectLoop {
    /// Returns a builder with the default settings. [`ClientBuilder::reconnect_loop`] creates the loop.
    #[must_use]
    pub fn builder() -> ClientBuilder {
        ClientBuilder::new()
    }

    pub(super) fn new(builder: ClientBuilder) -> Self {
        let ClientBuilder { retrier, keepalive, close_timeout, on_closed, .. } = builder;
        Self {
            dialer: Arc::new(builder.dialer),
            reservation: Arc::default(),
            driver: ReconnectDriver::new(retrier, Tokio),
            classifier: builder.classifier.shrunk(),
            keepalive,
            close_timeout,
            on_closed,
            activity: Activity::Start,
            last_wait: Duration::ZERO,
            since_open: 0,
            endpoints: builder.endpoints,
            permanent_in_a_row: 0,
            down_since: None,
            connected: None,
            unreachable: None,
            end: None,
        }
    }

    /// Waits for the next connection and returns it. The first attempt starts immediately; each further one after the
    /// previous connection is lost and the policy's wait has passed. Returns `None` after the server ended the last
    /// connection normally, with code 1000, and after [`close`](Self::close).
    ///
    /// Cancel-safe: the next call continues the wait or the attempt.
    ///
    /// # Errors
    /// [`Fatal`] when the client gives up, and on every further call until [`reconnect_now`](Self::reconnect_now).
    pub async fn next_connection(&mut self) -> Result<Option<Connection<'_>>, Fatal> {
        let parts = loop {
            match self.next_event().await {
                LoopEvent::Opened(parts) => break parts,
                LoopEvent::Connecting | LoopEvent::Postponed(_) | LoopEvent::Closed { .. } => {}
                LoopEvent::Stopped(None) => return Ok(None),
                LoopEvent::Stopped(Some(fatal)) => return Err(fatal),
            }
        };
        Ok(Some(self.connection(*parts)))
    }

    /// Starts an attempt at the next call of [`next_connection`](Self::next_connection), without a wait and with the
    /// attempt count reset: during a wait, or after giving up. Does nothing after [`close`](Self::close).
    pub fn reconnect_now(&mut self) {
        if self.driver.phase() == ReconnectPhase::Closed {
            return;
        }
        self.record_replaced();
        (self.since_open, self.permanent_in_a_row) = (0, 0);
        self.classifier.reset();
        self.activity = Activity::Start;
    }

    /// Closes the loop permanently: cancels the current wait or attempt, and yields no further connections.
    pub fn close(&mut self) {
        self.driver.close();
        self.connected = None;
        self.unreachable = None;
        self.activity = Activity::Stopped(None);
    }

    /// Returns the number of attempts since the last healthy connection.
    #[must_use]
    pub const fn attempts(&self) -> u32 {
        self.driver.attempts()
    }

    /// Returns for how long and how many attempts the server could not be reached, if at least ten attempts in a row
    /// have failed since the last connection was open. A listener set with [`on_closed`](ClientBuilder::on_closed) is
    /// told while [`next_connection`](Self::next_connection) is waiting.
    #[must_use]
    pub const fn unreachable(&self) -> Option<Unreachable> {
        self.driver.unreachable()
    }

    /// Returns the time of the next attempt, if the loop is waiting for one.
    #[must_use]
    pub fn next_attempt_at(&self) -> Option<Instant> {
        match &self.activity {
            Activity::Waiting(sleep, _) => Some(sleep.deadline()),
            _ => None,
        }
    }

    /// Creates the connection, which records its end in `self.end`.
    pub(super) fn connection(&mut self, parts: ConnectionParts) -> Connection<'_> {
        self.end = None;
        Connection::new(parts, &mut self.end)
    }

    /// Runs the loop until the next event. Cancel-safe: all progress is kept in `self`.
    pub(super) async fn next_event(&mut self) -> LoopEvent {
        loop {
            match &mut self.activity {
                Activity::Start => {
                    let step = self.driver.reconnect_now();
                    self.last_wait = Duration::ZERO;
                    self.apply(&step, Duration::ZERO);
                }
                Activity::Connecting(_, _, announced @ Announced::No) => {
                    *announced = Announced::Yes;
                    return LoopEvent::Connecting;
                }
                Activity::Connecting(generation, connecting, Announced::Yes) => {
                    let generation = *generation;
                    match poll_fn(|cx| connecting.as_mut().poll(cx)).await {
                        Ok((socket, response)) => {
                            return LoopEvent::Opened(Box::new(self.open(generation, socket, response)));
                        }
                        Err(cause) => {
                            telemetry::record_attempt(self.target(), cause.name());
                            let outcome = self.classifier.classify_attempt(&cause);
                            let classification = Classification::Failed(self.outcome_of_all(outcome));
                            return self.closed(generation, cause, classification, Duration::ZERO);
                        }
                    }
                }
                Activity::Waiting(sleep, source) => {
                    sleep.as_mut().await;
                    let step = self.driver.timer_fired(*source);
                    self.apply(&step, Duration::ZERO);
                    if let ReconnectStep::Wait { after, .. } = step {
                        return LoopEvent::Postponed(after);
                    }
                }
                Activity::Connected(generation) => {
                    let generation = *generation;
                    // A connection that was leaked, so never dropped, counts as lost now.
                    let end = match self.end.take() {
                        Some(end) => end,
                        None => ConnectionEnd {
                            cause: ConnectionError::ClosedLocally,
                            at: Instant::now(),
                            is_negotiating: false,
                        },
                    };
                    self.down_since = Some(end.at);
                    self.connected = None;
                    let bits = self.driver.seed().for_call(generation.get()).get();
                    let ago = end.at.elapsed();
                    if end.is_negotiating {
                        self.driver.distrust(generation);
                    }
                    let accepted = self.driver.is_accepted(instant_before_now(ago));
                    let classification = self.classifier.classify_loss(&end.cause, accepted, bits);
                    return self.closed(generation, end.cause, classification, ago);
                }
                Activity::Stopped(fatal) => return LoopEvent::Stopped(fatal.clone()),
            }
        }
    }

    /// Records the end of a connection that is being replaced.
    fn record_replaced(&mut self) {
        if let Activity::Connected(_) = self.activity {
            self.down_since = Some(match self.end.take() {
                Some(end) => end.at,
                None => Instant::now(),
            });
        }
        self.connected = None;
    }

    fn open(&mut self, generation: Generation, socket: WebSocket, response: Response<()>) -> ConnectionParts {
        telemetry::record_attempt(self.target(), "opened");
        let attempt = self.driver.attempts();
        // The generation is the current one, so this is never `Stale`.
        let _ = self.driver.opened(generation);
        self.classifier.opened();
        self.activity = Activity::Connected(generation);
        (self.since_open, self.permanent_in_a_row) = (0, 0);
        self.end = None;
        self.connected = Some(ClientGauge::new("stagger_ws_connected", self.target()));
        self.unreachable = None;
        let downtime = self.down_since.take().map(|since| since.elapsed());
        if let Some(downtime) = downtime {
            telemetry::record_downtime(self.target(), downtime);
        }
        ConnectionParts {
            socket,
            response,
            attempt,
            downtime,
            keepalive: self.keepalive,
            close_timeout: self.close_timeout,
        }
    }

    /// Returns what the failure of an attempt means if there are other servers: a permanent answer is permanent when
    /// all of them have given one.
    fn outcome_of_all(&mut self, outcome: Outcome) -> Outcome {
        self.permanent_in_a_row = if outcome == Outcome::Permanent { self.permanent_in_a_row + 1 } else { 0 };
        if outcome == Outcome::Permanent && self.permanent_in_a_row < self.endpoints {
            Outcome::TRANSIENT
        } else {
            outcome
        }
    }

    /// Reports the end of an attempt or of a connection to the driver. It ended `ago` before now, since the caller may
    /// have polled late.
    fn closed(
        &mut self,
        generation: Generation,
        cause: ConnectionError,
        classification: Classification,
        ago: Duration,
    ) -> LoopEvent {
        self.reservation.keep(reservation_token(&cause));
        let at = instant_before_now(ago);
        let attempt = self.driver.attempts();
        let classification = match self.explicit_outcome(&cause) {
            Some(outcome) => Classification::Failed(outcome),
            None => classification,
        };
        let outcome = match classification {
            Classification::NormalEnd => Outcome::Permanent,
            Classification::Failed(outcome) => outcome,
            Classification::ServerFailed => {
                self.driver.distrust(generation);
                Outcome::TRANSIENT
            }
        };
        let step = self.driver.ended_at(generation, outcome, at, Some(&cause));
        let retry_in = match step {
            ReconnectStep::Wait { after, .. } => Some(after.saturating_sub(ago)),
            _ => None,
        };
        let stopped = match step {
            // To give up after a normal end is no failure, and has no reason.
            ReconnectStep::GiveUp(_) if classification == Classification::NormalEnd => {
                self.activity = Activity::Stopped(None);
                None
            }
            ReconnectStep::GiveUp(stop) => {
                self.activity = Activity::Stopped(Some(Fatal::new(stop, cause.clone(), attempt)));
                Some(stop)
            }
            _ => {
                self.apply(&step, ago);
                None
            }
        };
        let unreachable = self.driver.unreachable();
        if unreachable.is_none() || retry_in.is_none() {
            self.unreachable = None;
        } else if self.unreachable.is_none() {
            self.unreachable = Some(ClientGauge::new("stagger_ws_unreachable", self.target()));
        }
        let report = self.driver.take_unreachable_report();
        let closed = Closed::new(cause, retry_in, attempt, unreachable);
        telemetry::log_closed(self.target(), &closed, stopped, report);
        if let Some(on_closed) = &mut self.on_closed {
            on_closed(&closed);
        }
        LoopEvent::Closed { closed, report }
    }

    /// Returns the outcome by the retrier's rules, if there is one for this error or for what it wraps.
    fn explicit_outcome(&self, cause: &ConnectionError) -> Option<Outcome> {
        if let Some(outcome) = self.driver.explicit_outcome(cause) {
            return Some(outcome);
        }
        match cause {
            ConnectionError::Io(error) | ConnectionError::Tls(error) => self.driver.explicit_outcome(&**error),
            ConnectionError::Request(error) => self.driver.explicit_outcome(error),
            _ => None,
        }
    }

    fn target(&self) -> &str {
        telemetry::target(self.driver.retrier())
    }

    /// Returns the error of a client whose guards rejected an attempt to connect.
    fn rejected(&self, stop: StopReason) -> Fatal {
        let cause = match self.driver.rejection(stop) {
            Rejected::ByGuard { guard, retry_in } => ConnectionError::ByGuard { guard, retry_in },
            _ => ConnectionError::ClosedLocally,
        };
        Fatal::new(stop, cause, self.driver.attempts())
    }

    /// Carries out the driver's step. `ago` is the time that has passed since the report.
    fn apply(&mut self, step: &ReconnectStep, ago: Duration) {
        self.activity = match *step {
            ReconnectStep::Connect { generation } => {
                self.since_open = self.since_open.saturating_add(1);
                let attempt = ConnectAttempt {
                    number: self.driver.attempts(),
                    since_open: self.since_open,
                    auth_rejection: self.classifier.last_auth_rejection,
                };
                let connect = Arc::clone(&self.dialer).connect(attempt, Arc::clone(&self.reservation));
                Activity::Connecting(
                    generation,
                    telemetry::in_span(connect, attempt.number, self.last_wait),
                    Announced::No,
                )
            }
            ReconnectStep::Wait { after, source, .. } => {
                self.last_wait = after;
                let delay = self.driver.on_ticks(after, source, Tokio.resolution());
                Activity::Waiting(Tokio.sleep(delay.saturating_sub(ago)), source)
            }
            ReconnectStep::GiveUp(stop) => Activity::Stopped(Some(self.rejected(stop))),
            _ => return,
        };
    }
}

/// Returns the time on the driver's clock that was this long ago.
fn instant_before_now(ago: Duration) -> stagger::Instant {
    let nanos = u64::try_from(ago.as_nanos()).unwrap_or(u64::MAX);
    stagger::Instant::from_nanos(Tokio.now().as_nanos().saturating_sub(nanos))
}

impl fmt::Debug for ReconnectLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReconnectLoop").field("driver", &self.driver).finish_non_exhaustive()
    }
}
