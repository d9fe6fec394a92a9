//! reqwest with the middleware, against a server that is down, then busy, then up: which requests are retried, and
//! when.
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

use reqwest::{Client, ClientBuilder};
use stagger::{Policy, Retrier, policy};
use stagger_http::reqwest::{RetryMiddleware, within_origin};
use tokio::net::TcpListener;
use tokio::time::{Instant, sleep};

const POLICY: Policy = policy!(exponential(ms(50), secs(2)).max_attempts(8));
/// The time limit of an attempt. reqwest has none by default.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Time until a server listens.
const DOWN: Duration = Duration::from_millis(200);

/// The requests that have arrived: path and idempotency key.
type Seen = Arc<Mutex<Vec<(&'static str, Option<String>)>>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let retrier =
        Retrier::new(POLICY).named("shop").on_event(|event| println!("    {}: {:?}", event.target, event.action));
    let client = RetryMiddleware::new(retrier).build_client(builder(), within_origin())?;

    // No server listens on the port, so nothing is sent, and any request is retried.
    let address = TcpListener::bind("127.0.0.1:0").await?.local_addr()?;
    let shop = format!("http://{address}");
    let seen = Seen::default();
    tokio::spawn(open_after(DOWN, address, Arc::clone(&seen)));
    println!("an order, to a server that is down:");
    let response = client.post(format!("{shop}/orders")).body("tea").send().await?;
    assert_eq!((response.status(), arrived(&seen)), (StatusCode::OK, vec![("orders", None)]));

    // The server sends `Retry-After`. The retry comes no earlier, and somewhat later, so that clients do not arrive
    // together.
    println!("the price, from a server that is busy for a second:");
    let started = Instant::now();
    let response = client.get(format!("{shop}/price")).send().await?;
    assert_eq!((response.status(), arrived(&seen).len()), (StatusCode::OK, 2));
    assert!(started.elapsed() >= Duration::from_secs(1), "{:?}", started.elapsed());

    // A payment that was sent may have been processed, whatever the response. It is not retried …
    println!("a payment, and the server fails:");
    let response = client.post(format!("{shop}/payments")).body("3.50").send().await?;
    assert_eq!((response.status(), arrived(&seen).len()), (StatusCode::BAD_GATEWAY, 1));

    // … unless it carries a key, by which the server recognizes it.
    println!("the same with a key:");
    let keyed = RetryMiddleware::new(Retrier::new(POLICY)).idempotency_keys();
    let client = keyed.build_client(builder(), within_origin())?;
    let response = client.post(format!("{shop}/payments")).body("3.50").send().await?;
    let payments = arrived(&seen);
    assert_eq!((response.status(), payments.len()), (StatusCode::OK, 2));
    assert!(payments[0].1.is_some() && payments[0] == payments[1], "{payments:?}");
    println!("    paid, with the key {}", payments[0].1.as_deref().unwrap_or_default());
    Ok(())
}

fn builder() -> ClientBuilder {
    Client::builder().timeout(TIMEOUT)
}

/// Returns the requests that have arrived since the last call.
fn arrived(seen: &Seen) -> Vec<(&'static str, Option<String>)> {
    seen.lock().map(|mut seen| core::mem::take(&mut *seen)).unwrap_or_default()
}

/// Records a request, and returns the number of requests recorded since the last check.
fn record(seen: &Seen, what: &'static str, headers: &HeaderMap) -> usize {
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
    record(&seen, "orders", &headers);
}

/// Responds 503 to the first request.
async fn price(State(seen): State<Seen>, headers: HeaderMap) -> Response {
    match record(&seen, "price", &headers) {
        1 => (StatusCode::SERVICE_UNAVAILABLE, [("retry-after", "1")]).into_response(),
        _ => "3.50".into_response(),
    }
}

/// Responds 502 to the first request.
async fn payments(State(seen): State<Seen>, headers: HeaderMap) -> StatusCode {
    match record(&seen, "payments", &headers) {
        1 => StatusCode::BAD_GATEWAY,
        _ => StatusCode::OK,
    }
}
