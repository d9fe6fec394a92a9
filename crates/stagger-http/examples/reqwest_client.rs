//! reqwest with the middleware, against a server that is down, then busy, then up: what is sent again, when, and what is not.
//!
//! ```sh
//! cargo run -p stagger-http --features reqwest-middleware --example reqwest_client
//! ```

use core::error::Error;
use core::net::SocketAddr;
use core::time::Duration;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use reqwest::Client;
use reqwest_middleware::ClientBuilder;
use stagger::{Policy, Retrier, policy};
use stagger_http::reqwest::RetryMiddleware;
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep};

const POLICY: Policy = policy!(exponential(ms(50), secs(2)).max_attempts(8));
/// How long nothing listens.
const DOWN: Duration = Duration::from_millis(200);

/// What has arrived: the path and its key, if it has one.
type Seen = Arc<Mutex<Vec<(&'static str, Option<String>)>>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let retrier =
        Retrier::new(POLICY).named("shop").on_event(|event| println!("    {}: {:?}", event.target, event.action));
    let client = ClientBuilder::new(Client::new()).with(RetryMiddleware::new(retrier)).build();

    // A port that nothing listens on: whatever is sent there has not been carried out, so it is sent again.
    let address = TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
    let shop = format!("http://{address}");
    let seen = Seen::default();
    tokio::spawn(open_after(DOWN, address, Arc::clone(&seen)));
    println!("an order, to a server that is down:");
    let answer = client.post(format!("{shop}/orders")).body("tea").send().await?;
    assert_eq!((answer.status(), arrived(&seen)), (StatusCode::OK, vec![("orders", None)]));

    // It says when to come back: not before, and not to the tick, or everybody would come at once.
    println!("the price, of a server that is busy for a second:");
    let started = Instant::now();
    let answer = client.get(format!("{shop}/price")).send().await?;
    assert_eq!((answer.status(), arrived(&seen).len()), (StatusCode::OK, 2));
    assert!(started.elapsed() >= Duration::from_secs(1), "{:?}", started.elapsed());

    // A payment that has been sent may have been carried out, whatever the answer says. It is not repeated …
    println!("a payment, and the server fails:");
    let answer = client.post(format!("{shop}/payments")).body("3.50").send().await?;
    assert_eq!((answer.status(), arrived(&seen).len()), (StatusCode::BAD_GATEWAY, 1));

    // … unless it carries a key, by which the server knows it again.
    println!("the same with a key:");
    let keyed = RetryMiddleware::new(Retrier::new(POLICY)).idempotency_keys();
    let client = ClientBuilder::new(Client::new()).with(keyed).build();
    let answer = client.post(format!("{shop}/payments")).body("3.50").send().await?;
    let payments = arrived(&seen);
    assert_eq!((answer.status(), payments.len()), (StatusCode::OK, 2));
    assert!(payments[0].1.is_some() && payments[0] == payments[1], "{payments:?}");
    println!("    paid, with the key {}", payments[0].1.as_deref().unwrap_or_default());
    Ok(())
}

/// What has arrived since the last time of asking.
fn arrived(seen: &Seen) -> Vec<(&'static str, Option<String>)> {
    seen.lock().map(|mut seen| core::mem::take(&mut *seen)).unwrap_or_default()
}

/// Notes a request, and says how many of its kind are there.
fn note(seen: &Seen, what: &'static str, headers: &HeaderMap) -> usize {
    let key = headers.get("idempotency-key").and_then(|key| key.to_str().ok()).map(str::to_owned);
    seen.lock().map_or(0, |mut seen| {
        seen.push((what, key));
        seen.len()
    })
}

async fn open_after(down: Duration, address: SocketAddr, seen: Seen) -> std::io::Result<()> {
    sleep(down).await;
    println!("    (the server is up)");
    let shop = Router::new()
        .route("/orders", post(orders))
        .route("/price", get(price))
        .route("/payments", post(payments))
        .with_state(seen);
    axum::serve(TcpListener::bind(address).await?, shop).await
}

async fn orders(State(seen): State<Seen>, headers: HeaderMap) {
    note(&seen, "orders", &headers);
}

/// Busy the first time.
async fn price(State(seen): State<Seen>, headers: HeaderMap) -> Response {
    match note(&seen, "price", &headers) {
        1 => (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "1")]).into_response(),
        _ => "3.50".into_response(),
    }
}

/// Fails the first time.
async fn payments(State(seen): State<Seen>, headers: HeaderMap) -> StatusCode {
    match note(&seen, "payments", &headers) {
        1 => StatusCode::BAD_GATEWAY,
        _ => StatusCode::OK,
    }
}
