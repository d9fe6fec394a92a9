use core::fmt;
use core::future::poll_fn;
use core::pin::Pin;
use core::time::Duration;
use std::sync::Arc;

use http::Response;
use stagger::{Clock, Generation, Guards, Phase, Policy, Reconnect, Seed, Step, Stop, Tokio};
use tokio::time::{Instant, Sleep, sleep};

use super::builder::ClientBuilder;
use super::classify::{Classification, Classifier, Health};
use super::connection::{ConnectionEnd, ConnectionParts};
use super::dialer::{Dialer, WebSocket};
use super::request::ConnectAttempt;
use super::telemetry::{self, ConnectedGauge};
use super::{Closed, Connection, ConnectionError, Fatal};

/// Hands out one connection at a time, and makes the next one when it is lost.
///
/// Subscribing again is ordinary code, and nothing leaks from one connection into the next. Every decision is
/// [`Reconnect`]'s: the spread before the first attempt after a loss, backoff after it, a count that starts again only
/// after a connection that was healthy, and when to give up. What a close code or a refusal means is in
/// [`codes`](crate::codes) and on the [first page](crate#what-a-failure-means).
///
/// ```no_run
/// // Needs a server.
/// use futures_util::{SinkExt, StreamExt};
/// use stagger_ws::{Fatal, Message, ReconnectLoop};
///
/// # async fn feed() -> Result<(), Fatal> {
/// let mut links = ReconnectLoop::builder().url("wss://feed.example/v1").reconnect_loop();
/// while let Some(mut link) = links.next_connection().await? {
///     if link.send(Message::text("subscribe")).await.is_ok() {
///         while let Some(Ok(message)) = link.next().await {
///             println!("{message}");
///         }
///     }
/// }
/// # Ok(()) }
/// ```
pub struct ReconnectLoop {
    dialer: Arc<Dialer>,
    policy: Policy,
    seed: Seed,
    classifier: Classifier,
    target: Arc<str>,
    keepalive: Option<(Duration, Duration)>,
    close_timeout: Duration,
    on_closed: Option<OnClosed>,
    machine: Reconnect,
    activity: Activity,
    /// The wait before the attempt that is made.
    last_wait: Duration,
    /// When there was a connection last.
    down_since: Option<Instant>,
    connected: Option<ConnectedGauge>,
    end: Option<ConnectionEnd>,
}

/// Announced of every failed attempt and every loss.
pub(super) type OnClosed = Box<dyn FnMut(&Closed) + Send + Sync>;

type ConnectFuture = Pin<Box<dyn Future<Output = Result<(WebSocket, Response<()>), ConnectionError>> + Send>>;

/// What is being done. It outlives the future of whoever asked for it, so nobody who is cancelled loses an attempt.
enum Activity {
    /// Nothing yet, or what was asked for by [`ReconnectLoop::reconnect_now`].
    Start,
    Connecting(Generation, ConnectFuture, Announced),
    Waiting(Pin<Box<Sleep>>),
    /// A connection is out.
    Connected(Generation),
    Stopped(Option<Fatal>),
}

/// Whether it is known that the attempt has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Announced {
    Yes,
    No,
}

/// What happened.
pub(super) enum LoopEvent {
    /// An attempt begins.
    Connecting,
    Opened(Box<ConnectionParts>),
    Closed(Closed),
    /// Without an error, if the server ended it as it should, or this side did.
    Stopped(Option<Fatal>),
}

impl ReconnectLoop {
    /// What can be said about how it connects. [`ClientBuilder::reconnect_loop`] makes it.
    #[must_use]
    pub fn builder() -> ClientBuilder {
        ClientBuilder::new()
    }

    pub(super) fn new(builder: ClientBuilder) -> Self {
        let ClientBuilder { policy, seed, target, keepalive, close_timeout, on_closed, .. } = builder;
        Self {
            dialer: Arc::new(builder.dialer),
            policy,
            seed,
            classifier: builder.classifier.shrunk(),
            target,
            keepalive,
            close_timeout,
            on_closed,
            machine: Reconnect::new(seed),
            activity: Activity::Start,
            last_wait: Duration::ZERO,
            down_since: None,
            connected: None,
            end: None,
        }
    }

    /// The next connection: the first one at once, each further one after the loss of the one before and the wait that the
    /// policy asks for. `None` after the server has ended the last one as it should, with code 1000, and after
    /// [`close`](Self::close).
    ///
    /// Cancel-safe: called again, it goes on with the wait or the attempt that it was in.
    ///
    /// # Errors
    /// [`Fatal`] when nothing more is tried; then always, until [`reconnect_now`](Self::reconnect_now).
    pub async fn next_connection(&mut self) -> Result<Option<Connection<'_>>, Fatal> {
        let parts = loop {
            match self.next_event().await {
                LoopEvent::Opened(parts) => break parts,
                LoopEvent::Connecting | LoopEvent::Closed(_) => {}
                LoopEvent::Stopped(None) => return Ok(None),
                LoopEvent::Stopped(Some(fatal)) => return Err(fatal),
            }
        };
        Ok(Some(self.connection(*parts)))
    }

    /// Has the next connection made at once, with the count started again: in the middle of a wait, or after giving up.
    /// After [`close`](Self::close) it does nothing.
    pub fn reconnect_now(&mut self) {
        if self.machine.phase() == Phase::Closed {
            return;
        }
        self.record_replaced();
        self.classifier.reset();
        self.activity = Activity::Start;
    }

    /// Ends it: whatever it was activity is dropped, its timer too, and there are no further connections.
    pub fn close(&mut self) {
        self.machine.close(|| Tokio.now(), &Guards::none());
        self.connected = None;
        self.activity = Activity::Stopped(None);
    }

    /// The attempts made since the last connection that was healthy.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.machine.attempt()
    }

    /// When the next attempt is made, while it waits for one.
    #[must_use]
    pub fn next_attempt_at(&self) -> Option<Instant> {
        match &self.activity {
            Activity::Waiting(sleep) => Some(sleep.deadline()),
            _ => None,
        }
    }

    /// The connection, and the place where it writes its end.
    pub(super) fn connection(&mut self, parts: ConnectionParts) -> Connection<'_> {
        self.end = None;
        Connection::new(parts, &mut self.end)
    }

    /// What happens next. Cancel-safe: everything that goes on is kept here.
    pub(super) async fn next_event(&mut self) -> LoopEvent {
        loop {
            match &mut self.activity {
                Activity::Start => {
                    let step = self.machine.reconnect_now(&self.policy, || Tokio.now(), &Guards::none());
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
                            telemetry::record_attempt(&self.target, cause.name());
                            let classification = self.classifier.classify_attempt(&cause);
                            return LoopEvent::Closed(self.closed(generation, cause, classification, Duration::ZERO));
                        }
                    }
                }
                Activity::Waiting(sleep) => {
                    sleep.as_mut().await;
                    let step = self.machine.due(&self.policy, Tokio.now(), &Guards::none());
                    self.apply(&step, Duration::ZERO);
                }
                Activity::Connected(generation) => {
                    let generation = *generation;
                    // A connection that was never dropped, only forgotten, is as good as lost.
                    let end = self
                        .end
                        .take()
                        .unwrap_or_else(|| ConnectionEnd { cause: ConnectionError::ClosedLocally, at: Instant::now() });
                    self.down_since = Some(end.at);
                    self.connected = None;
                    let classification = self.classifier.classify_loss(&end.cause, generation, &self.policy, self.seed);
                    return LoopEvent::Closed(self.closed(generation, end.cause, classification, end.at.elapsed()));
                }
                Activity::Stopped(fatal) => return LoopEvent::Stopped(fatal.clone()),
            }
        }
    }

    /// Notes what is not told otherwise if a connection is replaced.
    fn record_replaced(&mut self) {
        if let Activity::Connected(_) = self.activity {
            let end = self.end.take();
            self.down_since = Some(end.map_or_else(Instant::now, |end| end.at));
        }
        self.connected = None;
    }

    fn open(&mut self, generation: Generation, socket: WebSocket, response: Response<()>) -> ConnectionParts {
        telemetry::record_attempt(&self.target, "opened");
        let attempt = self.machine.attempt();
        // Its own generation, so it cannot be stale.
        let _ = self.machine.opened(generation, || Tokio.now(), &Guards::none());
        self.classifier.opened();
        self.activity = Activity::Connected(generation);
        self.end = None;
        self.connected = Some(ConnectedGauge::new(&self.target));
        let downtime = self.down_since.take().map(|since| since.elapsed());
        #[cfg(feature = "metrics")]
        if let Some(downtime) = downtime {
            telemetry::record_downtime(&self.target, downtime);
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

    /// An attempt or a connection has been over for so long: the machine says what comes next.
    fn closed(
        &mut self,
        generation: Generation,
        cause: ConnectionError,
        classification: Classification,
        ago: Duration,
    ) -> Closed {
        let nanos = u64::try_from(ago.as_nanos()).unwrap_or(u64::MAX);
        let at = stagger::Instant::from_nanos(Tokio.now().as_nanos().saturating_sub(nanos));
        let attempt = self.machine.attempt();
        if classification.health == Health::Unhealthy {
            self.machine.distrust(generation);
        }
        let step = self.machine.ended(generation, classification.outcome, at, &self.policy, &Guards::none());
        let retry_in = match step {
            Step::Wait { after, .. } => Some(after.saturating_sub(ago)),
            _ => None,
        };
        let mut stopped = None;
        if let Step::GiveUp(stop) = step {
            let is_normal_end = stop == Stop::Permanent && self.classifier.is_normal_end(&cause);
            stopped = (!is_normal_end).then_some(stop);
            self.activity = Activity::Stopped(stopped.map(|stop| Fatal::new(stop, cause.clone(), attempt)));
        } else {
            self.apply(&step, ago);
        }
        let closed = Closed { cause, retry_in, attempt };
        telemetry::log_closed(&self.target, &closed, stopped);
        if let Some(on_closed) = &mut self.on_closed {
            on_closed(&closed);
        }
        closed
    }

    /// Does what the machine says about what was so long ago.
    fn apply(&mut self, step: &Step, ago: Duration) {
        self.activity = match *step {
            Step::Connect { generation } => {
                let attempt = ConnectAttempt {
                    number: self.machine.attempt(),
                    auth_rejection: self.classifier.last_auth_rejection(),
                };
                let connect = Arc::clone(&self.dialer).connect(attempt);
                Activity::Connecting(
                    generation,
                    telemetry::in_span(connect, attempt.number, self.last_wait),
                    Announced::No,
                )
            }
            Step::Wait { after, .. } => {
                self.last_wait = after;
                Activity::Waiting(Box::pin(sleep(after.saturating_sub(ago))))
            }
            Step::GiveUp(stop) => {
                Activity::Stopped(Some(Fatal::new(stop, ConnectionError::ClosedLocally, self.machine.attempt())))
            }
            _ => return,
        };
    }
}

impl fmt::Debug for ReconnectLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReconnectLoop")
            .field("target", &self.target)
            .field("policy", &self.policy)
            .field("machine", &self.machine)
            .finish_non_exhaustive()
    }
}
