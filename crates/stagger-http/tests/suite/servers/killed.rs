//! A server that is killed and restarted in the middle of 10,000 requests.

use core::net::SocketAddr;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::time::Duration;
use std::collections::HashMap;
use std::env;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::routing::{get, post};
use http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode};
use http_body_util::BodyExt as _;
use stagger::observe::Action;
use stagger::time::Tokio;
use stagger::{Policy, Retrier, policy};
use stagger_http::tower::RetryService;
use stagger_kit::{Ledger, Port, Program, Ready, Server, Stream};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tower::{Layer as _, ServiceExt as _};

use super::{Hyper, hyper, layer, on_threads, request};

const POLICY: Policy = policy!(exponential(ms(20), secs(1)).max_attempts(30));
const REQUESTS: usize = 10_000;
const AT_ONCE: usize = 50;

type Client = RetryService<Hyper, Tokio>;

/// Effects by key, as recorded in the ledger.
type Effects = Arc<Mutex<(Ledger, HashMap<String, String>)>>;

/// The header of a response whose effect had been recorded before.
const REPEATED: &str = "x-repeated";

// The server process. Effect and key are one durable record, written before the response is sent.
#[test]
#[ignore = "a child process of another test"]
fn child_that_takes_payments() {
    let (Ok(port), Ok(path)) = (env::var("PORT"), env::var("LEDGER")) else { return };
    let ledger = Ledger::open(path).unwrap();
    let known = ledger.records().iter().filter_map(|record| record.split_once(' '));
    let known = known.map(|(key, effect)| (key.to_owned(), effect.to_owned())).collect();
    let effects: Effects = Arc::new(Mutex::new((ledger, known)));
    let app = Router::new().route("/read", get(async || "read")).route("/pay", post(pay)).with_state(effects);
    on_threads(async {
        let listener = TcpListener::bind(format!("127.0.0.1:{port}")).await.unwrap();
        println!("serving");
        axum::serve(listener, app).await.unwrap();
    });
}

type PaymentResponse = (HeaderMap, String);

async fn pay(State(effects): State<Effects>, headers: HeaderMap, body: String) -> Result<PaymentResponse, StatusCode> {
    let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok()).ok_or(StatusCode::BAD_REQUEST)?;
    let response = {
        let mut effects = effects.lock().unwrap();
        let (ledger, known) = &mut *effects;
        if let Some(effect) = known.get(key) {
            let repeated = HeaderMap::from_iter([(HeaderName::from_static(REPEATED), HeaderValue::from_static("1"))]);
            return Ok((repeated, effect.clone()));
        }
        ledger.append(&format!("{key} {body}")).map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
        known.insert(key.to_owned(), body.clone());
        body
    };
    // A server that is killed here has recorded the payment but not responded.
    sleep(Duration::from_millis(5)).await;
    Ok((HeaderMap::new(), response))
}

/// The result of a request.
struct Ended {
    number: usize,
    was_repeated: bool,
    /// A response that the kill cuts off in its body is an error, which the caller sees.
    text: Result<String, hyper::Error>,
}

/// Returns whether the request is a payment: every fifth. The others are reads.
const fn is_payment(number: usize) -> bool {
    number % 5 == 0
}

async fn call(client: Client, address: SocketAddr, number: usize) -> Ended {
    let (method, path) = if is_payment(number) { (Method::POST, "/pay") } else { (Method::GET, "/read") };
    let response = client.oneshot(request(method, address, path, number.to_string())).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let was_repeated = response.headers().contains_key(REPEATED);
    let text = response.into_body().collect().await;
    let text = text.map(|text| String::from_utf8(text.to_bytes().to_vec()).unwrap());
    Ended { number, was_repeated, text }
}

/// Sends all requests, `AT_ONCE` concurrently. Kills and restarts the server after every 3,000.
async fn all(client: Client, address: SocketAddr, server: &mut Server) -> Vec<Ended> {
    let (mut calls, mut ended) = (JoinSet::new(), Vec::new());
    for number in 0..REQUESTS {
        calls.spawn(call(client.clone(), address, number));
        if calls.len() >= AT_ONCE {
            ended.push(calls.join_next().await.unwrap().unwrap());
            if ended.len() % 3000 == 0 {
                server.kill();
                sleep(Duration::from_millis(50)).await;
                server.restart().unwrap();
            }
        }
    }
    ended.extend(calls.join_all().await);
    ended
}

#[test]
fn a_killed_server_loses_no_request_and_executes_none_twice() {
    let (directory, port) = (tempfile::tempdir().unwrap(), Port::reserve().unwrap());
    let path = directory.path().join("ledger");
    let program = Program::this_test("suite::servers::killed::child_that_takes_payments").unwrap();
    let program = program.env("PORT", port.number().to_string()).env("LEDGER", &path);
    let ready = Ready::Line(Stream::Stdout, "serving".into());
    let mut server = Server::start(program, ready, Duration::from_secs(30)).unwrap();

    let retries = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&retries);
    let retrier = Retrier::new(POLICY).on_event(move |event| {
        count.fetch_add(usize::from(matches!(event.action, Action::Retry { .. })), Ordering::Relaxed);
    });
    let client = layer(retrier).idempotency_keys();
    let ended = on_threads(async { all(client.layer(hyper()), port.address(), &mut server).await });
    server.kill();

    assert_eq!(ended.len(), REQUESTS);
    assert!(retries.load(Ordering::Relaxed) >= 3, "three kills were noticed");
    assert!(ended.iter().any(|ended| ended.was_repeated), "a payment was recorded whose response was lost");
    for Ended { number, text, .. } in ended {
        let want = if is_payment(number) { number.to_string() } else { "read".to_owned() };
        assert!(text.as_ref().map_or(true, |text| *text == want), "{number}: {text:?}");
    }
    let mut effects: Vec<usize> =
        Ledger::read(&path).unwrap().iter().map(|record| record.split_once(' ').unwrap().1.parse().unwrap()).collect();
    effects.sort_unstable();
    assert_eq!(effects, (0..REQUESTS).filter(|&number| is_payment(number)).collect::<Vec<_>>(), "each payment once");
}
