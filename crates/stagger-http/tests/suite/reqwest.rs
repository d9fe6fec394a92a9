//! The middleware on a test server, which is the innermost middleware, and on sockets; on tokio's paused clock.

use core::pin::Pin;
use core::sync::atomic::{AtomicU32, Ordering};
use core::task::{Context, Poll};
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Extensions, HeaderMap, Method};
use http_body_util::Full;
use reqwest::{Body, Client, Request, Response, ResponseBuilderExt as _, Url};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Error, Middleware, Next};
use stagger::breaker::CircuitBreaker;
use stagger::observe::Action;
use stagger::time::{Clock as _, Tokio};
use stagger::{Policy, Rejected, Retrier, StopReason, policy};
use stagger_http::reqwest::{Redirects, RetryMiddleware};
use stagger_http::{Deadline, Idempotency, StatusFailure, attempt_number};
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep};

const POLICY: Policy = policy!(constant(ms(100)).jitter(Jitter::None).max_attempts(4));
const URL: &str = "http://server.test/here";

const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn status(code: u16) -> Response {
    http::Response::builder().status(code).url(URL.parse().unwrap()).body("said the server").unwrap().into()
}

fn status_with_header(code: u16, name: &'static str, value: &str) -> Response {
    http::Response::builder().status(code).url(URL.parse().unwrap()).header(name, value).body("").unwrap().into()
}

/// A request that has arrived: its time, attempt number, headers and body.
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

/// Sends these responses, one after the other, and then 200.
#[derive(Clone)]
struct Server {
    responses: Arc<Mutex<VecDeque<Response>>>,
    arrived: Arc<Mutex<Vec<Arrived>>>,
    start: Instant,
    takes: Duration,
}

impl Server {
    fn new(responses: impl IntoIterator<Item = Response>) -> Self {
        let responses = Arc::new(Mutex::new(responses.into_iter().collect()));
        Self { responses, arrived: Arc::default(), start: Instant::now(), takes: Duration::ZERO }
    }

    fn behind(&self, retry: RetryMiddleware) -> ClientWithMiddleware {
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
        let response = self.responses.lock().unwrap().pop_front().unwrap_or_else(|| status(200));
        sleep(self.takes).await;
        Ok(response)
    }
}

fn retry() -> RetryMiddleware {
    RetryMiddleware::new(Retrier::new(POLICY))
}

/// The middleware over a client that follows no redirects.
fn retry_one_hop() -> RetryMiddleware {
    retry().redirects(Redirects::none())
}

fn without_redirects() -> Client {
    Client::builder().redirect(reqwest::redirect::Policy::none()).build().unwrap()
}

/// Counts the attempts and forwards them to the network.
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

fn rejection(error: &Error) -> Option<&Rejected> {
    if let Error::Middleware(inner) = error { inner.downcast_ref() } else { None }
}

#[tokio::test(start_paused = true)]
async fn a_retry_sends_the_same_request_after_its_delay() {
    let server = Server::new([status(503), status(500)]);
    let client = server.behind(retry().attempt_header());
    let response = client.put(URL).header("x-it", "1").body("a body").send().await.unwrap();
    assert_eq!((response.status().as_u16(), &*response.text().await.unwrap()), (200, "said the server"));
    assert_eq!(server.times(), [ms(0), ms(100), ms(200)]);
    assert_eq!(server.seen(|arrived| arrived.attempt), [1, 2, 3]);
    assert_eq!(server.headers("x-retry-attempt"), ["1", "2", "3"].map(|n| Some(n.to_owned())));
    assert_eq!(server.headers("x-it"), vec![Some("1".to_owned()); 3]);
    assert_eq!(server.seen(|arrived| arrived.body.clone()), vec![Some(Bytes::from("a body")); 3]);
}

#[tokio::test(start_paused = true)]
async fn the_last_response_is_returned_unchanged() {
    let server = Server::new((0..9).map(|_| status(503)));
    let response = server.behind(retry()).get(URL).send().await.unwrap();
    assert_eq!((response.status().as_u16(), server.times().len()), (503, 4));
    assert_eq!(response.text().await.unwrap(), "said the server");
}

// Nothing was sent, and no redirect was followed, so even a POST is retried.
#[tokio::test(start_paused = true)]
async fn ht_23_a_refused_connection_is_retried_for_any_request_and_the_error_is_reqwests_own() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let (attempts, start) = (Counter::default(), Instant::now());
    let client = ClientBuilder::new(without_redirects()).with(retry_one_hop()).with(attempts.clone()).build();
    let error = client.post(format!("http://{gone}/")).body("pay").send().await.unwrap_err();
    assert!(matches!(error, Error::Reqwest(_)) && error.is_connect(), "{error:?}");
    assert_eq!((attempts.0.load(Ordering::Relaxed), start.elapsed()), (4, ms(300)));
}

// Tokens are often in queries. The caller's error is unchanged: `without_url` is for the caller to use.
#[tokio::test(start_paused = true)]
async fn a_listener_is_shown_no_query_and_no_credentials_of_the_url() {
    const SECRET: &str = "hunter2";
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let shown = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&shown);
    let retrier = Retrier::new(POLICY).on_event(move |event| {
        let error = event.error.unwrap();
        let text = match (event.error_as::<reqwest::Error>(), event.error_as::<Error>()) {
            (Some(error), _) => error.to_string(),
            (_, Some(error)) => error.to_string(),
            _ => String::from("another error"),
        };
        log.lock().unwrap().push(format!("{error:?} {text}"));
    });
    let url: Url = format!("http://{SECRET}:{SECRET}@{gone}/p?token={SECRET}#{SECRET}").parse().unwrap();
    let client = |wrap| {
        ClientBuilder::new(Client::new()).with(RetryMiddleware::new(retrier.clone())).with(Wrapping(wrap)).build()
    };
    let inside_anyhow = |error| if let Error::Reqwest(error) = error { Error::middleware(error) } else { error };
    for client in [client(|error| error), client(inside_anyhow), client(Error::middleware)] {
        // Not by `get`, which makes a header of the user information.
        let error = client.execute(Request::new(Method::GET, url.clone())).await.unwrap_err();
        assert_eq!(error_of_reqwest(&error).url().unwrap().query(), Some("token=hunter2"));
        let shown = core::mem::take(&mut *shown.lock().unwrap());
        assert_eq!(shown.len(), 4);
        assert!(shown.iter().all(|text| text.contains("/p") && !text.contains(SECRET)), "{shown:?}");
    }
}

fn error_of_reqwest(error: &Error) -> &reqwest::Error {
    match error {
        Error::Reqwest(error) => error,
        Error::Middleware(error) => match error.downcast_ref() {
            Some(error) => error_of_reqwest(error),
            None => error.downcast_ref().unwrap(),
        },
    }
}

/// Turns reqwest's errors into others.
struct Wrapping(fn(Error) -> Error);

#[async_trait::async_trait]
impl Middleware for Wrapping {
    async fn handle(
        &self,
        request: Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<Response> {
        next.run(request, extensions).await.map_err(self.0)
    }
}

// reqwest has followed a redirect to the server that gave the reservation.
#[tokio::test(start_paused = true)]
async fn a_reservation_is_not_sent_to_another_origin() {
    for (from, is_sent) in [
        ("http://server.test/elsewhere", true),
        ("http://server.test:80/here", true),
        ("https://server.test/here", false),
        ("http://server.test:8080/here", false),
        ("http://other.test/here", false),
    ] {
        let rejection =
            http::Response::builder().status(503).header("stagger-reservation", format!("250;token={:032x}", 7));
        let response = rejection.url(from.parse().unwrap()).body("").unwrap().into();
        let server = Server::new([response]);
        server.behind(retry()).get(URL).send().await.unwrap();
        assert_eq!(server.headers("stagger-reservation-token")[1].is_some(), is_sent, "{from}");
        assert_eq!(server.times(), [ms(0), ms(250)], "the wait is the same");
    }
}

#[tokio::test(start_paused = true)]
async fn reqwests_own_timeout_is_a_failed_attempt_and_is_returned_as_such() {
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

fn recording() -> (RetryMiddleware, Events) {
    let events = Events::default();
    let log = Arc::clone(&events);
    let retrier = Retrier::new(POLICY).on_event(move |event| {
        log.lock().unwrap().push((event.action, event.error_as::<StatusFailure>().copied()));
    });
    (RetryMiddleware::new(retrier), events)
}

#[tokio::test(start_paused = true)]
async fn ht_23_a_request_that_may_have_been_processed_is_not_retried_and_the_event_says_why() {
    let server = Server::new([status(503)]);
    let (retry, events) = recording();
    assert_eq!(server.behind(retry).post(URL).body("pay").send().await.unwrap().status(), 503);
    let (action, failure) = events.lock().unwrap()[0];
    assert_eq!(
        (action, failure.unwrap().idempotency()),
        (Action::Stop(StopReason::UnsafeToRetry), Idempotency::OnlyIfUnsent)
    );
    assert_eq!(server.times().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_streaming_body_is_sent_once_without_an_error() {
    let server = Server::new([status(503)]);
    let (retry, events) = recording();
    let stream = Body::wrap(Full::new(Bytes::from("a stream")));
    let response = server.behind(retry).put(URL).header("x-it", "1").body(stream).send().await.unwrap();
    assert_eq!(response.status(), 503);
    assert!(!events.lock().unwrap()[0].1.unwrap().is_body_replayable());
    assert_eq!(server.headers("x-it"), [Some("1".to_owned())]);
}

// With the headers that the middleware adds.
#[tokio::test(start_paused = true)]
async fn a_streaming_body_reaches_the_server() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let echo = axum::routing::post(|headers: HeaderMap, body: String| async move {
        format!("{} {body}", headers["x-retry-attempt"].to_str().unwrap())
    });
    tokio::spawn(axum::serve(listener, axum::Router::new().route("/", echo)).into_future());
    let client = ClientBuilder::new(Client::new()).with(retry().attempt_header()).build();
    let response = client.post(url).body(Body::wrap(Full::new(Bytes::from("a stream")))).send().await.unwrap();
    assert_eq!(response.text().await.unwrap(), "1 a stream");
}

#[tokio::test(start_paused = true)]
async fn ht_25_a_key_or_a_declaration_makes_a_post_retryable() {
    let server = Server::new([status(503)]);
    assert_eq!(server.behind(retry().idempotency_keys()).post(URL).send().await.unwrap().status(), 200);
    let keys = server.headers("idempotency-key");
    assert_eq!((keys.len(), &keys[0]), (2, &keys[1]));
    assert_eq!(keys[0].as_ref().unwrap().len(), 2 + 36);

    let server = Server::new([status(503)]);
    let declared = retry().idempotent_if(|request| request.url().path() == "/here");
    assert_eq!(server.behind(declared).post(URL).send().await.unwrap().status(), 200);
    assert_eq!(server.times().len(), 2);
}

#[tokio::test(start_paused = true)]
async fn retry_after_is_honored() {
    let server = Server::new([status_with_header(429, "retry-after", "2")]);
    assert_eq!(server.behind(retry()).get(URL).send().await.unwrap().status(), 200);
    let second = server.times()[1];
    assert!((ms(2000)..=ms(3000)).contains(&second), "{second:?}");
}

#[tokio::test(start_paused = true)]
async fn a_reservation_is_honored_to_the_tick_and_its_token_is_sent_once() {
    let token = "0123456789abcdef0123456789abcdef";
    let server =
        Server::new([status_with_header(503, "stagger-reservation", &format!("1520;token={token}")), status(503)]);
    assert_eq!(server.behind(retry()).get(URL).send().await.unwrap().status(), 200);
    assert_eq!(server.headers("stagger-reservation-token"), [None, Some(token.to_owned()), None]);
    let retried = server.times()[1];
    assert!((ms(1520)..=ms(1521)).contains(&retried), "{retried:?}");
}

#[tokio::test(start_paused = true)]
async fn a_denied_request_is_retried_once_with_fresh_credentials() {
    let server = Server::new([status(401), status(401)]);
    let refreshing = retry_one_hop().refresh_credentials(|request| {
        assert_eq!(request.headers()["authorization"], "stale");
        async { Some(HeaderMap::from_iter([(http::header::AUTHORIZATION, "fresh".parse().unwrap())])) }
    });
    let response = server.behind(refreshing).post(URL).header("authorization", "stale").send().await.unwrap();
    assert_eq!(response.status(), 401);
    assert_eq!(server.headers("authorization"), [Some("stale".to_owned()), Some("fresh".to_owned())]);
    assert_eq!(server.times(), [ms(0), ms(0)]);
}

#[tokio::test(start_paused = true)]
async fn an_announced_wait_is_followed_if_that_was_asked_for() {
    for (client, want) in [(retry(), 403), (retry().announced_waits(), 200)] {
        let server = Server::new([status_with_header(403, "retry-after-ms", "700")]);
        assert_eq!(server.behind(client).get(URL).send().await.unwrap().status(), want);
    }
}

#[tokio::test(start_paused = true)]
async fn a_refresh_that_times_out_returns_the_denial() {
    let server = Server::new([status(401)]);
    let refreshing = RetryMiddleware::new(Retrier::new(POLICY).timeout(ms(50)))
        .refresh_credentials(|_| core::future::pending::<Option<HeaderMap>>());
    let started = Tokio.now();
    assert_eq!(server.behind(refreshing).get(URL).send().await.unwrap().status(), 401);
    assert_eq!(server.times().len(), 1);
    let took = Tokio.now().saturating_since(started);
    assert!((ms(50)..ms(60)).contains(&took), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_deadline_in_the_extensions_limits_the_call_and_is_propagated() {
    let server = Server { takes: ms(10), ..Server::new((0..9).map(|_| status(503))) };
    let client = server.behind(retry().timeout_header());
    let deadline = Deadline::within(ms(250));
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
async fn an_attempt_that_times_out_is_dropped() {
    let server = Server { takes: ms(5000), ..Server::new([]) };
    let client = server.behind(RetryMiddleware::new(Retrier::new(POLICY).timeout(ms(10))));
    let error = client.get(URL).send().await.unwrap_err();
    assert_eq!(rejection(&error), Some(&Rejected::TimedOut));
    assert_eq!(server.times().len(), 4);
    assert!(server.times()[3] < ms(350), "{:?}", server.times());
    // The server may have processed it.
    assert_eq!(rejection(&client.post(URL).send().await.unwrap_err()), Some(&Rejected::TimedOut));
    assert_eq!(server.times().len(), 5);
}

// The breaker opens at the second failure: the next call is rejected without an attempt.
#[tokio::test(start_paused = true)]
async fn the_rejection_of_an_open_breaker_is_distinguishable_from_an_error() {
    let server = Server::new((0..9).map(|_| status(500)));
    let breaker = CircuitBreaker::builder(stagger::Seed::new(7)).consecutive(2).build().unwrap();
    let client = server.behind(RetryMiddleware::new(Retrier::new(POLICY).breaker(breaker)));
    assert_eq!(client.get(URL).send().await.unwrap().status(), 500);
    let arrived = server.times().len();
    let error = client.get(URL).send().await.unwrap_err();
    assert!(matches!(rejection(&error), Some(Rejected::ByGuard { guard: "breaker", .. })), "{error:?}");
    assert_eq!(stagger::stop_reason(&error), Some(StopReason::BREAKER));
    assert_eq!((arrived, server.times().len()), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn nested_middleware_does_not_multiply_attempts() {
    let server = Server::new((0..99).map(|_| status(503)));
    let client = ClientBuilder::new(Client::new()).with(retry()).with(retry()).with(retry()).with(server.clone());
    assert_eq!(client.build().get(URL).send().await.unwrap().status(), 503);
    assert_eq!(server.times().len(), 4);
}

// A request that cannot be built is permanent; other errors are classified by the retrier's rule.
#[tokio::test(start_paused = true)]
async fn permanent_errors_are_not_retried() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let never = Retrier::new(POLICY).when(|error: &reqwest::Error| !error.is_connect());
    for (retry, url) in
        [(retry(), "ftp://server.test/".to_owned()), (RetryMiddleware::new(never), format!("http://{gone}/"))]
    {
        let attempts = Counter::default();
        let client = ClientBuilder::new(Client::new()).with(retry).with(attempts.clone()).build();
        assert!(matches!(client.get(&url).send().await, Err(Error::Reqwest(_))), "{url}");
        assert_eq!(attempts.0.load(Ordering::Relaxed), 1, "{url}");
    }
}

// The body of a failed response is dropped before the backoff ends if it does not end soon.
#[tokio::test(start_paused = true)]
async fn a_failed_response_is_released_during_backoff() {
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
    let client = server.behind(RetryMiddleware::new(Retrier::new(slow)));
    let call = tokio::spawn(client.get(URL).send());
    sleep(ms(1)).await;
    assert_eq!(dropped.load(Ordering::Relaxed), 0, "the grace period has not elapsed");
    sleep(Duration::from_secs(1)).await;
    assert_eq!((dropped.load(Ordering::Relaxed), server.times().len()), (1, 1));
    assert_eq!(call.await.unwrap().unwrap().status(), 200);
}

// A response has already been drained, so the rejection is returned in its place.
#[tokio::test(start_paused = true)]
async fn a_breaker_that_opens_during_backoff_returns_the_last_error() {
    let gone = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let busy = Server::new([status(503)]);
    for has_response in [false, true] {
        let breaker = Arc::new(CircuitBreaker::builder(stagger::Seed::new(1)).consecutive(9).build().unwrap());
        let retry = RetryMiddleware::new(Retrier::new(POLICY).shared_guard(breaker.clone()));
        let call = if has_response {
            busy.behind(retry).get(URL)
        } else {
            ClientBuilder::new(Client::new()).with(retry).build().get(format!("http://{gone}/"))
        };
        let call = tokio::spawn(call.send());
        sleep(ms(50)).await;
        breaker.force_open(&Tokio.now());
        let error = call.await.unwrap().unwrap_err();
        assert_eq!(error.is_connect(), !has_response, "{error:?}");
        assert_eq!(
            matches!(rejection(&error), Some(Rejected::ByGuard { guard: "breaker", .. })),
            has_response,
            "{error:?}"
        );
    }
}

// The server has not read the request, and has reserved a time for it.
#[tokio::test(start_paused = true)]
async fn a_post_that_admission_rejected_is_sent_again_at_its_reserved_time() {
    let reserved = status_with_header(503, "stagger-reservation", "1520;token=0123456789abcdef0123456789abcdef");
    let plain = status_with_header(503, "retry-after", "1");
    let server = Server::new([reserved, plain]);
    let response = server.behind(retry_one_hop()).post(URL).body("an order").send().await.unwrap();
    assert_eq!(response.status(), 503, "a plain 503 says nothing about how far the request got");
    assert_eq!(server.times(), [ms(0), ms(1520)]);
}
