//! The middleware over a server of its own, the innermost of the middleware, and over sockets; on tokio's paused clock.

use core::pin::Pin;
use core::sync::atomic::{AtomicU32, Ordering};
use core::task::{Context, Poll};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Extensions, HeaderMap, Method};
use http_body_util::Full;
use reqwest::{Body, Client, Request, Response};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Error, Middleware, Next};
use stagger::breaker::CircuitBreaker;
use stagger::{Policy, Rejected, Retrier, StopReason, observe::Action, policy, time::Clock as _, time::Tokio};
use stagger_http::reqwest::Retry;
use stagger_http::{Deadline, Repeat, StatusFailure, attempt_number};
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep};

const POLICY: Policy = policy!(constant(ms(100)).jitter(Jitter::None).max_attempts(4));
const URL: &str = "http://server.test/here";

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn status(code: u16) -> Response {
    http::Response::builder().status(code).body("said the server").unwrap().into()
}

fn saying(code: u16, name: &'static str, value: &str) -> Response {
    http::Response::builder().status(code).header(name, value).body("").unwrap().into()
}

/// What has arrived: when, as which attempt, with which headers and body.
struct Arrived {
    after: Duration,
    attempt: u32,
    headers: HeaderMap,
    body: Option<Bytes>,
}

impl Arrived {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

/// Gives these answers, one after the other, and then 200 for ever.
#[derive(Clone)]
struct Server {
    answers: Arc<Mutex<VecDeque<Response>>>,
    arrived: Arc<Mutex<Vec<Arrived>>>,
    start: Instant,
    takes: Duration,
}

impl Server {
    fn new(answers: impl IntoIterator<Item = Response>) -> Self {
        let answers = Arc::new(Mutex::new(answers.into_iter().collect()));
        Self { answers, arrived: Arc::default(), start: Instant::now(), takes: Duration::ZERO }
    }

    fn behind(&self, retry: Retry) -> ClientWithMiddleware {
        ClientBuilder::new(Client::new()).with(retry).with(self.clone()).build()
    }

    fn seen<T>(&self, what: impl Fn(&Arrived) -> T) -> Vec<T> {
        self.arrived.lock().unwrap().iter().map(what).collect()
    }

    fn times(&self) -> Vec<Duration> {
        self.seen(|arrived| arrived.after)
    }

    fn headers(&self, name: &str) -> Vec<Option<String>> {
        self.seen(|arrived| arrived.header(name).map(str::to_owned))
    }
}

#[async_trait::async_trait]
impl Middleware for Server {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        _: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        assert_eq!(request.url().as_str(), URL);
        self.arrived.lock().unwrap().push(Arrived {
            after: self.start.elapsed(),
            attempt: attempt_number(extensions),
            headers: request.headers().clone(),
            body: request.body().and_then(Body::as_bytes).map(Bytes::copy_from_slice),
        });
        let answer = self.answers.lock().unwrap().pop_front().unwrap_or_else(|| status(200));
        sleep(self.takes).await;
        Ok(answer)
    }
}

fn retry() -> Retry {
    Retry::new(Retrier::new(POLICY))
}

/// Counts the attempts, and lets them through to the network.
#[derive(Clone, Default)]
struct Counter(Arc<AtomicU32>);

#[async_trait::async_trait]
impl Middleware for Counter {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        self.0.fetch_add(1, Ordering::Relaxed);
        next.run(request, extensions).await
    }
}

fn refusal(error: &Error) -> Option<&Rejected> {
    if let Error::Middleware(inner) = error { inner.downcast_ref() } else { None }
}

#[tokio::test(start_paused = true)]
async fn another_attempt_sends_the_same_request_again_when_its_time_has_come() {
    let server = Server::new([status(503), status(500)]);
    let client = server.behind(retry().attempt_header());
    let answer = client.put(URL).header("x-it", "1").body("a body").send().await.unwrap();
    assert_eq!((answer.status().as_u16(), &*answer.text().await.unwrap()), (200, "said the server"));
    assert_eq!(server.times(), [ms(0), ms(100), ms(200)]);
    assert_eq!(server.seen(|arrived| arrived.attempt), [1, 2, 3]);
    assert_eq!(server.headers("x-retry-attempt"), ["1", "2", "3"].map(|n| Some(n.to_owned())));
    assert_eq!(server.headers("x-it"), vec![Some("1".to_owned()); 3]);
    assert_eq!(server.seen(|arrived| arrived.body.clone()), vec![Some(Bytes::from("a body")); 3]);
}

#[tokio::test(start_paused = true)]
async fn the_last_answer_comes_back_as_it_is() {
    let server = Server::new((0..9).map(|_| status(503)));
    let answer = server.behind(retry()).get(URL).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), server.times().len()), (503, 4));
    assert_eq!(answer.text().await.unwrap(), "said the server");
}

/// Nothing listens: nothing was sent, so a POST follows too; and the error is reqwest's own.
#[tokio::test(start_paused = true)]
async fn ht_23_a_refused_connection_is_tried_again_whatever_the_request_and_the_error_stays_reqwests_own() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let (attempts, start) = (Counter::default(), Instant::now());
    let client = ClientBuilder::new(Client::new()).with(retry()).with(attempts.clone()).build();
    let error = client.post(format!("http://{gone}/")).body("pay").send().await.unwrap_err();
    assert!(matches!(error, Error::Reqwest(_)) && error.is_connect(), "{error:?}");
    assert_eq!((attempts.0.load(Ordering::Relaxed), start.elapsed()), (4, ms(300)));
}

#[tokio::test(start_paused = true)]
async fn reqwests_own_timeout_is_a_failed_attempt_and_is_still_known_for_one() {
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    for (method, want) in [(Method::GET, 4), (Method::POST, 1)] {
        let attempts = Counter::default();
        let client = Client::builder().timeout(ms(10)).build().unwrap();
        let client = ClientBuilder::new(client).with(retry()).with(attempts.clone()).build();
        let error = client.request(method, &url).send().await.unwrap_err();
        assert!(error.is_timeout() && !error.is_connect(), "{error:?}");
        assert_eq!(attempts.0.load(Ordering::Relaxed), want);
    }
}

type Events = Arc<Mutex<Vec<(Action, Option<StatusFailure>)>>>;

fn listening() -> (Retry, Events) {
    let events = Events::default();
    let log = Arc::clone(&events);
    let retrier = Retrier::new(POLICY).on_event(move |event| {
        log.lock().unwrap().push((event.action, event.error_as::<StatusFailure>().copied()));
    });
    (Retry::new(retrier), events)
}

#[tokio::test(start_paused = true)]
async fn ht_23_what_may_have_been_carried_out_is_not_repeated_and_the_event_says_why() {
    let server = Server::new([status(503)]);
    let (retry, events) = listening();
    assert_eq!(server.behind(retry).post(URL).body("pay").send().await.unwrap().status(), 503);
    let (action, failure) = events.lock().unwrap()[0];
    assert_eq!((action, failure.unwrap().repeat), (Action::Stop(StopReason::UnsafeToRetry), Repeat::IfUnsent));
    assert_eq!(server.times().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_body_that_is_a_stream_is_sent_once_without_an_error() {
    let server = Server::new([status(503)]);
    let (retry, events) = listening();
    let stream = Body::wrap(Full::new(Bytes::from("a stream")));
    let answer = server.behind(retry).put(URL).header("x-it", "1").body(stream).send().await.unwrap();
    assert_eq!(answer.status(), 503);
    assert_eq!(events.lock().unwrap()[0].1.unwrap().repeat, Repeat::BodyLost);
    assert_eq!(server.headers("x-it"), [Some("1".to_owned())]);
}

/// A stream arrives whole, with what was to be added to its request.
#[tokio::test(start_paused = true)]
async fn a_stream_reaches_the_server() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let echo = axum::routing::post(|headers: HeaderMap, body: String| async move {
        format!("{} {body}", headers["x-retry-attempt"].to_str().unwrap())
    });
    tokio::spawn(axum::serve(listener, axum::Router::new().route("/", echo)).into_future());
    let client = ClientBuilder::new(Client::new()).with(retry().attempt_header()).build();
    let answer = client.post(url).body(Body::wrap(Full::new(Bytes::from("a stream")))).send().await.unwrap();
    assert_eq!(answer.text().await.unwrap(), "1 a stream");
}

#[tokio::test(start_paused = true)]
async fn ht_25_a_key_or_the_callers_word_makes_a_post_repeatable() {
    let server = Server::new([status(503)]);
    assert_eq!(server.behind(retry().idempotency_keys()).post(URL).send().await.unwrap().status(), 200);
    let keys = server.headers("idempotency-key");
    assert_eq!((keys.len(), &keys[0]), (2, &keys[1]));
    assert_eq!(keys[0].as_ref().unwrap().len(), 2 + 36);

    let server = Server::new([status(503)]);
    let told = retry().repeat_when(|request| request.url().path() == "/here");
    assert_eq!(server.behind(told).post(URL).send().await.unwrap().status(), 200);
    assert_eq!(server.times().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_when_is_not_called_before() {
    let server = Server::new([saying(429, "retry-after", "2")]);
    assert_eq!(server.behind(retry()).get(URL).send().await.unwrap().status(), 200);
    let second = server.times()[1];
    assert!((ms(2000)..=ms(3000)).contains(&second), "{second:?}");
}

#[tokio::test(start_paused = true)]
async fn an_appointment_is_kept_to_the_tick_and_its_ticket_brought_along_once() {
    let ticket = "0123456789abcdef0123456789abcdef";
    let server = Server::new([saying(503, "stagger-slot", &format!("1520;token={ticket}")), status(503)]);
    assert_eq!(server.behind(retry()).get(URL).send().await.unwrap().status(), 200);
    assert_eq!(server.headers("stagger-ticket"), [None, Some(ticket.to_owned()), None]);
    let kept = server.times()[1];
    assert!((ms(1520)..=ms(1521)).contains(&kept), "{kept:?}");
}

#[tokio::test(start_paused = true)]
async fn a_denied_request_is_made_anew_with_fresh_credentials_once() {
    let server = Server::new([status(401), status(401)]);
    let renew = retry().renew(|request| {
        assert_eq!(request.headers()["authorization"], "stale");
        async { Some(HeaderMap::from_iter([(http::header::AUTHORIZATION, "fresh".parse().unwrap())])) }
    });
    let answer = server.behind(renew).post(URL).header("authorization", "stale").send().await.unwrap();
    assert_eq!(answer.status(), 401);
    assert_eq!(server.headers("authorization"), [Some("stale".to_owned()), Some("fresh".to_owned())]);
    assert_eq!(server.times(), [ms(0), ms(0)]);
}

#[tokio::test(start_paused = true)]
async fn credentials_that_do_not_come_in_time_leave_the_denial_as_it_is() {
    let server = Server::new([status(401)]);
    let renew =
        Retry::new(Retrier::new(POLICY).timeout(ms(50))).renew(|_| core::future::pending::<Option<HeaderMap>>());
    let started = Tokio.now();
    assert_eq!(server.behind(renew).get(URL).send().await.unwrap().status(), 401);
    assert_eq!(server.times().len(), 1);
    let took = Tokio.now().saturating_since(started);
    assert!((ms(50)..ms(60)).contains(&took), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_deadline_among_the_extensions_limits_the_call_and_is_told_to_the_next_hop() {
    let server = Server { takes: ms(10), ..Server::new((0..9).map(|_| status(503))) };
    let client = server.behind(retry().timeout_header());
    let deadline = Deadline(Tokio.now().saturating_add(ms(250)));
    assert_eq!(client.get(URL).with_extension(deadline).send().await.unwrap().status(), 503);
    let left: Vec<u32> =
        server.headers("stagger-timeout-ms").into_iter().map(|left| left.unwrap().parse().unwrap()).collect();
    // Attempts at 0 ms, 110 ms and 220 ms; the next would start at 330 ms.
    assert_eq!(left.len(), 3);
    for (got, want) in left.iter().zip([250, 140, 30]) {
        assert!(got.abs_diff(want) <= 3, "{left:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_that_takes_too_long_is_dropped() {
    let server = Server { takes: ms(5000), ..Server::new([]) };
    let client = server.behind(Retry::new(Retrier::new(POLICY).timeout(ms(10))));
    let error = client.get(URL).send().await.unwrap_err();
    assert_eq!(refusal(&error), Some(&Rejected::TimedOut));
    assert_eq!(server.times().len(), 4);
    assert!(server.times()[3] < ms(350), "{:?}", server.times());
}

/// The breaker trips at the second failure: the next call is refused without an attempt.
#[tokio::test(start_paused = true)]
async fn the_refusal_of_an_open_breaker_can_be_told_from_an_error() {
    let server = Server::new((0..9).map(|_| status(500)));
    let breaker = CircuitBreaker::builder(stagger::Seed::new(7)).consecutive(2).build().unwrap();
    let client = server.behind(Retry::new(Retrier::new(POLICY).breaker(breaker)));
    assert_eq!(client.get(URL).send().await.unwrap().status(), 500);
    let arrived = server.times().len();
    let error = client.get(URL).send().await.unwrap_err();
    assert!(matches!(refusal(&error), Some(Rejected::BreakerOpen(_))), "{error:?}");
    assert_eq!((arrived, server.times().len()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn middleware_that_is_nested_does_not_multiply() {
    let server = Server::new((0..99).map(|_| status(503)));
    let client = ClientBuilder::new(Client::new()).with(retry()).with(retry()).with(retry()).with(server.clone());
    assert_eq!(client.build().get(URL).send().await.unwrap().status(), 503);
    assert_eq!(server.times().len(), 4);
}

/// A request that cannot be built would fail again; what else is, is for the retrier's rule to say.
#[tokio::test(start_paused = true)]
async fn what_would_fail_again_is_not_tried_again() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let never = Retrier::new(POLICY).when(|error: &reqwest::Error| !error.is_connect());
    for (retry, url) in [(retry(), "ftp://server.test/".to_owned()), (Retry::new(never), format!("http://{gone}/"))] {
        let attempts = Counter::default();
        let client = ClientBuilder::new(Client::new()).with(retry).with(attempts.clone()).build();
        assert!(matches!(client.get(&url).send().await, Err(Error::Reqwest(_))), "{url}");
        assert_eq!(attempts.0.load(Ordering::Relaxed), 1, "{url}");
    }
}

/// The body of an answer that is not the last is dropped before the sleep is over, if its end is not near.
#[tokio::test(start_paused = true)]
async fn a_failed_answer_is_let_go_before_the_sleep() {
    struct Endless(Arc<AtomicU32>);
    impl Drop for Endless {
        fn drop(&mut self) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }
    impl http_body::Body for Endless {
        type Data = Bytes;
        type Error = core::convert::Infallible;
        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<http_body::Frame<Bytes>, Self::Error>>> {
            Poll::Pending
        }
    }
    let dropped = Arc::new(AtomicU32::new(0));
    let endless = Body::wrap(Endless(Arc::clone(&dropped)));
    let server = Server::new([http::Response::builder().status(503).body(endless).unwrap().into()]);
    let slow = Policy::constant(Duration::from_secs(60)).jitter(stagger::Jitter::None).build().unwrap();
    let client = server.behind(Retry::new(Retrier::new(slow)));
    let call = tokio::spawn(client.get(URL).send());
    sleep(ms(1)).await;
    assert_eq!(dropped.load(Ordering::Relaxed), 0, "it has a moment to come to its end");
    sleep(Duration::from_secs(1)).await;
    assert_eq!((dropped.load(Ordering::Relaxed), server.times().len()), (1, 1));
    assert_eq!(call.await.unwrap().unwrap().status(), 200);
}
