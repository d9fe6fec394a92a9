//! What was certainly not processed is sent again at once, once, whatever the request: on real connections.

use core::net::SocketAddr;
use core::sync::atomic::{AtomicUsize, Ordering};
#[cfg(feature = "reqwest-middleware")]
use core::time::Duration;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use http::{HeaderValue, Method};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use stagger::observe::{Action, Event};
use stagger::{Policy, Retrier, policy};
use stagger_http::header;
use stagger_http::tower::RetryLayer;
use tower::{Layer as _, ServiceExt as _};

use super::frames::Answer::{Close, GoAwayAfter, GoAwayBefore, Ok as Respond, Reset};
use super::frames::{Answer, ENHANCE_YOUR_CALM, FrameServer, INTERNAL_ERROR, NO_ERROR, REFUSED_STREAM};
use super::request;

const POLICY: Policy = policy!(constant(ms(20)).throttled_base(ms(40)).jitter(Jitter::None).max_attempts(3));
const AT_ONCE: u64 = 0;
const BACKOFF: u64 = 20;
const THROTTLED: u64 = 40;

/// The milliseconds that a call waited before its retries.
#[derive(Clone, Default)]
struct Delays(Arc<Mutex<Vec<u64>>>);

impl Delays {
    fn retrier(&self) -> Retrier {
        let delays = Arc::clone(&self.0);
        Retrier::new(POLICY).on_event(move |event: &Event<'_>| {
            if let Action::Retry { after, .. } = event.action {
                delays.lock().unwrap().push(after.as_millis().try_into().unwrap());
            }
        })
    }
}

/// The result of a call: its status if there was a response, the streams that the server saw, and the delays.
type Seen = (Option<u16>, usize, Vec<u64>);

/// Sends a request through the layer on hyper-util's client.
async fn by_hyper(method: Method, answers: &[Answer]) -> Seen {
    by_hyper_with(method, None, answers).await
}

async fn by_hyper_with(method: Method, key: Option<&'static str>, answers: &[Answer]) -> Seen {
    let (server, delays) = (FrameServer::start(answers).await, Delays::default());
    let network = Client::builder(TokioExecutor::new()).http2_only(true).build_http();
    let client = RetryLayer::new(delays.retrier()).layer(network);
    let mut request = request(method, server.address, "/", "pay");
    request.headers_mut().extend(key.map(|key| (header::IDEMPOTENCY_KEY, HeaderValue::from_static(key))));
    let end = client.oneshot(request).await;
    let delays = delays.0.lock().unwrap().clone();
    (end.ok().map(|response| response.status().as_u16()), server.streams(), delays)
}

/// Sends a request through the middleware on reqwest's client.
#[cfg(feature = "reqwest-middleware")]
async fn by_reqwest(method: Method, answers: &[Answer]) -> Seen {
    use reqwest::redirect::Policy as RedirectPolicy;
    use stagger_http::reqwest::RetryMiddleware;

    let (server, delays) = (FrameServer::start(answers).await, Delays::default());
    let builder = reqwest::Client::builder().http2_prior_knowledge().timeout(Duration::from_secs(20));
    let client = RetryMiddleware::new(delays.retrier()).build_client(builder, RedirectPolicy::default()).unwrap();
    let end = client.request(method, format!("http://{}/", server.address)).body("pay").send().await;
    let delays = delays.0.lock().unwrap().clone();
    (end.ok().map(|response| response.status().as_u16()), server.streams(), delays)
}

/// Checks a POST, by each client.
async fn check_post(answers: &[Answer], want: (Option<u16>, usize, &[u64])) {
    let want = (want.0, want.1, want.2.to_vec());
    assert_eq!(by_hyper(Method::POST, answers).await, want, "hyper: {answers:?}");
    #[cfg(feature = "reqwest-middleware")]
    assert_eq!(by_reqwest(Method::POST, answers).await, want, "reqwest: {answers:?}");
}

#[tokio::test]
async fn a_refused_stream_is_sent_again_at_once_and_later_ones_wait() {
    check_post(&[Reset(REFUSED_STREAM)], (Some(200), 2, &[AT_ONCE])).await;
    check_post(&[Reset(REFUSED_STREAM); 2], (Some(200), 3, &[AT_ONCE, BACKOFF])).await;
}

#[tokio::test]
async fn a_stream_above_the_last_one_of_a_goaway_is_sent_again_at_once() {
    check_post(&[GoAwayBefore(NO_ERROR)], (Some(200), 2, &[AT_ONCE])).await;
    check_post(&[GoAwayBefore(INTERNAL_ERROR)], (Some(200), 2, &[AT_ONCE])).await;
}

#[tokio::test]
async fn a_server_that_asks_for_calm_is_throttled_and_what_it_has_not_processed_waits() {
    check_post(&[GoAwayBefore(ENHANCE_YOUR_CALM)], (Some(200), 2, &[THROTTLED])).await;
    let get = [Reset(ENHANCE_YOUR_CALM)];
    assert_eq!(by_hyper(Method::GET, &get).await, (Some(200), 2, vec![THROTTLED]));
}

#[tokio::test]
async fn a_post_that_may_have_been_processed_is_not_sent_again() {
    for answer in [
        GoAwayAfter(NO_ERROR),
        GoAwayAfter(INTERNAL_ERROR),
        GoAwayAfter(ENHANCE_YOUR_CALM),
        Reset(INTERNAL_ERROR),
        Reset(NO_ERROR),
        Reset(ENHANCE_YOUR_CALM),
        Close,
    ] {
        check_post(&[answer, Respond], (None, 1, &[])).await;
    }
}

// The immediate repeat is not counted. hyper-util sends no refused stream again, and reqwest's own retries are off.
#[tokio::test]
async fn three_attempts_and_the_immediate_repeat_are_four_streams() {
    for method in [Method::GET, Method::POST] {
        let want = (None, 4, vec![AT_ONCE, BACKOFF, BACKOFF]);
        assert_eq!(by_hyper(method.clone(), &[Reset(REFUSED_STREAM); 12]).await, want);
        #[cfg(feature = "reqwest-middleware")]
        assert_eq!(by_reqwest(method, &[Reset(REFUSED_STREAM); 12]).await, want);
    }
}

// What the guide tells of a client without `retry::never`.
#[cfg(feature = "reqwest-middleware")]
#[tokio::test]
async fn three_attempts_are_nine_streams_if_reqwest_retries_too() {
    let server = FrameServer::start([Reset(REFUSED_STREAM); 12]).await;
    let client = reqwest::Client::builder().http2_prior_knowledge().build().unwrap();
    let retry = stagger_http::reqwest::RetryMiddleware::new(POLICY);
    let client = reqwest_middleware::ClientBuilder::new(client).with(retry).build();
    client.get(format!("http://{}/", server.address)).send().await.unwrap_err();
    assert_eq!(server.streams(), 9);
}

/// A server of HTTP/1.1 on a thread of its own, which closes its first connection when it is told to, after one
/// response.
struct Closing {
    address: SocketAddr,
    close: mpsc::Sender<()>,
    is_closed: mpsc::Receiver<()>,
    requests: Arc<AtomicUsize>,
}

impl Closing {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (close, must_close) = mpsc::channel::<()>();
        let (closed, is_closed) = mpsc::channel::<()>();
        let requests = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&requests);
        thread::spawn(move || {
            let respond = |mut stream: TcpStream| {
                let mut request = Vec::new();
                while !request.ends_with(b"pay") {
                    let mut byte = [0];
                    stream.read_exact(&mut byte).unwrap();
                    request.extend(byte);
                }
                seen.fetch_add(1, Ordering::Relaxed);
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
                stream
            };
            let first = respond(listener.accept().unwrap().0);
            must_close.recv().unwrap();
            drop(first);
            closed.send(()).unwrap();
            let _second = respond(listener.accept().unwrap().0);
            // Until the test ends.
            let _ = must_close.recv();
        });
        Self { address, close, is_closed, requests }
    }

    /// Closes the first connection. The client has then received the end of it, and has not looked yet.
    fn close(&self) {
        self.close.send(()).unwrap();
        self.is_closed.recv().unwrap();
    }
}

// The request is handed to a pooled connection, which finds itself closed before it writes anything. On a runtime with
// one thread, the request comes first: it is sent in the same turn in which the connection learns of its end.
#[tokio::test]
async fn a_post_on_a_pooled_connection_that_is_found_closed_is_sent_again_at_once() {
    let (server, delays) = (Closing::start(), Delays::default());
    let network = Client::builder(TokioExecutor::new()).retry_canceled_requests(false).build_http();
    let client = RetryLayer::new(delays.retrier()).layer(network);
    let post = || client.clone().oneshot(request(Method::POST, server.address, "/", "pay"));
    assert_eq!(post().await.unwrap().status(), 200);
    for _ in 0..10 {
        // The connection returns to the pool.
        tokio::task::yield_now().await;
    }
    server.close();
    tokio::task::yield_now().await;
    assert_eq!(post().await.unwrap().status(), 200);
    assert_eq!((server.requests.load(Ordering::Relaxed), delays.0.lock().unwrap().clone()), (2, vec![AT_ONCE]));
}

/// Returns the rows of the guide's table that take a server of HTTP/2: what it does with a stream, when a GET, a GET
/// with a key and a POST are repeated, and why that is safe.
pub(in super::super) async fn rows() -> Vec<(String, [&'static str; 3], &'static str)> {
    const CERTAIN: &str = "the server says that it has not processed it";
    let mut rows = Vec::new();
    for (name, answer, why) in [
        ("the server refuses the HTTP/2 stream (`REFUSED_STREAM`)", Reset(REFUSED_STREAM), CERTAIN),
        ("the server goes away (GOAWAY), and excludes the stream", GoAwayBefore(NO_ERROR), CERTAIN),
        ("the same with `ENHANCE_YOUR_CALM`", GoAwayBefore(ENHANCE_YOUR_CALM), "the same; the server is overloaded"),
        (
            "the server goes away, includes the stream, and does not respond",
            GoAwayAfter(NO_ERROR),
            "the server may have processed it, so only what has no further effect is sent again",
        ),
    ] {
        let mut cells = [""; 3];
        for (cell, (method, key)) in
            cells.iter_mut().zip([(Method::PUT, None), (Method::POST, Some("\"1\"")), (Method::POST, None)])
        {
            let (_, _, delays) = by_hyper_with(method, key, &[answer]).await;
            *cell = match delays.first() {
                None => "no",
                Some(&AT_ONCE) => "at once, once",
                Some(_) => "after the delay",
            };
        }
        rows.push((name.to_owned(), cells, why));
    }
    rows
}
