use core::future::poll_fn;
use core::pin::pin;
use core::sync::atomic::Ordering;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::Arc;

use futures_channel::mpsc::{Sender, UnboundedReceiver};
use futures_util::{SinkExt, StreamExt};
use stagger::machine::Unreachable;
use tokio::sync::{oneshot, watch};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::Message;

use super::ack_window::AckDelivery;
use super::connection::Connection;
use super::events::{ConnectionState, Delivery, Event, EventBuffer, Opened};
use super::failure::{Closed, ConnectionError, Fatal};
use super::handle::{ClientState, Command};
use super::outbox::SendErrorKind;
use super::outbox_queue::{Completion, LinkState};
use super::reconnect_loop::{LoopEvent, ReconnectLoop};
use super::resume::ResumeHandshake;
use super::timer::DeadlineTimer;
use crate::sync::saturating_add;

/// The most messages moved in one direction per poll, before the other direction and other tasks get a turn.
const MESSAGES_PER_POLL: usize = 64;

/// The task that owns a client's connection. Only this task opens, reads, writes and closes it; the client and its
/// handles send it commands.
///
/// What must be settled when a connection opens is settled here: which messages are sent again, and whether the server
/// resumes. The reader of the events may see `Open` only when that connection is already lost, which is too late.
pub(super) struct ConnectionTask {
    reconnect: ReconnectLoop,
    session: Session,
}

/// Everything the task needs besides the reconnect loop, which an open connection borrows.
struct Session {
    shared: Arc<ClientState>,
    commands: UnboundedReceiver<Command>,
    events: Sender<Delivery>,
    state: watch::Sender<ConnectionState>,
    buffer: EventBuffer,
    /// One entry for each message that is written but not flushed.
    writing: Vec<Completion>,
    /// Fires when the oldest message in the outbox expires.
    expiry_timer: DeadlineTimer,
    /// Fires when the oldest unacknowledged message times out.
    ack_timer: DeadlineTimer,
    /// Negotiates resumption on each new connection, if the client has a [`Resume`](crate::Resume).
    resume: Option<Box<ResumeHandshake>>,
    /// Dropped with everything else, which completes [`Handle::close`](crate::Handle::close).
    done: Option<oneshot::Sender<()>>,
}

/// What woke the task.
enum Wakeup {
    Command(Command),
    Loop(LoopEvent),
}

/// Whether the task has anything to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskPhase {
    Running,
    /// Waits for a command; the reconnect loop has stopped.
    Idle,
    /// Ends.
    Finished,
}

impl ConnectionTask {
    pub(super) fn new(
        reconnect: ReconnectLoop,
        shared: Arc<ClientState>,
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

    #[expect(clippy::manual_async_fn, reason = "an `async fn` stores its arguments twice: a kilobyte per client")]
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
                                return self.session.on_closed_locally(attempt, None);
                            }
                            Some(Command::Shutdown) => return,
                            Some(Command::ReconnectNow) => {
                                let attempt = connection.attempt();
                                drop(connection);
                                self.session.on_disconnected();
                                self.session.on_closed_locally(attempt, Some(Duration::ZERO));
                                self.restart();
                            }
                        }
                        TaskPhase::Running
                    }
                    Wakeup::Loop(LoopEvent::Connecting) => {
                        let unreachable = self.reconnect.unreachable();
                        self.session.state.send_replace(ConnectionState::Connecting { unreachable });
                        TaskPhase::Running
                    }
                    Wakeup::Loop(LoopEvent::Postponed(after)) => {
                        self.session.set_waiting(after, self.reconnect.unreachable());
                        TaskPhase::Running
                    }
                    Wakeup::Loop(LoopEvent::Closed { closed, report }) => {
                        self.session.on_closed(closed);
                        if let Some(unreachable) = report {
                            self.session.buffer.unreachable(unreachable);
                        }
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
        let mut event = pin!(reconnect.next_event());
        poll_fn(|cx| {
            if let Poll::Ready(command) = session.poll_command(cx) {
                return Poll::Ready(Wakeup::Command(command));
            }
            // The result does not matter: without a connection there are no messages to deliver.
            let _ = session.buffer.poll_deliver(&mut session.events, cx);
            match phase {
                TaskPhase::Running => event.as_mut().poll(cx).map(Wakeup::Loop),
                TaskPhase::Idle | TaskPhase::Finished => Poll::Pending,
            }
        })
        .await
    }

    /// Handles a command that arrives while there is no connection.
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
        // In this order; otherwise `connected` could see the request handled while the state is still `Closed`.
        let unreachable = self.reconnect.unreachable();
        self.session.state.send_replace(ConnectionState::Connecting { unreachable });
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

    /// Fails the messages that were being written, and marks the connection as down.
    fn on_disconnected(&mut self) {
        for completion in self.writing.drain(..) {
            self.shared.outbox.complete(completion, Err(SendErrorKind::Lost));
        }
        self.shared.set_link(LinkState::Down);
    }

    fn on_closed(&mut self, closed: Closed) {
        if let Some(retry_in) = closed.retry_in {
            self.set_waiting(retry_in, closed.unreachable);
        }
        self.buffer.closed(closed);
    }

    /// Announces a wait of this length from now.
    fn set_waiting(&self, length: Duration, unreachable: Option<Unreachable>) {
        let until = saturating_add(Instant::now(), length);
        self.state.send_replace(ConnectionState::Waiting { until, unreachable });
    }

    fn on_closed_locally(&mut self, attempt: u32, retry_in: Option<Duration>) {
        self.on_closed(Closed::new(ConnectionError::ClosedLocally, retry_in, attempt, None));
    }

    fn on_stopped(&mut self, fatal: Option<Fatal>) {
        self.shared.set_link(LinkState::GaveUp);
        self.state.send_replace(ConnectionState::Closed(fatal.clone()));
        self.buffer.end(fatal, self.shared.reconnects_handled.load(Ordering::Acquire));
    }

    /// Returns the next command. Also expires messages in the outbox, whatever else the task does.
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

    /// Runs a connection from its first message until it ends (`None`) or a command arrives.
    async fn run_connection(&mut self, connection: &mut Connection<'_>, opened: Opened) -> Option<Command> {
        if self.resume.is_none() {
            self.on_opened(opened);
        } else if let Err(command) = Box::pin(self.negotiate_resume(connection, opened)).await {
            // Boxed, since most clients do not resume.
            return command;
        }
        poll_fn(|cx| self.poll_connection(connection, cx)).await
    }

    /// Negotiates resumption. Returns `Err` with the command that arrived, or with `None` if the connection ended.
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
            // Acknowledgements in the buffered messages count before anything is resent. Each message is processed once
            // more when it is delivered.
            resume.buffered().for_each(|message| {
                self.process_ack(message);
            });
            self.resume = Some(resume);
            opened.resumed = negotiated?;
        }
        self.on_opened(opened);
        Ok(())
    }

    /// Observes the position and processes acknowledgements.
    fn process_message(&self, message: &Message) -> AckDelivery {
        if let Some(resume) = &self.resume {
            resume.observe(message);
        }
        self.process_ack(message)
    }

    /// Processes acknowledgements only. For messages that are not delivered, which must not advance the position.
    fn process_ack(&self, message: &Message) -> AckDelivery {
        match &self.shared.window {
            Some(window) => window.process_incoming(message),
            None => AckDelivery::PassThrough,
        }
    }

    /// Reads and writes a bounded number of messages. Ready when a command arrives, or with `None` when the connection
    /// ends.
    fn poll_connection(&mut self, connection: &mut Connection<'_>, cx: &mut Context<'_>) -> Poll<Option<Command>> {
        if let Poll::Ready(command) = self.poll_command(cx) {
            return Poll::Ready(Some(command));
        }
        let write_error = self.poll_write(connection, cx);
        for _ in 0..MESSAGES_PER_POLL {
            // A message is read from the connection only if there is room to deliver it.
            let has_room = self.buffer.poll_deliver(&mut self.events, cx).is_ready()
                && self.shared.unread.poll_room(cx).is_ready();
            if !has_room {
                return Self::ended_if(connection, write_error);
            }
            let received = match self.resume.as_mut().and_then(|resume| resume.next_buffered()) {
                Some(message) => Poll::Ready(Some(Ok(message))),
                None => connection.poll_next_unpin(cx),
            };
            match received {
                Poll::Ready(Some(Ok(message))) => {
                    if self.process_message(&message) == AckDelivery::PassThrough {
                        self.shared.unread.add(message.len());
                        // Cannot fail: there was room, and this is the only sender.
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

    /// Returns the error if an acknowledgement is overdue. Called when everything received has been read, so the
    /// acknowledgement is not among it.
    fn poll_ack_timeout(&mut self, cx: &mut Context<'_>) -> Option<ConnectionError> {
        let window = self.shared.window.as_ref()?;
        let after = window.timeout()?;
        match self.ack_timer.poll(window.due(), cx) {
            Poll::Ready(()) => Some(ConnectionError::AckTimeout { after }),
            Poll::Pending => None,
        }
    }

    /// Ends the connection if it can no longer be written to. Everything for which there was room has been read by
    /// then. Without this check a client that only sends would never notice the loss.
    fn ended_if(connection: &mut Connection<'_>, write_error: Option<ConnectionError>) -> Poll<Option<Command>> {
        match write_error {
            None => Poll::Pending,
            Some(cause) => {
                connection.record_end(cause);
                Poll::Ready(None)
            }
        }
    }

    /// Writes what the connection accepts. Returns the error if it can no longer be written to.
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
                // Only this message exceeds the write buffer; the connection is still usable.
                Err(ConnectionError::WriteBufferFull) => self.shared.fail_unwritable(completion),
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

/// Completes everything that waits for the task, however the task ends.
impl Drop for Session {
    fn drop(&mut self) {
        self.on_disconnected();
        self.shared.set_link(LinkState::Closed);
        self.state.send_replace(ConnectionState::Closed(None));
        // Delivers what there is room for; the stream ends in any case.
        let mut cx = Context::from_waker(core::task::Waker::noop());
        let _ = self.buffer.poll_deliver(&mut self.events, &mut cx);
    }
}
