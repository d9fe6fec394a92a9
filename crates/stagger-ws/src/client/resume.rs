//! Resuming where the last connection ended.

use core::mem::size_of;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use futures_util::{SinkExt, StreamExt};
use http::{Request, Response};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::Message;

use super::connection::Connection;
use super::dial::RequestProvider;
use super::failure::ConnectionError;
use crate::sync::lock;

/// How a protocol resumes where the last connection ended, for [`ClientBuilder::resume`](crate::ClientBuilder::resume).
///
/// An implementation tracks a position, sends it to the server on each new connection, and decides from the response
/// whether the server resumed there. Its methods are called in this order:
///
/// | method | called | purpose |
/// |---|---|---|
/// | [`on_request`] | before each attempt, after the request provider | adds the position to the query or a header |
/// | [`on_upgrade`] | when the server has responded to the upgrade | reads its headers, or sends the first message |
/// | [`on_handshake_message`] | for each message, until the outcome is known | reads the message |
/// | [`observe`] | for each message that the stream yields | updates the position |
///
/// [`on_request`]: Self::on_request
/// [`on_upgrade`]: Self::on_upgrade
/// [`on_handshake_message`]: Self::on_handshake_message
/// [`observe`]: Self::observe
///
/// [`Event::Open`](crate::Event::Open) is delivered when the outcome is known, and says whether the server
/// [resumed](crate::Opened::resumed). Messages received before that follow the event, and are observed like all others.
/// Until then only the messages returned from here are sent, so this is also the place to log in. The negotiation may
/// take no longer than the connect timeout.
///
/// A message is observed when it is put into the inbox, and the inbox outlives connections. So if the server honors the
/// position, the stream has neither gaps nor duplicates.
///
/// # A sequence number in the query
///
/// ```
/// use http::{Request, Response, Uri};
/// use stagger_ws::{Message, Resume, ResumeStatus};
///
/// struct Numbered {
///     last: u64,
/// }
///
/// impl Resume for Numbered {
///     fn on_request(&mut self, request: &mut Request<()>) {
///         let from = format!("wss://feed.example/v1?after={}", self.last);
///         *request.uri_mut() = Uri::try_from(from).expect("a valid URI");
///     }
///
///     // This server sets a header if it can replay everything after the position.
///     fn on_upgrade(&mut self, response: &Response<()>) -> ResumeStatus {
///         match response.headers().get("feed-complete") {
///             Some(_) if self.last > 0 => ResumeStatus::Resumed,
///             _ => ResumeStatus::Fresh,
///         }
///     }
///
///     fn on_handshake_message(&mut self, _: &Message) -> ResumeStatus {
///         ResumeStatus::Fresh
///     }
///
///     fn observe(&mut self, message: &Message) {
///         if let Some(number) = message.to_text().ok().and_then(|text| text.split(' ').next()?.parse().ok()) {
///             self.last = number;
///         }
///     }
/// }
///
/// let mut feed = Numbered { last: 0 };
/// feed.observe(&Message::text("17 news"));
/// let mut request = Request::get("wss://feed.example/v1").body(()).unwrap();
/// feed.on_request(&mut request);
/// assert_eq!(request.uri().query(), Some("after=17"));
/// let complete = Response::builder().header("feed-complete", "yes").body(()).unwrap();
/// assert_eq!(feed.on_upgrade(&complete), ResumeStatus::Resumed);
/// ```
///
/// # Epoch and offset, as in Centrifugo
///
/// The client sends the first message. A different epoch means that the server has lost its history, and the offset is
/// invalid.
///
/// ```
/// use http::Response;
/// use stagger_ws::{Message, Resume, ResumeStatus};
/// # fn field<'a>(message: &'a Message, name: &str) -> Option<&'a str> {
/// #     message.to_text().ok()?.split(' ').find_map(|part| part.strip_prefix(name)?.strip_prefix('='))
/// # }
///
/// #[derive(Default)]
/// struct Channel {
///     epoch: String,
///     offset: u64,
/// }
///
/// impl Resume for Channel {
///     fn on_upgrade(&mut self, _: &Response<()>) -> ResumeStatus {
///         ResumeStatus::Send(Message::text(format!("subscribe epoch={} offset={}", self.epoch, self.offset)))
///     }
///
///     fn on_handshake_message(&mut self, answer: &Message) -> ResumeStatus {
///         let Some(epoch) = field(answer, "epoch") else { return ResumeStatus::Rejected };
///         self.epoch = epoch.to_owned();
///         match field(answer, "recovered") {
///             Some("true") => ResumeStatus::Resumed,
///             _ => {
///                 self.offset = field(answer, "offset").and_then(|offset| offset.parse().ok()).unwrap_or(0);
///                 ResumeStatus::Fresh
///             }
///         }
///     }
///
///     fn observe(&mut self, publication: &Message) {
///         if let Some(offset) = field(publication, "publication") {
///             self.offset = offset.parse().unwrap_or(self.offset);
///         }
///     }
/// }
///
/// let mut channel = Channel::default();
/// assert_eq!(channel.on_handshake_message(&Message::text("subscribed epoch=x offset=4")), ResumeStatus::Fresh);
/// channel.observe(&Message::text("publication=5 hello"));
/// let ResumeStatus::Send(first) = channel.on_upgrade(&Response::new(())) else { panic!() };
/// assert_eq!(first, Message::text("subscribe epoch=x offset=5"));
/// let recovered = Message::text("subscribed epoch=x recovered=true");
/// assert_eq!(channel.on_handshake_message(&recovered), ResumeStatus::Resumed);
/// ```
///
/// # A session and a sequence number, as in Discord
///
/// The server sends the first message, replays what was missed, and may reject the session.
///
/// ```
/// use stagger_ws::{Message, Resume, ResumeStatus};
///
/// #[derive(Default)]
/// struct Gateway {
///     session: Option<String>,
///     sequence: u64,
/// }
///
/// impl Resume for Gateway {
///     fn on_handshake_message(&mut self, message: &Message) -> ResumeStatus {
///         let text = message.to_text().unwrap_or_default();
///         match (text.split_once(' ').unwrap_or((text, "")), &self.session) {
///             (("hello", _), None) => ResumeStatus::Send(Message::text("identify")),
///             (("hello", _), Some(id)) => ResumeStatus::Send(Message::text(format!("resume {id} {}", self.sequence))),
///             (("ready", id), _) => {
///                 self.session = Some(id.to_owned());
///                 ResumeStatus::Fresh
///             }
///             (("invalid", _), _) => {
///                 self.session = None;
///                 ResumeStatus::Rejected
///             }
///             // A replayed event, or the end of the replay.
///             _ => ResumeStatus::Resumed,
///         }
///     }
///
///     fn observe(&mut self, message: &Message) {
///         if let Some(event) = message.to_text().ok().and_then(|text| text.strip_prefix("event ")) {
///             self.sequence = event.parse().unwrap_or(self.sequence);
///         }
///     }
/// }
///
/// let mut gateway = Gateway::default();
/// let mut receive = |text: &'static str| gateway.on_handshake_message(&Message::text(text));
/// assert_eq!(receive("hello"), ResumeStatus::Send(Message::text("identify")));
/// assert_eq!(receive("ready s1"), ResumeStatus::Fresh);
/// assert_eq!(receive("hello"), ResumeStatus::Send(Message::text("resume s1 0")));
/// assert_eq!(receive("invalid"), ResumeStatus::Rejected);
/// assert_eq!(receive("hello"), ResumeStatus::Send(Message::text("identify")));
/// ```
pub trait Resume: Send + 'static {
    /// Adds the position to the next upgrade request. Does nothing by default.
    fn on_request(&mut self, request: &mut Request<()>) {
        let _ = request;
    }

    /// Reads the server's response to the upgrade. By default, waits for the first message.
    fn on_upgrade(&mut self, response: &Response<()>) -> ResumeStatus {
        let _ = response;
        ResumeStatus::Pending
    }

    /// Reads a message while the outcome is not known. If the message is part of the sequence,
    /// [`observe`](Self::observe) is called for it, too.
    fn on_handshake_message(&mut self, message: &Message) -> ResumeStatus;

    /// Updates the position.
    fn observe(&mut self, message: &Message);
}

/// The state of the resume negotiation.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum ResumeStatus {
    /// The server resumed; nothing is missing.
    Resumed,
    /// The server started anew; messages may be missing.
    Fresh,
    /// The server rejected the position, which the implementation should discard. The connection ends with
    /// [`ConnectionError::ResumeRejected`](crate::ConnectionError::ResumeRejected), and the client reconnects after
    /// spread and backoff.
    Rejected,
    /// Not known yet: send this message, and read the next one.
    Send(Message),
    /// Not known yet: read the next message.
    Pending,
}

/// Lets other code read the position.
impl<R: Resume> Resume for Arc<Mutex<R>> {
    fn on_request(&mut self, request: &mut Request<()>) {
        lock(self).on_request(request);
    }

    fn on_upgrade(&mut self, response: &Response<()>) -> ResumeStatus {
        lock(self).on_upgrade(response)
    }

    fn on_handshake_message(&mut self, message: &Message) -> ResumeStatus {
        lock(self).on_handshake_message(message)
    }

    fn observe(&mut self, message: &Message) {
        lock(self).observe(message);
    }
}

/// Shared by the request provider and the connection task.
pub(super) type SharedResume = Arc<Mutex<dyn Resume>>;

/// Wraps a request provider so that it adds the position.
pub(super) fn with_position(provider: RequestProvider, resume: SharedResume) -> RequestProvider {
    Arc::new(move |attempt| {
        let (asked, resume) = (provider(attempt), Arc::clone(&resume));
        Box::pin(async move {
            let mut request = asked.await?;
            lock(&resume).on_request(&mut request);
            Ok(request)
        })
    })
}

/// Runs a [`Resume`](crate::Resume) on each new connection, for the connection task.
pub(super) struct ResumeHandshake {
    resume: SharedResume,
    /// The maximum duration of the negotiation.
    timeout_after: Duration,
    /// The most that is buffered during the negotiation. More cannot be left unread, since the answer may come after
    /// it.
    max_bytes: usize,
    /// Messages received during the negotiation, which are still to be observed and delivered.
    buffered: VecDeque<Message>,
}

impl ResumeHandshake {
    pub(super) fn new(resume: SharedResume, timeout_after: Duration, max_bytes: usize) -> Self {
        Self { resume, timeout_after, max_bytes, buffered: VecDeque::new() }
    }

    /// Negotiates until the server has accepted or rejected the position. Returns whether it resumed, or `None` if the
    /// connection ended.
    pub(super) async fn negotiate(&mut self, connection: &mut Connection<'_>, response: &Response<()>) -> Option<bool> {
        self.buffered.clear();
        let timeout_after = self.timeout_after;
        let cause = match timeout(timeout_after, self.exchange(connection, response)).await {
            Ok(Some(Ok(ResumeStatus::Rejected))) => ConnectionError::ResumeRejected,
            Ok(Some(Ok(status))) => return Some(status == ResumeStatus::Resumed),
            Ok(Some(Err(cause))) => cause,
            Ok(None) => {
                connection.record_unnegotiated();
                return None;
            }
            Err(_) => ConnectionError::ConnectTimeout { after: timeout_after },
        };
        connection.record_end(cause);
        None
    }

    /// Returns the final status, or `None` if the connection ended.
    async fn exchange(
        &mut self,
        connection: &mut Connection<'_>,
        response: &Response<()>,
    ) -> Option<Result<ResumeStatus, ConnectionError>> {
        let mut buffered_bytes = 0_usize;
        let mut status = lock(&self.resume).on_upgrade(response);
        loop {
            match status {
                ResumeStatus::Pending => {}
                // If sending fails, the reading half reports the reason.
                ResumeStatus::Send(message) => drop(connection.send(message).await),
                decided => return Some(Ok(decided)),
            }
            if buffered_bytes > self.max_bytes {
                return Some(Err(ConnectionError::ResumeTooLong { max_bytes: self.max_bytes }));
            }
            let message = connection.next().await?.ok()?;
            // An empty message takes up memory, too.
            buffered_bytes = buffered_bytes.saturating_add(message.len()).saturating_add(size_of::<Message>());
            status = lock(&self.resume).on_handshake_message(&message);
            self.buffered.push_back(message);
        }
    }

    /// Returns the messages received during the negotiation.
    pub(super) fn buffered(&self) -> impl Iterator<Item = &Message> {
        self.buffered.iter()
    }

    /// Returns the next of these messages.
    pub(super) fn next_buffered(&mut self) -> Option<Message> {
        self.buffered.pop_front()
    }

    pub(super) fn observe(&self, message: &Message) {
        lock(&self.resume).observe(message);
    }
}
