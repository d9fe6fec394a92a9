//! Real servers and real time: many tasks, one client, and a server that asks one of them to wait.

use core::net::SocketAddr;
use core::ops::Range;

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Redirect, Response as ServerResponse};
use axum::routing::{any, get};
use http::Extensions;
use reqwest::{Client, redirect};
use reqwest_middleware::{ClientBuilder, ClientWithMiddleware, Middleware, Next};
use stagger::guard::QuietTrigger;
use stagger_http::key;
use stagger_http::reqwest::RetryMiddleware;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::sleep_until;

use super::*;

/// The requests: when each arrived since the start, its credentials, and whether it was refused.
type Log = Arc<Mutex<Vec<(Duration, String, bool)>>>;

/// Writes down when the client sends a request, and when it has read a refusal, however busy the machine is between
/// the two. A request that is on its way when the refusal is read could not know of it.
#[derive(Clone)]
struct Wire {
    start: Instant,
    /// When each request was sent since the start, and with which credentials.
    sent: Arc<Mutex<Vec<(Duration, String)>>>,
    /// When each refusal was read.
    refused: Arc<Mutex<Vec<Duration>>>,
}

#[async_trait::async_trait]
impl Middleware for Wire {
    async fn handle(
        &self,
        request: reqwest::Request,
        extensions: &mut Extensions,
        next: Next<'_>,
    ) -> reqwest_middleware::Result<reqwest::Response> {
        let user = request.headers().get("authorization").map_or("", |value| value.to_str().unwrap()).to_owned();
        self.sent.lock().unwrap().push((self.start.elapsed(), user));
        let response = next.run(request, extensions).await?;
        if response.status() == StatusCode::TOO_MANY_REQUESTS {
            self.refused.lock().unwrap().push(self.start.elapsed());
        }
        Ok(response)
    }
}

impl Wire {
    fn new(start: Instant) -> Self {
        Self { start, sent: Arc::default(), refused: Arc::default() }
    }

    /// Returns a client that is watched below its retries.
    fn watch(&self, client: ClientWithMiddleware) -> ClientWithMiddleware {
        ClientBuilder::from_client(client).with(self.clone()).build()
    }

    /// Returns when the client had read this many refusals.
    fn had_read(&self, refusals: usize) -> Duration {
        self.refused.lock().unwrap()[refusals - 1]
    }

    /// Returns how many requests of a user (of all if it is empty) were sent in this time.
    fn sent_in(&self, time: Range<Duration>, user: &str) -> usize {
        let sent = self.sent.lock().unwrap();
        sent.iter().filter(|(at, by)| time.contains(at) && by.contains(user)).count()
    }

    /// Returns the most requests that were sent within 100 ms, from this time on.
    fn most_from(&self, time: Duration) -> usize {
        let sent = self.sent.lock().unwrap();
        let after: Vec<_> = sent.iter().map(|(at, _)| *at).filter(|at| *at >= time).collect();
        let most = |n: usize| after[n..].iter().take_while(|at| **at < after[n] + ms(100)).count();
        (0..after.len()).map(most).max().unwrap_or(0)
    }
}

/// Serves 429 with these headers to the requests that `refuses`, by their time and credentials, and 200 to others.
async fn serve<F>(start: Instant, hint: Option<&'static str>, refuses: F) -> (SocketAddr, Log)
where
    F: Fn(Duration, &str) -> bool + Clone + Send + Sync + 'static,
{
    let log = Log::default();
    let seen = Arc::clone(&log);
    let app = Router::new().fallback(move |headers: HeaderMap| {
        let at = start.elapsed();
        let user = headers.get("authorization").map_or("", |value| value.to_str().unwrap()).to_owned();
        let is_refused = refuses(at, &user);
        seen.lock().unwrap().push((at, user, is_refused));
        async move { answer(is_refused, hint) }
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    (address, log)
}

/// Refuses requests from this time on, for this long since the first: it may come late on a busy machine.
fn limit(from: Duration, length: Duration) -> impl Fn(Duration, &str) -> bool + Clone + Send + Sync {
    let first: Arc<OnceLock<Duration>> = Arc::default();
    move |at, _| at >= from && at < *first.get_or_init(|| at) + length
}

fn answer(is_refused: bool, hint: Option<&'static str>) -> ServerResponse {
    match (is_refused, hint) {
        (true, Some(hint)) => (StatusCode::TOO_MANY_REQUESTS, [("retry-after", hint)]).into_response(),
        (true, None) => StatusCode::TOO_MANY_REQUESTS.into_response(),
        (false, _) => StatusCode::OK.into_response(),
    }
}

fn client(retrier: impl Into<Retrier>) -> ClientWithMiddleware {
    built(RetryMiddleware::new(retrier))
}

fn built(retries: RetryMiddleware) -> ClientWithMiddleware {
    let client = Client::builder().timeout(Duration::from_secs(5));
    retries.build_client(client, redirect::Policy::none()).unwrap()
}

/// What became of calls.
struct Done {
    failed: usize,
    /// The longest time for which the machine did not run this test. What was due in it is sent at once.
    stall: Duration,
}

/// Makes a call of each task, `every` so long after the one before.
async fn calls(client: &ClientWithMiddleware, address: SocketAddr, tasks: u32, every: Duration, token: &str) -> Done {
    let start = Instant::now();
    let tasks = (0..tasks).map(|task| {
        let request = client.get(format!("http://{address}/")).header("authorization", token);
        async move {
            sleep_until(start + every * task).await;
            request.send().await.map_or(0, |response| response.status().as_u16())
        }
    });
    let mut tasks: JoinSet<_> = tasks.collect();
    let mut done = Done { failed: 0, stall: Duration::ZERO };
    while !tasks.is_empty() {
        let before = Instant::now();
        tokio::select! {
            Some(status) = tasks.join_next() => done.failed += usize::from(status.unwrap() != 200),
            () = tokio::time::sleep(ms(5)) => done.stall = done.stall.max(before.elapsed().saturating_sub(ms(5))),
        }
    }
    done
}

const FOUR: Policy = policy!(exponential(ms(100), secs(10)).max_attempts(4));

/// The scale of the case in virtual time, divided by ten in time: a thousand tasks, and a pause of one second.
#[tokio::test]
async fn one_429_of_a_real_server_holds_a_thousand_tasks() {
    let start = Instant::now();
    let (address, log) = serve(start, Some("1"), limit(ms(400), SECOND)).await;
    let wire = Wire::new(start);
    let done = calls(&wire.watch(client(quiet(FOUR))), address, 1_000, ms(1), "Bearer one").await;
    let armed = wire.had_read(1);
    let (in_pause, most) = (wire.sent_in(armed..armed + SECOND, ""), wire.most_from(armed + SECOND));
    let refused = log.lock().unwrap().iter().filter(|(at, _, is_refused)| *is_refused && *at > armed + SECOND).count();
    // About 400 calls per second were admitted before the pause.
    let bound = 120 + due_in(done.stall, 400);
    let figures = (in_pause, most, bound, refused, done.failed);
    assert!(in_pause <= 1 && most <= bound && refused <= 1 && done.failed == 0, "{figures:?}");
}

/// Returns how many requests of a rate per second are due in this time.
fn due_in(time: Duration, rate: u32) -> usize {
    (time.as_secs_f64() * f64::from(rate)).ceil() as usize
}

#[tokio::test]
async fn the_429_of_one_customer_does_not_hold_another_on_a_real_server() {
    let start = Instant::now();
    let (address, _) =
        serve(start, Some("1"), |at, user| user == "Bearer one" && (ms(100)..ms(1_100)).contains(&at)).await;
    let wire = Wire::new(start);
    let client = wire.watch(built(RetryMiddleware::new(quiet(FOUR)).guards_by(key::credentials)));
    let (one, two) = tokio::join!(
        calls(&client, address, 100, ms(10), "Bearer one"),
        calls(&client, address, 100, ms(10), "Bearer two")
    );
    assert_eq!((one.failed, two.failed), (0, 0));
    let armed = wire.had_read(1);
    let in_pause = |user: &str| wire.sent_in(armed..armed + SECOND - ms(1), user);
    assert_eq!(in_pause("Bearer one"), 0);
    assert!(in_pause("Bearer two") > 30, "{}", in_pause("Bearer two"));
}

/// The key is any function of the request.
#[tokio::test]
async fn the_429_of_one_route_does_not_hold_another_on_a_real_server() {
    let start = Instant::now();
    let (address, log) = serve(start, Some("1"), move |at, _| at < ms(300)).await;
    let by_path = |request: &reqwest::Request| request.url().path().to_owned();
    let client = built(RetryMiddleware::new(quiet(ONCE)).guards_by(by_path));
    let send = |path: &str| client.get(format!("http://{address}{path}")).send();
    assert_eq!(send("/limited").await.unwrap().status(), 429);
    sleep_until(start + ms(400)).await;
    assert_eq!(send("/other").await.unwrap().status(), 200);
    assert_eq!(send("/limited").await.unwrap().status(), 200);
    let arrived: Vec<_> = log.lock().unwrap().iter().map(|(at, ..)| *at).collect();
    assert!(arrived[1] < SECOND && arrived[2] >= arrived[0] + SECOND, "{arrived:?}");
}

/// A healthy route of a server that limits another: all of its calls are served.
#[tokio::test]
async fn by_default_a_limited_route_takes_no_other_route_down_on_a_real_server() {
    let app = Router::new()
        .route("/busy", get(|| async { (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "1")]) }))
        .route("/ok", get(|| async {}));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let client = client(policy!(exponential(ms(100), secs(2)).max_attempts(3)));
    let start = Instant::now();
    let busy: JoinSet<_> = (0..6)
        .map(|n| {
            let call = client.get(format!("http://{address}/busy"));
            async move {
                sleep_until(start + ms(300) * n).await;
                let _ = call.send().await;
            }
        })
        .collect();
    for n in 0..40 {
        sleep_until(start + ms(50) * n).await;
        let called = Instant::now();
        assert_eq!(client.get(format!("http://{address}/ok")).send().await.unwrap().status(), 200);
        assert!(called.elapsed() < SECOND, "{:?}", called.elapsed());
    }
    drop(busy);
}

/// What a server says that another one has redirected to is not for the calls to that one.
#[tokio::test]
async fn the_429_of_the_target_of_a_redirect_does_not_hold_its_origin_on_a_real_server() {
    let start = Instant::now();
    let (limited, _) = serve(start, Some("10"), |_, _| true).await;
    let to_limited = format!("http://{limited}/");
    let app = Router::new()
        .route("/away", any(move || async move { Redirect::temporary(&to_limited) }))
        .route("/ok", get(|| async {}));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    let retries = RetryMiddleware::new(quiet(ONCE));
    let client = retries.build_client(Client::builder(), redirect::Policy::default()).unwrap();
    let url = |path| format!("http://{address}{path}");
    for away in [client.get(url("/away")), client.post(url("/away"))] {
        assert_eq!(away.send().await.unwrap().status(), 429);
        assert_eq!(client.get(url("/ok")).send().await.unwrap().status(), 200);
    }
    assert!(start.elapsed() < 5 * SECOND, "{:?}", start.elapsed());
    // The limited server itself has asked.
    assert_eq!(client.get(format!("http://{limited}/")).send().await.unwrap().status(), 429);
    assert!(tokio::time::timeout(SECOND, client.get(format!("http://{limited}/")).send()).await.is_err());
}

/// ScyllaDB #30775: more than a fifth is refused, without a hint. There, everything that was frozen starts together.
#[tokio::test]
async fn frozen_tasks_do_not_start_together_on_a_real_server() {
    let start = Instant::now();
    let (address, _) = serve(start, None, limit(ms(300), ms(600))).await;
    let wire = Wire::new(start);
    let refusals = QuietPeriod::builder().trigger(QuietTrigger::HintsAndRefusals).build().unwrap();
    let client = wire.watch(client(Retrier::new(FOUR).guard(refusals)));
    let done = calls(&client, address, 500, ms(2), "Bearer one").await;
    // It takes a share of the calls of the last window to arm it.
    let armed = wire.had_read(11) + ms(150);
    let (in_pause, most) =
        (wire.sent_in(armed..armed + SECOND - ms(150), ""), wire.most_from(armed + SECOND - ms(150)));
    let bound = 90 + due_in(done.stall, 500);
    assert!(in_pause == 0 && done.failed == 0 && most <= bound, "{:?}", (in_pause, most, bound, done.failed));
}

/// git-lfs #6322: a hint of an hour is followed as far as the quiet period follows hints.
#[tokio::test]
async fn a_hint_of_an_hour_pauses_for_the_limit_on_a_real_server() {
    let start = Instant::now();
    let (address, log) = serve(start, Some("3600"), |at, _| at < ms(300)).await;
    let policy = FOUR.to_builder().max_attempts(1).unlimited_hint().build().unwrap();
    let second = QuietPeriod::builder().max(SECOND).build().unwrap();
    let client = client(Retrier::new(policy).guard(second));
    let request = || client.get(format!("http://{address}/")).send();
    assert_eq!(request().await.unwrap().status(), 429);
    assert_eq!(request().await.unwrap().status(), 200);
    let second = log.lock().unwrap()[1].0;
    assert!((SECOND..2 * SECOND).contains(&second), "{second:?}");
}

/// icechunk #2408: refusals use up no attempts of the calls that wait, and no budget.
#[tokio::test]
async fn refusals_are_backpressure_and_not_failures_on_a_real_server() {
    let start = Instant::now();
    let (address, log) = serve(start, Some("1"), limit(ms(200), ms(900))).await;
    let budget = stagger::budget::Tokens::builder().capacity(5).cost(1).build().unwrap();
    let policy = FOUR.to_builder().max_attempts(2).build().unwrap();
    let Done { failed, stall } = calls(&client(quiet(policy).budget(budget)), address, 200, ms(4), "Bearer one").await;
    let refused = log.lock().unwrap().iter().filter(|(.., is_refused)| *is_refused).count();
    // What was due in a stall is on its way when the first refusal is read.
    let late = due_in(stall, 250);
    assert!(failed <= late && refused <= 5 + late, "{failed} failed, {refused} refused, {late} late");
}
