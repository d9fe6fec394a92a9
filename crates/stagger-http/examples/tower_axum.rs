//! tower layers on both sides: a front that retries, behind it a back that lets in what it can take; both are axum's. A herd
//! comes through as a line, a caller that retries makes the front stand down, and its deadline reaches the back.
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
use stagger::{Policy, Retrier, admission::Admission, policy, time::Clock as _, time::Tokio};
use stagger_http::Deadline;
use stagger_http::tower::{AdmissionLayer, CallerLayer, ReplayBody, Retry, RetryLayer};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tower::{Layer as _, ServiceExt as _};

const POLICY: Policy = policy!(exponential(ms(50), secs(2)).max_attempts(3));
/// What the back can take in a second.
const RATE: u32 = 40;
const HERD: u32 = 40;

type Network<B> = Client<HttpConnector, B>;
type Outgoing = Retry<Network<ReplayBody<Full<Bytes>>>, Tokio>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arrived = Arc::new(AtomicU32::new(0));
    let admission = Admission::per_second(RATE).burst(4).build()?;
    let back = Router::new()
        .route("/", get(page).layer(AdmissionLayer::new(admission)))
        .route("/unlimited", get(page))
        .route("/down", get(async || StatusCode::SERVICE_UNAVAILABLE))
        .layer(CallerLayer::new())
        .layer(from_fn_with_state(Arc::clone(&arrived), count));
    let back = serve(back).await?;
    let front = Router::new().fallback(forward).with_state((outgoing(), back.clone())).layer(CallerLayer::new());
    let front = serve(front).await?;

    // Forty callers at once, who do not retry: the front does, at the time that the back has given each of them.
    let started = Instant::now();
    let mut herd = JoinSet::new();
    for _ in 0..HERD {
        herd.spawn(plain().oneshot(request(&front, "/")?));
    }
    for answer in herd.join_all().await {
        assert_eq!(answer?.status(), StatusCode::OK);
    }
    let (attempts, took) = (arrived.swap(0, Ordering::Relaxed), started.elapsed());
    println!("{HERD} calls through the front: {attempts} attempts at the back, done in {took:.2?}");
    assert!(attempts <= HERD * 2 + HERD / 5, "{attempts}");

    // A caller that retries, and says so: the front stands down, and the back sees 3 attempts, not 9.
    let caller = outgoing();
    let answer = caller.clone().oneshot(request(&front, "/down")?).await?;
    let attempts = arrived.swap(0, Ordering::Relaxed);
    println!("a call that fails, retried by its caller: {} with {attempts} attempts at the back", answer.status());
    assert_eq!((answer.status(), attempts), (StatusCode::SERVICE_UNAVAILABLE, 3));

    // What its caller still waits is told from hop to hop.
    let mut hurried = request(&front, "/unlimited")?;
    hurried.extensions_mut().insert(Deadline(Tokio.now().saturating_add(Duration::from_secs(2))));
    let answer = caller.oneshot(hurried).await?;
    let left: u64 = answer.headers()["left-ms"].to_str()?.parse()?;
    println!("a call with a deadline in 2 s: the back knows of {left} ms");
    assert!((1000..=2000).contains(&left), "{left}");
    Ok(())
}

/// A client that retries, and tells the next hop.
fn outgoing() -> Outgoing {
    RetryLayer::new(Retrier::new(POLICY)).attempt_header().timeout_header().layer(plain())
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

/// The front: asks the back for the same, within what its own caller still waits.
async fn forward(State((back, server)): State<(Outgoing, String)>, incoming: Request) -> Result<Response, StatusCode> {
    let mut request = request(&server, incoming.uri().path()).map_err(|_| StatusCode::BAD_REQUEST)?;
    if let Some(deadline) = incoming.extensions().get::<Deadline>() {
        request.extensions_mut().insert(*deadline);
    }
    let answer = back.oneshot(request).await.map_err(|_| StatusCode::BAD_GATEWAY)?;
    Ok(answer.map(Body::new))
}

/// The back: says how much time it knows to be left.
async fn page(request: Request) -> Response {
    let left = request.extensions().get::<Deadline>().map(|deadline| deadline.0.saturating_since(Tokio.now()));
    let mut answer = "a page".into_response();
    if let Some(left) = left {
        answer.headers_mut().insert("left-ms", (left.as_millis() as u32).into());
    }
    answer
}

async fn count(State(arrived): State<Arc<AtomicU32>>, request: Request, next: Next) -> Response {
    arrived.fetch_add(1, Ordering::Relaxed);
    next.run(request).await
}
