//! A server that follows a script, as a tower service, on tokio's paused clock.

use core::time::Duration;
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use http_body_util::Full;
use http_body_util::channel::Channel;
use stagger_http::sse::{Client, ClientBuilder, Event, Fatal};
use tokio::time::{Instant, sleep, timeout_at};

pub(super) type Body = Channel<Bytes, io::Error>;

/// What the server does with one request.
#[derive(Clone, Debug)]
pub(super) enum Reply {
    /// An event stream of these steps.
    Stream(Vec<Step>),
    /// A response without a body.
    Head(u16, Vec<(&'static str, String)>),
    Fails(io::ErrorKind),
    /// Neither accepts nor rejects.
    Silence,
}

#[derive(Clone, Debug)]
pub(super) enum Step {
    Send(String),
    Wait(Duration),
    /// Breaks the connection, instead of ending the stream.
    Break,
    /// Keeps the stream open without sending anything.
    Hang,
}

pub(super) fn send(text: &str) -> Step {
    Step::Send(text.to_owned())
}

/// A stream that sends this and ends.
pub(super) fn stream(text: &str) -> Reply {
    Reply::Stream(vec![send(text)])
}

/// A stream that stays open.
pub(super) fn open(text: &str) -> Reply {
    Reply::Stream(vec![send(text), Step::Hang])
}

pub(super) fn status(status: u16) -> Reply {
    Reply::Head(status, Vec::new())
}

/// A request that has arrived.
#[derive(Clone, Debug)]
pub(super) struct Arrived {
    pub(super) after: Duration,
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) headers: HeaderMap,
}

#[derive(Clone, Debug)]
pub(super) struct Server {
    replies: Arc<Mutex<VecDeque<Reply>>>,
    last: Reply,
    arrived: Arc<Mutex<Vec<Arrived>>>,
    start: Instant,
}

impl Server {
    /// Creates a server that gives these replies, and then an open stream to every request.
    pub(super) fn new(replies: impl IntoIterator<Item = Reply>) -> Self {
        let replies = Arc::new(Mutex::new(replies.into_iter().collect()));
        Self { replies, last: open(""), arrived: Arc::default(), start: Instant::now() }
    }

    /// Creates a server that always gives the same reply.
    pub(super) fn always(reply: Reply) -> Self {
        Self { last: reply, ..Self::new([]) }
    }

    pub(super) fn service(&self) -> impl Service {
        let server = self.clone();
        tower::service_fn(move |request: Request<Full<Bytes>>| server.clone().answer(request))
    }

    async fn answer(self, request: Request<Full<Bytes>>) -> io::Result<Response<Body>> {
        let (head, _) = request.into_parts();
        let path = head.uri.path().to_owned();
        let after = self.start.elapsed();
        self.arrived.lock().unwrap().push(Arrived { after, method: head.method, path, headers: head.headers });
        let reply = self.replies.lock().unwrap().pop_front().unwrap_or_else(|| self.last.clone());
        let (mut sender, body) = Channel::new(4);
        let mut response = Response::new(body);
        match reply {
            Reply::Stream(steps) => {
                response.headers_mut().insert("content-type", "text/event-stream".parse().unwrap());
                tokio::spawn(async move {
                    for step in steps {
                        match step {
                            // The client may have closed the stream.
                            Step::Send(text) => drop(sender.send_data(Bytes::from(text)).await),
                            Step::Wait(length) => sleep(length).await,
                            Step::Break => return sender.abort(io::ErrorKind::ConnectionReset.into()),
                            Step::Hang => core::future::pending().await,
                        }
                    }
                });
            }
            Reply::Head(status, headers) => {
                *response.status_mut() = status.try_into().unwrap();
                for (name, value) in headers {
                    response.headers_mut().append(name, value.parse().unwrap());
                }
            }
            Reply::Fails(kind) => return Err(kind.into()),
            Reply::Silence => core::future::pending().await,
        }
        Ok(response)
    }

    /// Returns the builder of a client of this server.
    pub(super) fn client(&self) -> ClientBuilder<Full<Bytes>> {
        Client::with_service(self.service()).url("http://server.test/events")
    }

    pub(super) fn arrived(&self) -> Vec<Arrived> {
        self.arrived.lock().unwrap().clone()
    }

    /// Returns when each request arrived.
    pub(super) fn times(&self) -> Vec<Duration> {
        self.arrived().iter().map(|arrived| arrived.after).collect()
    }

    /// Returns a header of each request.
    pub(super) fn headers(&self, name: &str) -> Vec<Option<String>> {
        let value =
            |arrived: &Arrived| Some(String::from_utf8(arrived.headers.get(name)?.as_bytes().to_vec()).unwrap());
        self.arrived().iter().map(value).collect()
    }
}

/// The bounds of a service that a client can be over.
pub(super) trait Service:
    tower::Service<Request<Full<Bytes>>, Response = Response<Body>, Error = io::Error, Future: Send>
    + Clone
    + Send
    + Sync
    + 'static
{
}

impl<S> Service for S where
    S: tower::Service<Request<Full<Bytes>>, Response = Response<Body>, Error = io::Error, Future: Send>
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// Returns what the client does until it stops, with the error if it gives up; messages as their data. Fails if it does
/// not stop within two days.
pub(super) async fn run(mut client: Client) -> (Vec<String>, Option<Fatal>) {
    let (mut told, end) = (Vec::new(), Instant::now() + Duration::from_secs(2 * 86_400));
    while let Some(event) = timeout_at(end, client.next()).await.expect("the client stops") {
        match event {
            Ok(event) => told.push(describe(&event)),
            Err(fatal) => return (told, Some(fatal)),
        }
    }
    (told, None)
}

/// Returns the next events, so many of them.
pub(super) async fn take(client: &mut Client, number: usize) -> Vec<String> {
    let mut told = Vec::new();
    while told.len() < number {
        told.push(describe(&client.next().await.unwrap().unwrap()));
    }
    told
}

fn describe(event: &Event) -> String {
    match event {
        Event::Open(opened) => format!("open by attempt {}", opened.attempt),
        Event::Message(message) => format!("{}: {}", message.event, message.data),
        Event::Closed(closed) => format!("closed: {}", closed.cause),
        Event::Unreachable(unreachable) => format!("unreachable: {} attempts", unreachable.attempts),
        Event::RetryCapped { asked, used } => format!("capped: {asked:?} to {used:?}"),
        other => format!("{other:?}"),
    }
}
