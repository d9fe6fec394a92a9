//! Two hundred clients of an event stream, and a server that is restarted twice: no event is lost, and the clients come
//! back over the spread instead of in the same instant.
//!
//! ```sh
//! cargo run -p stagger-http --features sse --example event_stream
//! ```

use core::convert::Infallible;
use core::error::Error;
use core::net::SocketAddr;
use core::time::Duration;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderMap, HeaderValue, Response};
use axum::routing::get;
use bytes::Bytes;
use http_body_util::Empty;
use http_body_util::channel::Channel;
use hyper_util::client::legacy::{self, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use stagger::{Policy, policy};
use stagger_http::sse::{Client, Event};
use tokio::net::{TcpListener, TcpSocket};
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep, timeout};

/// The profile `web-socket`, ten times as fast.
const POLICY: Policy = policy!(
    exponential(ms(1500), secs(3)).jitter(Jitter::Equal).spread(secs(1)).unlimited_attempts().stable_after(secs(1))
);
const CLIENTS: usize = 200;
const EVENTS: u64 = 60;
/// The time between two events.
const TICK: Duration = Duration::from_millis(100);

/// When requests arrived, since the start.
type Arrivals = Arc<Mutex<Vec<Duration>>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let feed = Feed { start: Instant::now(), arrivals: Arrivals::default() };
    let listener = listen(SocketAddr::from(([127, 0, 0, 1], 0)))?;
    let address = listener.local_addr()?;
    let arrivals = Arc::clone(&feed.arrivals);
    let start = feed.start;
    let server = tokio::spawn(restarted_twice(listener, feed));

    let http: legacy::Client<HttpConnector, Empty<Bytes>> = legacy::Client::builder(TokioExecutor::new()).build_http();
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        let client = Client::with_service(http.clone()).url(format!("http://{address}/")).retrier(POLICY).connect();
        clients.spawn(timeout(Duration::from_secs(50), read(client)));
    }
    let (mut received, mut losses) = (0, 0);
    for client in clients.join_all().await {
        let (events, lost) = client??;
        received += events;
        losses += lost;
    }
    server.abort();

    println!("{CLIENTS} clients received {received} events, each of {EVENTS} exactly once, over {losses} losses");
    println!("requests in each half second:");
    let arrivals = arrivals.lock().map_err(|_| "a handler panicked")?;
    let last = arrivals.last().map_or(0, |after| after.as_millis() / 500);
    for half in 0..=last {
        let count = arrivals.iter().filter(|after| after.as_millis() / 500 == half).count();
        println!("{:>5.1} s {count:>4} {}", half as f64 / 2.0, "▇".repeat(count.div_ceil(5)));
    }
    println!("finished after {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Reads all events. Returns their number, and how often the stream was lost.
async fn read(mut client: Client) -> Result<(u64, u32), String> {
    let (mut next, mut losses) = (1, 0);
    while next <= EVENTS {
        match client.next().await {
            Some(Ok(Event::Message(message))) if message.data == next.to_string() => next += 1,
            Some(Ok(Event::Message(message))) => return Err(format!("event {next} is missing: {}", message.data)),
            Some(Ok(Event::Closed(_))) => losses += 1,
            Some(Ok(_)) => {}
            Some(Err(fatal)) => return Err(format!("{fatal:#}")),
            None => return Err("the stream has ended".to_owned()),
        }
    }
    Ok((next - 1, losses))
}

/// A feed of numbers, one for each tick since the start.
#[derive(Clone)]
struct Feed {
    start: Instant,
    arrivals: Arrivals,
}

/// Sends the events after the one that the client has.
async fn events(State(feed): State<Feed>, headers: HeaderMap) -> Response<Body> {
    if let Ok(mut arrivals) = feed.arrivals.lock() {
        arrivals.push(feed.start.elapsed());
    }
    let last = headers.get("last-event-id").and_then(|id| id.to_str().ok()?.parse().ok()).unwrap_or(0);
    let (mut sender, body) = Channel::<Bytes, Infallible>::new(1);
    tokio::spawn(async move {
        let mut ticks = interval(TICK);
        let mut next: u64 = last + 1;
        while next <= EVENTS {
            ticks.tick().await;
            let now = feed.start.elapsed().div_duration_f64(TICK) as u64;
            while next <= now.min(EVENTS) {
                let event = format!("id: {next}\ndata: {next}\n\n");
                if sender.send_data(event.into()).await.is_err() {
                    return;
                }
                next += 1;
            }
        }
        // The stream stays open until the client has read everything.
        sleep(Duration::from_secs(60)).await;
    });
    let mut response = Response::new(Body::new(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    response
}

/// Serves, and kills all connections after two seconds, and again after two more.
async fn restarted_twice(mut listener: TcpListener, feed: Feed) -> Result<Infallible, std::io::Error> {
    let address: SocketAddr = listener.local_addr()?;
    loop {
        let app = Router::new().route("/", get(events)).with_state(feed.clone());
        let life = if feed.start.elapsed() < Duration::from_secs(4) { 2 } else { 3600 };
        serve_for(Duration::from_secs(life), listener, app).await?;
        listener = listen(address)?;
    }
}

/// Listens with room for all clients at once: beyond the backlog, their kernels would retry after a second.
fn listen(address: SocketAddr) -> Result<TcpListener, std::io::Error> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(1024)
}

/// Serves for a time, and then drops the listener and all connections.
async fn serve_for(life: Duration, listener: TcpListener, app: Router) -> Result<(), std::io::Error> {
    let mut connections = JoinSet::new();
    let end = sleep(life);
    tokio::pin!(end);
    loop {
        tokio::select! {
            () = &mut end => return Ok(()),
            accepted = listener.accept() => {
                let service = hyper_util::service::TowerToHyperService::new(app.clone());
                let stream = hyper_util::rt::TokioIo::new(accepted?.0);
                connections.spawn(hyper::server::conn::http1::Builder::new().serve_connection(stream, service));
            }
        }
    }
}
