use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::{Request, Response};
use tokio_tungstenite::tungstenite::Message;

use crate::client::request::RequestProvider;

/// How a protocol goes on where the last connection left off: what [`ClientBuilder::resume`](crate::ClientBuilder::resume) is given.
///
/// It knows a position, says it to the server when a connection is made, hears whether the server goes on from there, and
/// follows it with every message. In the order in which it is asked:
///
/// | | when | what it does |
/// |---|---|---|
/// | [`on_request`](Self::on_request) | before each attempt, after the provider of requests | puts the position into the query or a header |
/// | [`on_upgrade`](Self::on_upgrade) | the server has answered the upgrade | judges its headers, or says the first word |
/// | [`on_open`](Self::on_open) | a message came, and nothing is decided yet | judges it |
/// | [`observe`](Self::observe) | a message goes into the stream | follows the position |
///
/// [`Event::Open`](crate::Event::Open) comes when it is decided, and says whether the server [goes on](crate::Opened::resumed);
/// the messages that were judged come after it, and are observed like all others. Until then nothing is sent but what is
/// said here, so this is where to log in too. It may take no longer than the connect timeout.
///
/// Nothing waits in between: a message has been observed when it is in the inbox, and the inbox outlives connections. So
/// whoever reads the stream sees neither a gap nor a message twice, if the server keeps to the position.
///
/// # The last number, in the query
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
///         *request.uri_mut() = Uri::try_from(from).expect("an address");
///     }
///
///     // This server says in a header whether it still has everything since.
///     fn on_upgrade(&mut self, response: &Response<()>) -> ResumeStatus {
///         match response.headers().get("feed-complete") {
///             Some(_) if self.last > 0 => ResumeStatus::Resumed,
///             _ => ResumeStatus::Fresh,
///         }
///     }
///
///     fn on_open(&mut self, _: &Message) -> ResumeStatus {
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
/// # Epoch and offset, as Centrifugo has it
///
/// The client speaks first. Another epoch says that the server has lost its history: the offset means nothing any more.
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
///     fn on_open(&mut self, answer: &Message) -> ResumeStatus {
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
/// assert_eq!(channel.on_open(&Message::text("subscribed epoch=x offset=4")), ResumeStatus::Fresh);
/// channel.observe(&Message::text("publication=5 hello"));
/// let ResumeStatus::Send(first) = channel.on_upgrade(&Response::new(())) else { panic!() };
/// assert_eq!(first, Message::text("subscribe epoch=x offset=5"));
/// assert_eq!(channel.on_open(&Message::text("subscribed epoch=x recovered=true")), ResumeStatus::Resumed);
/// ```
///
/// # A session and a sequence, as Discord has it
///
/// The server speaks first, replays what was missed, and may say that the session is over.
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
///     fn on_open(&mut self, message: &Message) -> ResumeStatus {
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
///             // An event that was missed, or that all of them have been told.
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
/// let mut say = |text: &'static str| gateway.on_open(&Message::text(text));
/// assert_eq!(say("hello"), ResumeStatus::Send(Message::text("identify")));
/// assert_eq!(say("ready s1"), ResumeStatus::Fresh);
/// assert_eq!(say("hello"), ResumeStatus::Send(Message::text("resume s1 0")));
/// assert_eq!(say("invalid"), ResumeStatus::Rejected);
/// assert_eq!(say("hello"), ResumeStatus::Send(Message::text("identify")));
/// ```
pub trait Resume: Send + 'static {
    /// Puts the position into the request for the next upgrade. Does nothing by default.
    fn on_request(&mut self, request: &mut Request<()>) {
        let _ = request;
    }

    /// Judges the server's answer to the upgrade. By default, it waits for the first message.
    fn on_upgrade(&mut self, response: &Response<()>) -> ResumeStatus {
        let _ = response;
        ResumeStatus::Pending
    }

    /// Judges a message of the server's, while it is not decided whether it goes on. If it is part of the sequence,
    /// [`observe`](Self::observe) will be told of it too.
    fn on_open(&mut self, message: &Message) -> ResumeStatus;

    /// Follows the position.
    fn observe(&mut self, message: &Message);
}

/// Whether the server goes on where the last connection left off.
#[derive(Clone, Debug, PartialEq)]
pub enum ResumeStatus {
    /// It does: nothing is missing.
    Resumed,
    /// It begins anew: something may be missing.
    Fresh,
    /// It does not take the position. Forget it: the connection is let go of as [`ConnectionError::ResumeRejected`](crate::ConnectionError), and the
    /// next one is made after the spread and the backoff.
    Rejected,
    /// It has not said it yet: this is sent, and the next message judged.
    Send(Message),
    /// It has not said it yet: the next message is judged.
    Pending,
}

/// For whoever wants to see the position from outside.
impl<R: Resume> Resume for Arc<Mutex<R>> {
    fn on_request(&mut self, request: &mut Request<()>) {
        lock(self).on_request(request);
    }

    fn on_upgrade(&mut self, response: &Response<()>) -> ResumeStatus {
        lock(self).on_upgrade(response)
    }

    fn on_open(&mut self, message: &Message) -> ResumeStatus {
        lock(self).on_open(message)
    }

    fn observe(&mut self, message: &Message) {
        lock(self).observe(message);
    }
}

/// What the provider of requests and the task that owns the connection share.
#[derive(Clone)]
pub(in crate::client) struct SharedResume(Arc<Mutex<dyn Resume>>);

impl SharedResume {
    pub(in crate::client) fn new(resume: impl Resume) -> Self {
        Self(Arc::new(Mutex::new(resume)))
    }

    pub(in crate::client) fn lock(&self) -> MutexGuard<'_, dyn Resume + 'static> {
        lock(&self.0)
    }
}

/// A provider that puts the position into what this one gives.
pub(in crate::client) fn with_position(provider: RequestProvider, resume: SharedResume) -> RequestProvider {
    Arc::new(move |attempt| {
        let (asked, resume) = (provider(attempt), resume.clone());
        Box::pin(async move {
            let mut request = asked.await?;
            resume.lock().on_request(&mut request);
            Ok(request)
        })
    })
}

/// A panic in the middle of it was the user's own, and ended whoever caused it.
fn lock<R: ?Sized>(resume: &Mutex<R>) -> MutexGuard<'_, R> {
    resume.lock().unwrap_or_else(PoisonError::into_inner)
}
