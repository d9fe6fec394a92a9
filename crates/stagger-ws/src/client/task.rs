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

use super::acked::AckDelivery;
use super::builder::MAX_DURATION;
use super::deadline_timer::DeadlineTimer;
use super::event_buffer::{Delivery, EventBuffer};
use super::handle::{Command, Shared};
use super::outbox::{Completion, LinkState, SendErrorKind};
use super::reconnect_loop::LoopEvent;
use super::resume::ResumeHandshake;
use super::{Closed, Connection, ConnectionError, ConnectionState, Event, Fatal, Opened, ReconnectLoop};

/// How many messages go one way before the other way, and other tasks, have their turn.
const MESSAGES_PER_POLL: usize = 64;

/// The task that owns a client's connection. It alone makes it, reads it, writes it and lets go of it; everybody else
/// asks.
pub(super) struct ConnectionTask {
    reconnect: ReconnectLoop,
    session: Session,
}

/// What comes in from the client and its handles, and what goes out to them.
struct Session {
    shared: Arc<Shared>,
    commands: UnboundedReceiver<Command>,
    events: Sender<Delivery>,
    state: watch::Sender<ConnectionState>,
    buffer: EventBuffer,
    /// Those whose messages are being written.
    writing: Vec<Completion>,
    /// For the message that has waited too long next.
    expiry_timer: DeadlineTimer,
    /// For the acknowledgement that will have been ack_timer for too long next.
    ack_timer: DeadlineTimer,
    /// Asks the server whether it goes on where it left off.
    resume: Option<Box<ResumeHandshake>>,
    /// Dropped when everything else is: who asked for the end hears of it then.
    done: Option<oneshot::Sender<()>>,
}

/// What there is to do.
enum Wakeup {
    Command(Command),
    Loop(LoopEvent),
}

/// Whether anything is phase to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskPhase {
    Running,
    /// Not before a command comes.
    Idle,
    /// Never more.
    Finished,
}

impl ConnectionTask {
    pub(super) fn new(
        reconnect: ReconnectLoop,
        shared: Arc<Shared>,
        commands: UnboundedReceiver<Command>,
        events: Sender<Delivery>,
        state: watch::Sender<ConnectionState>,
        resume: Option<Box<ResumeHandshake>>,
    ) -> Self {
        let (buffer, writing) = (EventBuffer::default(), Vec::new());
        let (expiry_timer, ack_timer) = (DeadlineTimer::default(), DeadlineTimer::default());
        let session =
            Session { shared, commands, events, state, buffer, writing, expiry_timer, ack_timer, resume, done: None };
        Self { reconnect, session }
    }

    #[expect(
        clippy::manual_async_fn,
        reason = "an `async fn` keeps what it is given twice: a kilobyte for every client"
    )]
    pub(super) fn run(mut self) -> impl Future<Output = ()> + Send {
        async move {
            let mut phase = TaskPhase::Running;
            while phase != TaskPhase::Finished {
                phase = match self.next_wakeup(phase).await {
                    Wakeup::Command(command) => self.handle_command(command),
                    Wakeup::Loop(LoopEvent::Opened(mut parts)) => {
                        let response = core::mem::take(&mut parts.response);
                        let (attempt, downtime) = (parts.attempt, parts.downtime);
                        let opened = Opened { attempt, response, downtime, resumed: false, resent: 0 };
                        let mut connection = self.reconnect.connection(*parts);
                        match self.session.run_connection(&mut connection, opened).await {
                            None => self.session.on_disconnected(),
                            Some(Command::Close(done)) => {
                                self.session.done = Some(done);
                                self.session.shared.set_link(LinkState::Closed);
                                let attempt = connection.attempt();
                                connection.close_handshake(|message| self.session.process_ack(message)).await;
                                return self.session.on_closed(Closed {
                                    cause: ConnectionError::ClosedLocally,
                                    retry_in: None,
                                    attempt,
                                });
                            }
                            Some(Command::Shutdown) => return,
                            Some(Command::ReconnectNow) => {
                                let attempt = connection.attempt();
                                drop(connection);
                                self.session.on_disconnected();
                                self.session.on_closed(Closed {
                                    cause: ConnectionError::ClosedLocally,
                                    retry_in: Some(Duration::ZERO),
                                    attempt,
                                });
                                self.restart();
                            }
                        }
                        TaskPhase::Running
                    }
                    Wakeup::Loop(LoopEvent::Connecting) => {
                        self.session.state.send_replace(ConnectionState::Connecting);
                        TaskPhase::Running
                    }
                    Wakeup::Loop(LoopEvent::Closed(closed)) => {
                        self.session.on_closed(closed);
                        TaskPhase::Running
                    }
                    Wakeup::Loop(LoopEvent::Stopped(fatal)) => {
                        self.session.on_stopped(fatal);
                        TaskPhase::Idle
                    }
                };
            }
        }
    }

    async fn next_wakeup(&mut self, phase: TaskPhase) -> Wakeup {
        let Self { reconnect, session } = self;
        let mut happens = pin!(reconnect.next_event());
        poll_fn(|cx| {
            if let Poll::Ready(command) = session.poll_command(cx) {
                return Poll::Ready(Wakeup::Command(command));
            }
            // Whether there is room for a message does not matter: there are none.
            let _ = session.buffer.poll_deliver(&mut session.events, cx);
            match phase {
                TaskPhase::Running => happens.as_mut().poll(cx).map(Wakeup::Loop),
                TaskPhase::Idle | TaskPhase::Finished => Poll::Pending,
            }
        })
        .await
    }

    /// A command while there is no connection.
    fn handle_command(&mut self, command: Command) -> TaskPhase {
        match command {
            Command::ReconnectNow => {
                self.restart();
                TaskPhase::Running
            }
            Command::Close(done) => {
                self.session.done = Some(done);
                TaskPhase::Finished
            }
            Command::Shutdown => TaskPhase::Finished,
        }
    }

    fn restart(&mut self) {
        // In this order, or somebody would see it reconnects_handled and still closed.
        self.session.state.send_replace(ConnectionState::Connecting);
        self.session.shared.reconnects_handled.fetch_add(1, Ordering::AcqRel);
        self.session.buffer.cancel_end();
        self.session.shared.set_link(LinkState::Down);
        self.reconnect.reconnect_now();
    }
}

impl Session {
    fn on_opened(&mut self, mut opened: Opened) {
        opened.resent = self.shared.set_link(LinkState::Up);
        self.buffer.opened(opened);
        self.state.send_replace(ConnectionState::Open);
    }

    /// The connection is gone, and with it what was being written.
    fn on_disconnected(&mut self) {
        for completion in self.writing.drain(..) {
            self.shared.outbox.complete(completion, Err(SendErrorKind::Lost));
        }
        self.shared.set_link(LinkState::Down);
    }

    fn on_closed(&mut self, closed: Closed) {
        if let Some(retry_in) = closed.retry_in {
            let now = Instant::now();
            // Too far away to be told: that is as good as never.
            let until = now.checked_add(retry_in).unwrap_or(now + MAX_DURATION);
            self.state.send_replace(ConnectionState::Waiting { until });
        }
        self.buffer.closed(closed);
    }

    fn on_stopped(&mut self, fatal: Option<Fatal>) {
        self.shared.set_link(LinkState::GaveUp);
        self.state.send_replace(ConnectionState::Closed(fatal.clone()));
        self.buffer.end(fatal, self.shared.reconnects_handled.load(Ordering::Acquire));
    }

    /// Commands; and what has to be seen to, whatever else is done.
    fn poll_command(&mut self, cx: &mut Context<'_>) -> Poll<Command> {
        if let Poll::Ready(Some(command)) = self.commands.poll_next_unpin(cx) {
            return Poll::Ready(command);
        }
        loop {
            let (dropped, until) = self.shared.outbox.drop_expired(cx);
            self.buffer.dropped(dropped);
            if self.expiry_timer.poll(until, cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// From the first words to the end, or to a command.
    async fn run_connection(&mut self, connection: &mut Connection<'_>, opened: Opened) -> Option<Command> {
        if self.resume.is_none() {
            self.on_opened(opened);
        } else if let Err(command) = Box::pin(self.negotiate_resume(connection, opened)).await {
            // In a box, for most clients have no use for it.
            return command;
        }
        poll_fn(|cx| self.poll_connection(connection, cx)).await
    }

    /// Has it decided whether the server goes on; otherwise a command has come, or the connection ended.
    async fn negotiate_resume(
        &mut self,
        connection: &mut Connection<'_>,
        mut opened: Opened,
    ) -> Result<(), Option<Command>> {
        if let Some(mut resume) = self.resume.take() {
            let negotiated = {
                let mut negotiation = pin!(resume.negotiate(connection, &opened.response));
                poll_fn(|cx| {
                    if let Poll::Ready(command) = self.poll_command(cx) {
                        return Poll::Ready(Err(Some(command)));
                    }
                    let _ = self.buffer.poll_deliver(&mut self.events, cx);
                    negotiation.as_mut().poll(cx).map(|negotiated| negotiated.ok_or(None))
                })
                .await
            };
            // What the server says it has is not sent again; each is looked at once more when it is shown.
            resume.buffered().for_each(|message| {
                self.process_ack(message);
            });
            self.resume = Some(resume);
            opened.resumed = negotiated?;
        }
        self.on_opened(opened);
        Ok(())
    }

    /// Has a message looked at that came.
    fn process_message(&self, message: &Message) -> AckDelivery {
        if let Some(resume) = &self.resume {
            resume.observe(message);
        }
        self.process_ack(message)
    }

    /// As [`process_message`](Self::process_message), of a message that nobody will see: it moves no position.
    fn process_ack(&self, message: &Message) -> AckDelivery {
        self.shared.window.as_ref().map_or(AckDelivery::PassThrough, |window| window.process_incoming(message))
    }

    /// Reads and writes, both bounded, until a command comes or the connection has ended: `None`.
    fn poll_connection(&mut self, connection: &mut Connection<'_>, cx: &mut Context<'_>) -> Poll<Option<Command>> {
        if let Poll::Ready(command) = self.poll_command(cx) {
            return Poll::Ready(Some(command));
        }
        let write_error = self.poll_write(connection, cx);
        for _ in 0..MESSAGES_PER_POLL {
            // A message is only taken out of the connection when there is room for it.
            if self.buffer.poll_deliver(&mut self.events, cx).is_pending() {
                return Self::ended_if(connection, write_error);
            }
            let received = match self.resume.as_mut().and_then(|resume| resume.next_buffered()) {
                Some(message) => Poll::Ready(Some(Ok(message))),
                None => connection.poll_next_unpin(cx),
            };
            match received {
                Poll::Ready(Some(Ok(message))) => {
                    if self.process_message(&message) == AckDelivery::PassThrough {
                        // There was room, and this is the only sender.
                        let _ = self.events.start_send(Delivery::Event(Event::Message(message)));
                    }
                }
                Poll::Ready(_) => return Poll::Ready(None),
                Poll::Pending => {
                    let write_error = write_error.or_else(|| self.poll_ack_timeout(cx));
                    return Self::ended_if(connection, write_error);
                }
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }

    /// What came has been read: an acknowledgement that has been ack_timer for too long is not among it.
    fn poll_ack_timeout(&mut self, cx: &mut Context<'_>) -> Option<ConnectionError> {
        let window = self.shared.window.as_ref()?;
        let after = window.timeout()?;
        self.ack_timer.poll(window.due(), cx).is_ready().then_some(ConnectionError::AckTimeout { after })
    }

    /// What could be read has been read. If nothing can be written any more, that is the end of it: nobody may be reading
    /// who would find the other end.
    fn ended_if(connection: &mut Connection<'_>, write_error: Option<ConnectionError>) -> Poll<Option<Command>> {
        match write_error {
            None => Poll::Pending,
            Some(cause) => {
                connection.record_end(cause);
                Poll::Ready(None)
            }
        }
    }

    /// Writes what the connection takes. Why it can no longer be written to, if it cannot.
    fn poll_write(&mut self, connection: &mut Connection<'_>, cx: &mut Context<'_>) -> Option<ConnectionError> {
        let outbox = &self.shared.outbox;
        for written in 0.. {
            match connection.poll_ready_unpin(cx) {
                Poll::Ready(Ok(())) if written < MESSAGES_PER_POLL => {}
                Poll::Ready(Ok(())) => {
                    cx.waker().wake_by_ref();
                    break;
                }
                Poll::Ready(Err(cause)) => return Some(cause),
                Poll::Pending => break,
            }
            let Poll::Ready((message, completion)) = self.shared.poll_next(cx) else { break };
            match connection.start_send_unpin(message) {
                Ok(()) => self.writing.push(completion),
                // It alone does not fit; the connection is as good as before.
                Err(ConnectionError::InvalidRequest(_)) => self.shared.fail_unwritable(completion),
                Err(cause) => {
                    outbox.complete(completion, Err(SendErrorKind::Lost));
                    return Some(cause);
                }
            }
        }
        if self.writing.is_empty() {
            return None;
        }
        match connection.poll_flush_unpin(cx) {
            Poll::Ready(Ok(())) => {
                self.writing.drain(..).for_each(|completion| outbox.complete(completion, Ok(())));
                None
            }
            Poll::Ready(Err(cause)) => Some(cause),
            Poll::Pending => None,
        }
    }
}

/// However the task ends, nobody waits for it.
impl Drop for Session {
    fn drop(&mut self) {
        self.on_disconnected();
        self.shared.set_link(LinkState::Closed);
        self.state.send_replace(ConnectionState::Closed(None));
        // What there is room for; the stream ends in any case.
        let mut cx = Context::from_waker(core::task::Waker::noop());
        let _ = self.buffer.poll_deliver(&mut self.events, &mut cx);
    }
}
