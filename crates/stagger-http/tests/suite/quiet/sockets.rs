//! Real servers and real time: many tasks, one client, and a server that asks one of them to wait.

use core::net::SocketAddr;

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response as ServerResponse};
use reqwest::{Client, redirect};
use reqwest_middleware::ClientWithMiddleware;
use stagger::Retrier;
use stagger::guard::QuietPeriod;
use stagger_http::reqwest::RetryMiddleware;
use tokio::net::TcpListener;
use tokio::time::sleep_until;

use super::*;

/// A round trip on this machine while other tests run.
const ROUND_TRIP: Duration = ms(150);

/// The requests: when each arrived since the start, its credentials, and whether it was refused.
type Log = Arc<Mutex<Vec<(Duration, String, bool)>>>;

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

fn answer(is_refused: bool, hint: Option<&'static str>) -> ServerResponse {
    match (is_refused, hint) {
        (true, Some(hint)) => (StatusCode::TOO_MANY_REQUESTS, [("retry-after", hint)]).into_response(),
        (true, None) => StatusCode::TOO_MANY_REQUESTS.into_response(),
        (false, _) => StatusCode::OK.into_response(),
    }
}

fn client(retrier: impl Into<Retrier>) -> ClientWithMiddleware {
    let client = Client::builder().timeout(Duration::from_secs(5));
    RetryMiddleware::new(retrier).build_client(client, redirect::Policy::none()).unwrap()
}

/// Makes a call of each task, `every` so long after the one before. Returns how many failed.
async fn calls(client: &ClientWithMiddleware, address: SocketAddr, tasks: u32, every: Duration, token: &str) -> usize {
    let start = Instant::now();
    let tasks: Vec<_> = (0..tasks)
        .map(|task| {
            let request = client.get(format!("http://{address}/")).header("authorization", token);
            tokio::spawn(async move {
                sleep_until(start + every * task).await;
                request.send().await.map_or(0, |response| response.status().as_u16())
            })
        })
        .collect();
    let mut failed = 0;
    for task in tasks {
        failed += usize::from(task.await.unwrap() != 200);
    }
    failed
}

/// The requests from the end of a pause on, one round trip after its beginning, and the most of them within 100 ms.
fn arrivals(log: &Log, from: Duration, until: Duration) -> (usize, usize) {
    let log = log.lock().unwrap();
    let times: Vec<_> = log.iter().map(|(at, ..)| *at).collect();
    let inside = times.iter().filter(|at| (from..until).contains(*at)).count();
    let after: Vec<_> = times.into_iter().filter(|at| *at >= until).collect();
    let most = |n: usize| after[n..].iter().take_while(|at| **at < after[n] + ms(100)).count();
    (inside, (0..after.len()).map(most).max().unwrap_or(0))
}

const FOUR: Policy = policy!(exponential(ms(100), secs(10)).max_attempts(4));

/// The scale of the case in virtual time, divided by ten in time: a thousand tasks, and a pause of one second.
#[tokio::test]
async fn one_429_of_a_real_server_holds_a_thousand_tasks() {
    let start = Instant::now();
    let limit = ms(400)..ms(1_400);
    let (address, log) = serve(start, Some("1"), move |at, _| limit.contains(&at)).await;
    let failed = calls(&client(FOUR), address, 1_000, ms(1), "Bearer one").await;
    let first = log.lock().unwrap().iter().find(|(.., is_refused)| *is_refused).unwrap().0;
    let (in_pause, most) = arrivals(&log, first + ROUND_TRIP, first + SECOND);
    let refused = log.lock().unwrap().iter().filter(|(at, _, is_refused)| *is_refused && *at > first + SECOND).count();
    // About 400 calls per second were admitted before the pause.
    let figures = (in_pause, most, refused, failed);
    assert!(in_pause <= 1 && most <= 120 && refused <= 1 && failed == 0, "{figures:?}");
}

#[tokio::test]
async fn the_429_of_one_customer_does_not_hold_another_on_a_real_server() {
    let start = Instant::now();
    let (address, log) =
        serve(start, Some("1"), |at, user| user == "Bearer one" && (ms(100)..ms(1_100)).contains(&at)).await;
    let client = client(FOUR);
    let (one, two) = tokio::join!(
        calls(&client, address, 100, ms(10), "Bearer one"),
        calls(&client, address, 100, ms(10), "Bearer two")
    );
    assert_eq!((one, two), (0, 0));
    let log = log.lock().unwrap();
    let first = log.iter().find(|(.., is_refused)| *is_refused).unwrap().0;
    let in_pause = |user: &str| {
        let (from, until) = (first + ROUND_TRIP, first + SECOND - ms(200));
        log.iter().filter(|(at, by, _)| by == user && (from..until).contains(at)).count()
    };
    assert_eq!(in_pause("Bearer one"), 0);
    assert!(in_pause("Bearer two") > 30, "{}", in_pause("Bearer two"));
}

/// ScyllaDB #30775: more than a fifth is refused, without a hint. There, everything that was frozen starts together.
#[tokio::test]
async fn frozen_tasks_do_not_start_together_on_a_real_server() {
    let start = Instant::now();
    let limit = ms(300)..ms(900);
    let (address, log) = serve(start, None, move |at, _| limit.contains(&at)).await;
    let client = client(Retrier::new(FOUR).quiet_period(QuietPeriod::new()));
    let failed = calls(&client, address, 500, ms(2), "Bearer one").await;
    let log_of = |is_refused: bool| log.lock().unwrap().iter().filter(|(.., refused)| *refused == is_refused).count();
    let armed = log.lock().unwrap().iter().filter(|(.., is_refused)| *is_refused).nth(10).unwrap().0;
    let (in_pause, most) = arrivals(&log, armed + ROUND_TRIP, armed + SECOND);
    assert!(in_pause == 0 && failed == 0 && most <= 90, "{:?}", (in_pause, most, failed, log_of(true)));
}

/// git-lfs #6322: a hint of an hour is followed as far as the policy follows hints.
#[tokio::test]
async fn a_hint_of_an_hour_pauses_for_the_limit_on_a_real_server() {
    let start = Instant::now();
    let (address, log) = serve(start, Some("3600"), |at, _| at < ms(300)).await;
    let client = client(FOUR.to_builder().max_hint(SECOND).build().unwrap());
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
    let limit = ms(200)..ms(1_100);
    let (address, log) = serve(start, Some("1"), move |at, _| limit.contains(&at)).await;
    let budget = stagger::budget::Tokens::builder().capacity(5).cost(1).build().unwrap();
    let policy = FOUR.to_builder().max_attempts(2).build().unwrap();
    let failed = calls(&client(Retrier::new(policy).budget(budget)), address, 200, ms(4), "Bearer one").await;
    let refused = log.lock().unwrap().iter().filter(|(.., is_refused)| *is_refused).count();
    assert!(failed == 0 && refused <= 5, "{failed} failed, {refused} refused");
}
