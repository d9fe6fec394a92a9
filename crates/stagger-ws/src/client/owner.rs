use core::future::poll_fn;
use core::pin::pin;
use core::sync::atomic::Ordering;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::Arc;

use futures_channel::mpsc::{Sender, UnboundedReceiver};
use futures_util::{SinkExt, StreamExt};
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;

use super::acked::Passing;
use super::alarm::Alarm;
use super::backlog::{Backlog, Delivery};
use super::builder::FAR;
use super::handle::{Command, Shared};
use super::outbox::{Gate, SendErrorKind, Via};
use super::reconnect_loop::Happening;
use super::resume::Resuming;
use super::{Closed, Connection, ConnectionError, ConnectionState, Event, Fatal, Opened, ReconnectLoop};

/// How many messages go one way before the other way, and other tasks, have their turn.
const TURN: usize = 64;

/// The task that owns a client's connection. It alone makes it, reads it, writes it and lets go of it; everybody else
/// asks.
pub(super) struct Owner {
    links: ReconnectLoop,
    desk: Desk,
}

/// What comes in from the client and its handles, and what goes out to them.
struct Desk {
    shared: Arc<Shared>,
    commands: UnboundedReceiver<Command>,
    events: Sender<Delivery>,
    state: watch::Sender<ConnectionState>,
    backlog: Backlog,
    /// Those whose messages are being written.
    writing: Vec<Via>,
    /// For the message that has waited too long next.
    expiry: Alarm,
    /// For the acknowledgement that will have been missing for too long next.
    missing: Alarm,
    /// Asks the server whether it goes on where it left off.
    resuming: Option<Box<Resuming>>,
    /// Dropped when everything else is: who asked for the end hears of it then.
    done: Option<oneshot::Sender<()>>,
}

/// What there is to do.
enum Turn {
    Obey(Command),
    Happened(Happening),
}

/// Whether anything is going to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Going {
    On,
    /// Not before a command comes.
    Nowhere,
    /// Never more.
    Home,
}

impl Owner {
    pub(super) fn new(
        links: ReconnectLoop,
        shared: Arc<Shared>,
        commands: UnboundedReceiver<Command>,
        events: Sender<Delivery>,
        state: watch::Sender<ConnectionState>,
        resuming: Option<Box<Resuming>>,
    ) -> Self {
        let (backlog, writing) = (Backlog::default(), Vec::new());
        let (expiry, missing) = (Alarm::default(), Alarm::default());
        let desk = Desk { shared, commands, events, state, backlog, writing, expiry, missing, resuming, done: None };
        Self { links, desk }
    }

    #[expect(
        clippy::manual_async_fn,
        reason = "an `async fn` keeps what it is given twice: a kilobyte for every client"
    )]
    pub(super) fn run(mut self) -> impl Future<Output = ()> + Send {
        async move {
            let mut going = Going::On;
            while going != Going::Home {
                going = match self.turn(going).await {
                    Turn::Obey(command) => self.obey(command),
                    Turn::Happened(Happening::Opened(mut fresh)) => {
                        let response = core::mem::take(&mut fresh.response);
                        let (attempt, downtime) = (fresh.attempt, fresh.downtime);
                        let opened = Opened { attempt, response, downtime, resumed: false, resent: 0 };
                        let mut link = self.links.lend(*fresh);
                        match self.desk.attend(&mut link, opened).await {
                            None => self.desk.down(),
                            Some(Command::Close(done)) => {
                                self.desk.done = Some(done);
                                self.desk.shared.turn(Gate::Closed);
                                let attempt = link.attempt();
                                link.say_goodbye(|message| self.desk.hear_last(message)).await;
                                return self.desk.closed(Closed {
                                    cause: ConnectionError::ClosedLocally,
                                    retry_in: None,
                                    attempt,
                                });
                            }
                            Some(Command::Leave) => return,
                            Some(Command::ReconnectNow) => {
                                let attempt = link.attempt();
                                drop(link);
                                self.desk.down();
                                self.desk.closed(Closed {
                                    cause: ConnectionError::ClosedLocally,
                                    retry_in: Some(Duration::ZERO),
                                    attempt,
                                });
                                self.revive();
                            }
                        }
                        Going::On
                    }
                    Turn::Happened(Happening::Connecting) => {
                        self.desk.state.send_replace(ConnectionState::Connecting);
                        Going::On
                    }
                    Turn::Happened(Happening::Closed(closed)) => {
                        self.desk.closed(closed);
                        Going::On
                    }
                    Turn::Happened(Happening::Ended(fatal)) => {
                        self.desk.ended(fatal);
                        Going::Nowhere
                    }
                };
            }
        }
    }

    async fn turn(&mut self, going: Going) -> Turn {
        let Self { links, desk } = self;
        let mut happens = pin!(links.happens());
        poll_fn(|cx| {
            if let Poll::Ready(command) = desk.poll_command(cx) {
                return Poll::Ready(Turn::Obey(command));
            }
            // Whether there is room for a message does not matter: there are none.
            let _ = desk.backlog.poll_deliver(&mut desk.events, cx);
            match going {
                Going::On => happens.as_mut().poll(cx).map(Turn::Happened),
                Going::Nowhere | Going::Home => Poll::Pending,
            }
        })
        .await
    }

    /// A command while there is no connection.
    fn obey(&mut self, command: Command) -> Going {
        match command {
            Command::ReconnectNow => {
                self.revive();
                Going::On
            }
            Command::Close(done) => {
                self.desk.done = Some(done);
                Going::Home
            }
            Command::Leave => Going::Home,
        }
    }

    fn revive(&mut self) {
        // In this order, or somebody would see it obeyed and still closed.
        self.desk.state.send_replace(ConnectionState::Connecting);
        self.desk.shared.obeyed.fetch_add(1, Ordering::AcqRel);
        self.desk.backlog.go_on();
        self.desk.shared.turn(Gate::Down);
        self.links.reconnect_now();
    }
}

impl Desk {
    fn opened(&mut self, mut opened: Opened) {
        opened.resent = self.shared.turn(Gate::Open);
        self.backlog.opened(opened);
        self.state.send_replace(ConnectionState::Open);
    }

    /// The connection is gone, and with it what was being written.
    fn down(&mut self) {
        for via in self.writing.drain(..) {
            self.shared.outbox.settle(via, Err(SendErrorKind::Lost));
        }
        self.shared.turn(Gate::Down);
    }

    fn closed(&mut self, closed: Closed) {
        if let Some(retry_in) = closed.retry_in {
            let now = Instant::now();
            // Too far away to be told: that is as good as never.
            let until = now.checked_add(retry_in).unwrap_or(now + FAR);
            self.state.send_replace(ConnectionState::Waiting { until });
        }
        self.backlog.closed(closed);
    }

    fn ended(&mut self, fatal: Option<Fatal>) {
        self.shared.turn(Gate::GaveUp);
        self.state.send_replace(ConnectionState::Closed(fatal.clone()));
        self.backlog.end(fatal, self.shared.obeyed.load(Ordering::Acquire));
    }

    /// Commands; and what has to be seen to, whatever else is done.
    fn poll_command(&mut self, cx: &mut Context<'_>) -> Poll<Command> {
        if let Poll::Ready(Some(command)) = self.commands.poll_next_unpin(cx) {
            return Poll::Ready(command);
        }
        loop {
            let (dropped, until) = self.shared.outbox.sweep(cx);
            self.backlog.dropped(dropped);
            if self.expiry.poll(until, cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// From the first words to the end, or to a command.
    async fn attend(&mut self, link: &mut Connection<'_>, opened: Opened) -> Option<Command> {
        if self.resuming.is_none() {
            self.opened(opened);
        } else if let Err(command) = Box::pin(self.greet(link, opened)).await {
            // In a box, for most clients have no use for it.
            return command;
        }
        poll_fn(|cx| self.poll_talk(link, cx)).await
    }

    /// Has it decided whether the server goes on; otherwise a command has come, or the connection ended.
    async fn greet(&mut self, link: &mut Connection<'_>, mut opened: Opened) -> Result<(), Option<Command>> {
        if let Some(mut resuming) = self.resuming.take() {
            let greeted = {
                let mut greets = pin!(resuming.greet(link, &opened.response));
                poll_fn(|cx| {
                    if let Poll::Ready(command) = self.poll_command(cx) {
                        return Poll::Ready(Err(Some(command)));
                    }
                    let _ = self.backlog.poll_deliver(&mut self.events, cx);
                    greets.as_mut().poll(cx).map(|greeted| greeted.ok_or(None))
                })
                .await
            };
            // What the server says it has is not sent again; each is looked at once more when it is shown.
            resuming.greeting().for_each(|message| {
                self.hear_last(message);
            });
            self.resuming = Some(resuming);
            opened.resumed = greeted?;
        }
        self.opened(opened);
        Ok(())
    }

    /// Has a message looked at that came.
    fn hear(&self, message: &Message) -> Passing {
        if let Some(resuming) = &self.resuming {
            resuming.observe(message);
        }
        self.hear_last(message)
    }

    /// As [`hear`](Self::hear), of a message that nobody will see: it moves no position.
    fn hear_last(&self, message: &Message) -> Passing {
        self.shared.window.as_ref().map_or(Passing::Show, |window| window.hear(message))
    }

    /// Reads and writes, both bounded, until a command comes or the connection has ended: `None`.
    fn poll_talk(&mut self, link: &mut Connection<'_>, cx: &mut Context<'_>) -> Poll<Option<Command>> {
        if let Poll::Ready(command) = self.poll_command(cx) {
            return Poll::Ready(Some(command));
        }
        let broken = self.write(link, cx);
        for _ in 0..TURN {
            // A message is only taken out of the connection when there is room for it.
            if self.backlog.poll_deliver(&mut self.events, cx).is_pending() {
                return Self::end(link, broken);
            }
            let came = match self.resuming.as_mut().and_then(|resuming| resuming.next()) {
                Some(message) => Poll::Ready(Some(Ok(message))),
                None => link.poll_next_unpin(cx),
            };
            match came {
                Poll::Ready(Some(Ok(message))) => {
                    if self.hear(&message) == Passing::Show {
                        // There was room, and this is the only sender.
                        let _ = self.events.start_send(Delivery::Event(Event::Message(message)));
                    }
                }
                Poll::Ready(_) => return Poll::Ready(None),
                Poll::Pending => {
                    let broken = broken.or_else(|| self.missed(cx));
                    return Self::end(link, broken);
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// What came has been read: an acknowledgement that has been missing for too long is not among it.
    fn missed(&mut self, cx: &mut Context<'_>) -> Option<ConnectionError> {
        let window = self.shared.window.as_ref()?;
        let after = window.timeout()?;
        self.missing.poll(window.due(), cx).is_ready().then_some(ConnectionError::AckTimeout { after })
    }

    /// What could be read has been read. If nothing can be written any more, that is the end of it: nobody may be reading
    /// who would find the other end.
    fn end(link: &mut Connection<'_>, broken: Option<ConnectionError>) -> Poll<Option<Command>> {
        match broken {
            None => Poll::Pending,
            Some(cause) => {
                link.over(cause);
                Poll::Ready(None)
            }
        }
    }

    /// Writes what the connection takes. Why it can no longer be written to, if it cannot.
    fn write(&mut self, link: &mut Connection<'_>, cx: &mut Context<'_>) -> Option<ConnectionError> {
        let outbox = &self.shared.outbox;
        for turn in 0.. {
            match link.poll_ready_unpin(cx) {
                Poll::Ready(Ok(())) if turn < TURN => {}
                Poll::Ready(Ok(())) => {
                    cx.waker().wake_by_ref();
                    break;
                }
                Poll::Ready(Err(cause)) => return Some(cause),
                Poll::Pending => break,
            }
            let Poll::Ready((message, via)) = self.shared.poll_take(cx) else { break };
            match link.start_send_unpin(message) {
                Ok(()) => self.writing.push(via),
                // It alone does not fit; the connection is as good as before.
                Err(ConnectionError::InvalidRequest(_)) => self.shared.never(via),
                Err(cause) => {
                    outbox.settle(via, Err(SendErrorKind::Lost));
                    return Some(cause);
                }
            }
        }
        if self.writing.is_empty() {
            return None;
        }
        match link.poll_flush_unpin(cx) {
            Poll::Ready(Ok(())) => {
                self.writing.drain(..).for_each(|via| outbox.settle(via, Ok(())));
                None
            }
            Poll::Ready(Err(cause)) => Some(cause),
            Poll::Pending => None,
        }
    }
}

/// However the task ends, nobody waits for it.
impl Drop for Desk {
    fn drop(&mut self) {
        self.down();
        self.shared.turn(Gate::Closed);
        self.state.send_replace(ConnectionState::Closed(None));
        // What there is room for; the stream ends in any case.
        let mut cx = Context::from_waker(core::task::Waker::noop());
        let _ = self.backlog.poll_deliver(&mut self.events, &mut cx);
    }
}
