//! A server that is killed and comes back, in the middle of ten thousand requests.

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
use stagger::{Policy, Retrier, observe::Action, policy, time::Tokio};
use stagger_http::tower::Retry;
use stagger_kit::{Ledger, Port, Program, Ready, Server, Stream};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tower::{Layer as _, ServiceExt as _};

use super::{Hyper, hyper, layer, on_threads, request};

const POLICY: Policy = policy!(exponential(ms(20), secs(1)).max_attempts(30));
const REQUESTS: usize = 10_000;
const AT_ONCE: usize = 50;

type Client = Retry<Hyper, Tokio>;

/// Effects by key, as the ledger has them.
type Effects = Arc<Mutex<(Ledger, HashMap<String, String>)>>;

/// In an answer about an effect that was there already.
const REPEATED: &str = "x-repeated";

/// The server, as a process of its own. Effect and key are one durable record, written before the answer.
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

type Answer = (HeaderMap, String);

async fn pay(State(effects): State<Effects>, headers: HeaderMap, body: String) -> Result<Answer, StatusCode> {
    let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok()).ok_or(StatusCode::BAD_REQUEST)?;
    let answer = {
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
    // Whoever is killed here has paid and not said so.
    sleep(Duration::from_millis(5)).await;
    Ok((HeaderMap::new(), answer))
}

/// What came of a request.
struct Ended {
    number: usize,
    was_repeated: bool,
    /// An answer that is cut off by the kill after its beginning is an error, which the caller sees.
    text: Result<String, hyper::Error>,
}

/// Every fifth is a payment; the others read.
const fn is_payment(number: usize) -> bool {
    number % 5 == 0
}

async fn call(client: Client, address: SocketAddr, number: usize) -> Ended {
    let (method, path) = if is_payment(number) { (Method::POST, "/pay") } else { (Method::GET, "/read") };
    let answer = client.oneshot(request(method, address, path, number.to_string())).await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    let was_repeated = answer.headers().contains_key(REPEATED);
    let text = answer.into_body().collect().await;
    let text = text.map(|text| String::from_utf8(text.to_bytes().to_vec()).unwrap());
    Ended { number, was_repeated, text }
}

/// All requests, so many at a time; the server is killed and started again after every three thousand.
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
fn a_server_that_is_killed_loses_no_request_and_does_nothing_twice() {
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
    assert!(ended.iter().any(|ended| ended.was_repeated), "somebody had paid and was not told");
    for Ended { number, text, .. } in ended {
        let want = if is_payment(number) { number.to_string() } else { "read".to_owned() };
        assert!(text.as_ref().map_or(true, |text| *text == want), "{number}: {text:?}");
    }
    let mut effects: Vec<usize> =
        Ledger::read(&path).unwrap().iter().map(|record| record.split_once(' ').unwrap().1.parse().unwrap()).collect();
    effects.sort_unstable();
    assert_eq!(effects, (0..REQUESTS).filter(|&number| is_payment(number)).collect::<Vec<_>>(), "each payment once");
}
