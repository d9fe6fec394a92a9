//! tower layers on both sides: a frontend that retries and a backend with admission control, both on axum. A thundering
//! herd is admitted at the backend's rate, a caller that retries disables the frontend's retries, and its deadline
//! reaches the backend.
//!
//! ```sh
//! cargo run -p stagger-http --example tower_axum
//! ```

use core::error::Error;
use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::io;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use bytes::Bytes;
use http_body::Body as HttpBody;
use http_body_util::Full;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use stagger::admission::{Admission, random_secret};
use stagger::{Policy, Retrier, policy, time::Clock as _, time::Tokio};
use stagger_http::Deadline;
use stagger_http::tower::{AdmissionLayer, CallerContextLayer, ReplayBody, RetryLayer, RetryService};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tower::{Layer as _, ServiceExt as _};

const POLICY: Policy = policy!(exponential(ms(50), secs(2)).max_attempts(3));
/// The time limit of an attempt. hyper-util's client has none.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Requests that the backend admits per second.
const RATE: u32 = 40;
const HERD: u32 = 40;

type Network<B> = Client<HttpConnector, B>;
type Outgoing = RetryService<Network<ReplayBody<Full<Bytes>>>, Tokio>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arrived = Arc::new(AtomicU32::new(0));
    let admission = Admission::per_second(RATE).burst(4).build(random_secret())?;
    let backend = Router::new()
        .route("/", get(page).layer(AdmissionLayer::new(admission)))
        .route("/unlimited", get(page))
        .route("/down", get(async || StatusCode::SERVICE_UNAVAILABLE))
        .layer(CallerContextLayer::new())
        .layer(from_fn_with_state(Arc::clone(&arrived), count));
    let backend = serve(backend).await?;
    let frontend =
        Router::new().fallback(forward).with_state((outgoing(), backend.clone())).layer(CallerContextLayer::new());
    let frontend = serve(frontend).await?;

    // Forty callers at once that do not retry. The frontend does, at the time that the backend has reserved for each.
    let started = Instant::now();
    let mut herd = JoinSet::new();
    for _ in 0..HERD {
        herd.spawn(plain().oneshot(request(&frontend, "/")?));
    }
    for response in herd.join_all().await {
        assert_eq!(response?.status(), StatusCode::OK);
    }
    let (attempts, took) = (arrived.swap(0, Ordering::Relaxed), started.elapsed());
    println!("{HERD} calls through the frontend: {attempts} attempts at the backend, done in {took:.2?}");
    assert!(attempts <= HERD * 2 + HERD / 5, "{attempts}");

    // The caller announces that it retries, so the frontend does not, and the backend sees 3 attempts, not 9.
    let caller = outgoing();
    let response = caller.clone().oneshot(request(&frontend, "/down")?).await?;
    let attempts = arrived.swap(0, Ordering::Relaxed);
    println!("a failing call, retried by its caller: {} with {attempts} attempts at the backend", response.status());
    assert_eq!((response.status(), attempts), (StatusCode::SERVICE_UNAVAILABLE, 3));

    // The remaining time is propagated from hop to hop.
    let mut urgent = request(&frontend, "/unlimited")?;
    urgent.extensions_mut().insert(Deadline::within(Duration::from_secs(2)));
    let response = caller.oneshot(urgent).await?;
    let left: u64 = response.headers()["left-ms"].to_str()?.parse()?;
    println!("a call with a deadline in 2 s: the backend has {left} ms left");
    assert!((1000..=2000).contains(&left), "{left}");
    Ok(())
}

/// Creates a client that retries, and sends the attempt number and the timeout to the next hop.
fn outgoing() -> Outgoing {
    RetryLayer::new(Retrier::new(POLICY).timeout(TIMEOUT)).attempt_header().timeout_header().layer(plain())
}

fn plain<B>() -> Network<B>
where
    B: HttpBody<Data: Send> + Send,
{
    Client::builder(TokioExecutor::new()).build_http()
}

fn request(server: &str, path: &str) -> Result<http::Request<Full<Bytes>>, http::Error> {
    http::Request::get(format!("{server}{path}")).body(Full::default())
}

async fn serve(router: Router) -> io::Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    tokio::spawn(axum::serve(listener, router).into_future());
    Ok(format!("http://{address}"))
}

/// Handles a request at the frontend: forwards it to the backend, with the caller's deadline.
async fn forward(
    State((backend, server)): State<(Outgoing, String)>,
    incoming: Request,
) -> Result<Response, StatusCode> {
    let mut request = request(&server, incoming.uri().path()).map_err(|_| StatusCode::BAD_REQUEST)?;
    if let Some(deadline) = incoming.extensions().get::<Deadline>() {
        request.extensions_mut().insert(*deadline);
    }
    let response = backend.oneshot(request).await.map_err(|_| StatusCode::BAD_GATEWAY)?;
    Ok(response.map(Body::new))
}

/// Handles a request at the backend: responds with the time until the deadline.
async fn page(request: Request) -> Response {
    let left = request.extensions().get::<Deadline>().map(|deadline| deadline.instant().saturating_since(Tokio.now()));
    let mut response = "a page".into_response();
    if let Some(left) = left {
        response.headers_mut().insert("left-ms", (left.as_millis() as u32).into());
    }
    response
}

async fn count(State(arrived): State<Arc<AtomicU32>>, request: Request, next: Next) -> Response {
    arrived.fetch_add(1, Ordering::Relaxed);
    next.run(request).await
}
