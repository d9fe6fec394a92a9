use core::fmt;
use core::future::poll_fn;
use core::pin::Pin;
use core::time::Duration;
use std::sync::Arc;

use http::Response;
use stagger::{Clock, Generation, Guards, Phase, Policy, Reconnect, Seed, Step, Stop, Tokio};
use tokio::time::{Instant, Sleep, sleep};

use super::builder::ClientBuilder;
use super::connection::{End, Fresh};
use super::handshake::{Route, Socket};
use super::judge::{Judge, Trust, Verdict};
use super::observe::{self, Connected};
use super::request::ConnectAttempt;
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
    route: Arc<Route>,
    policy: Policy,
    seed: Seed,
    judge: Judge,
    target: Arc<str>,
    heartbeat: Option<(Duration, Duration)>,
    close_timeout: Duration,
    on_closed: Option<OnClosed>,
    machine: Reconnect,
    doing: Doing,
    /// The wait before the attempt that is made.
    waited: Duration,
    /// When there was a connection last.
    down_since: Option<Instant>,
    connected: Option<Connected>,
    end: Option<End>,
}

/// Told of every failed attempt and every loss.
pub(super) type OnClosed = Box<dyn FnMut(&Closed) + Send + Sync>;

type Connecting = Pin<Box<dyn Future<Output = Result<(Socket, Response<()>), ConnectionError>> + Send>>;

/// What is being done. It outlives the future of whoever asked for it, so nobody who is cancelled loses an attempt.
enum Doing {
    /// Nothing yet, or what was asked for by [`ReconnectLoop::reconnect_now`].
    Begin,
    Connect(Generation, Connecting, Told),
    Wait(Pin<Box<Sleep>>),
    /// A connection is out.
    Lent(Generation),
    Ended(Option<Fatal>),
}

/// Whether it is known that the attempt has begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Told {
    Yes,
    No,
}

/// What happened.
pub(super) enum Happening {
    /// An attempt begins.
    Connecting,
    Opened(Box<Fresh>),
    Closed(Closed),
    /// Without an error, if the server ended it as it should, or this side did.
    Ended(Option<Fatal>),
}

impl ReconnectLoop {
    /// What can be said about how it connects. [`ClientBuilder::reconnect_loop`] makes it.
    #[must_use]
    pub fn builder() -> ClientBuilder {
        ClientBuilder::new()
    }

    pub(super) fn new(builder: ClientBuilder) -> Self {
        let ClientBuilder { policy, seed, target, heartbeat, close_timeout, on_closed, .. } = builder;
        Self {
            route: Arc::new(builder.route),
            policy,
            seed,
            judge: builder.judge.settled(),
            target,
            heartbeat,
            close_timeout,
            on_closed,
            machine: Reconnect::new(seed),
            doing: Doing::Begin,
            waited: Duration::ZERO,
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
        let fresh = loop {
            match self.happens().await {
                Happening::Opened(fresh) => break fresh,
                Happening::Connecting | Happening::Closed(_) => {}
                Happening::Ended(None) => return Ok(None),
                Happening::Ended(Some(fatal)) => return Err(fatal),
            }
        };
        Ok(Some(self.lend(*fresh)))
    }

    /// Has the next connection made at once, with the count started again: in the middle of a wait, or after giving up.
    /// After [`close`](Self::close) it does nothing.
    pub fn reconnect_now(&mut self) {
        if self.machine.phase() == Phase::Closed {
            return;
        }
        self.note_end();
        self.judge.forgive();
        self.doing = Doing::Begin;
    }

    /// Ends it: whatever it was doing is dropped, its timer too, and there are no further connections.
    pub fn close(&mut self) {
        self.machine.close(|| Tokio.now(), &Guards::none());
        self.connected = None;
        self.doing = Doing::Ended(None);
    }

    /// The attempts made since the last connection that was healthy.
    #[must_use]
    pub const fn attempt(&self) -> u32 {
        self.machine.attempt()
    }

    /// When the next attempt is made, while it waits for one.
    #[must_use]
    pub fn next_attempt_at(&self) -> Option<Instant> {
        match &self.doing {
            Doing::Wait(sleep) => Some(sleep.deadline()),
            _ => None,
        }
    }

    /// The connection, and the place where it writes its end.
    pub(super) fn lend(&mut self, fresh: Fresh) -> Connection<'_> {
        self.end = None;
        Connection::new(fresh, &mut self.end)
    }

    /// What happens next. Cancel-safe: everything that goes on is kept here.
    pub(super) async fn happens(&mut self) -> Happening {
        loop {
            match &mut self.doing {
                Doing::Begin => {
                    let step = self.machine.reconnect_now(&self.policy, || Tokio.now(), &Guards::none());
                    self.waited = Duration::ZERO;
                    self.go(&step, Duration::ZERO);
                }
                Doing::Connect(_, _, told @ Told::No) => {
                    *told = Told::Yes;
                    return Happening::Connecting;
                }
                Doing::Connect(generation, connecting, Told::Yes) => {
                    let generation = *generation;
                    match poll_fn(|cx| connecting.as_mut().poll(cx)).await {
                        Ok((socket, response)) => {
                            return Happening::Opened(Box::new(self.open(generation, socket, response)));
                        }
                        Err(cause) => {
                            observe::attempted(&self.target, cause.name());
                            let verdict = self.judge.failed(&cause);
                            return Happening::Closed(self.ended(generation, cause, verdict, Duration::ZERO));
                        }
                    }
                }
                Doing::Wait(sleep) => {
                    sleep.as_mut().await;
                    let step = self.machine.due(&self.policy, Tokio.now(), &Guards::none());
                    self.go(&step, Duration::ZERO);
                }
                Doing::Lent(generation) => {
                    let generation = *generation;
                    // A connection that was never dropped, only forgotten, is as good as lost.
                    let end = self
                        .end
                        .take()
                        .unwrap_or_else(|| End { cause: ConnectionError::ClosedLocally, at: Instant::now() });
                    self.down_since = Some(end.at);
                    self.connected = None;
                    let verdict = self.judge.ended(&end.cause, generation, &self.policy, self.seed);
                    return Happening::Closed(self.ended(generation, end.cause, verdict, end.at.elapsed()));
                }
                Doing::Ended(fatal) => return Happening::Ended(fatal.clone()),
            }
        }
    }

    /// Notes what is not told otherwise if a connection is replaced.
    fn note_end(&mut self) {
        if let Doing::Lent(_) = self.doing {
            let end = self.end.take();
            self.down_since = Some(end.map_or_else(Instant::now, |end| end.at));
        }
        self.connected = None;
    }

    fn open(&mut self, generation: Generation, socket: Socket, response: Response<()>) -> Fresh {
        observe::attempted(&self.target, "opened");
        let attempt = self.machine.attempt();
        // Its own generation, so it cannot be stale.
        let _ = self.machine.opened(generation, || Tokio.now(), &Guards::none());
        self.judge.opened();
        self.doing = Doing::Lent(generation);
        self.end = None;
        self.connected = Some(Connected::new(&self.target));
        let downtime = self.down_since.take().map(|since| since.elapsed());
        #[cfg(feature = "metrics")]
        if let Some(downtime) = downtime {
            observe::back_after(&self.target, downtime);
        }
        Fresh { socket, response, attempt, downtime, heartbeat: self.heartbeat, close_timeout: self.close_timeout }
    }

    /// An attempt or a connection has been over for so long: the machine says what comes next.
    fn ended(&mut self, generation: Generation, cause: ConnectionError, verdict: Verdict, ago: Duration) -> Closed {
        let nanos = u64::try_from(ago.as_nanos()).unwrap_or(u64::MAX);
        let at = stagger::Instant::from_nanos(Tokio.now().as_nanos().saturating_sub(nanos));
        let attempt = self.machine.attempt();
        if verdict.trust == Trust::None {
            self.machine.distrust(generation);
        }
        let step = self.machine.ended(generation, verdict.outcome, at, &self.policy, &Guards::none());
        let retry_in = match step {
            Step::Wait { after, .. } => Some(after.saturating_sub(ago)),
            _ => None,
        };
        let mut stopped = None;
        if let Step::GiveUp(stop) = step {
            let is_the_end = stop == Stop::Permanent && self.judge.is_the_end(&cause);
            stopped = (!is_the_end).then_some(stop);
            self.doing = Doing::Ended(stopped.map(|stop| Fatal::new(stop, cause.clone(), attempt)));
        } else {
            self.go(&step, ago);
        }
        let closed = Closed { cause, retry_in, attempt };
        observe::closed(&self.target, &closed, stopped);
        if let Some(on_closed) = &mut self.on_closed {
            on_closed(&closed);
        }
        closed
    }

    /// Does what the machine says about what was so long ago.
    fn go(&mut self, step: &Step, ago: Duration) {
        self.doing = match *step {
            Step::Connect { generation } => {
                let attempt = ConnectAttempt { number: self.machine.attempt(), refused: self.judge.refused() };
                let connect = Arc::clone(&self.route).connect(attempt);
                Doing::Connect(generation, observe::attempt(connect, attempt.number, self.waited), Told::No)
            }
            Step::Wait { after, .. } => {
                self.waited = after;
                Doing::Wait(Box::pin(sleep(after.saturating_sub(ago))))
            }
            Step::GiveUp(stop) => {
                Doing::Ended(Some(Fatal::new(stop, ConnectionError::ClosedLocally, self.machine.attempt())))
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
