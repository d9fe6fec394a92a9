//! gRPC with tonic, whose channel does not retry by itself: a layer above it does what the service config says.
//!
//! ```sh
//! cargo run -p stagger-examples --example grpc_tonic
//! ```

use core::error::Error;
use core::net::SocketAddr;
use core::time::Duration;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use http::request::Parts;
use stagger::{Retrier, time::Tokio};
use stagger_http::Sent;
use stagger_http::service_config::{Attempts, ServiceConfig};
use stagger_http::tower::{ReplayBody, Retry, RetryLayer};
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::body::Body;
use tonic::metadata::MetadataMap;
use tonic::transport::{self, Channel, Server};
use tonic::{Code, Request, Response, Status};
use tower::ServiceBuilder;
use tower::util::MapRequest;

use crate::stock::stock_client::StockClient;
use crate::stock::stock_server::{Stock, StockServer};
use crate::stock::{CountReply, CountRequest, OrderReply, OrderRequest};

#[allow(
    unreachable_pub,
    unused_qualifications,
    clippy::std_instead_of_core,
    reason = "the generator has its own style"
)]
mod stock {
    tonic::include_proto!("stock");
}

/// What gRPC's own channel would be given in other languages. `Order` is not named: an order is sent once.
const CONFIG: &str = r#"{
    "methodConfig": [{
        "name": [{ "service": "stock.Stock", "method": "Count" }],
        "retryPolicy": {
            "maxAttempts": 5,
            "initialBackoff": "0.05s",
            "maxBackoff": "1s",
            "backoffMultiplier": 2,
            "retryableStatusCodes": ["UNAVAILABLE"]
        }
    }],
    "retryThrottling": { "maxTokens": 10, "tokenRatio": 0.1 }
}"#;

type Wrap = fn(http::Request<ReplayBody<Body>>) -> http::Request<Body>;
type Client = StockClient<Retry<MapRequest<Channel, Wrap>, Tokio>>;

/// A client of the server at this address, which need not be there yet.
fn client(address: SocketAddr, config: &ServiceConfig) -> Result<Client, Box<dyn Error>> {
    let method = config.of_method("/stock.Stock/Count").map(|method| method.attempts());
    let Some(Attempts::Retried(retries)) = method else { return Err("the service config has no retryPolicy".into()) };
    let mut retrier = Retrier::new(*retries.policy());
    if let Some(throttling) = config.throttling() {
        retrier = retrier.budget(throttling.budget());
    }
    let named = config.clone();
    let may_be_repeated = move |request: &Parts| {
        let method = named.of_method(request.uri.path());
        method.is_some_and(|method| matches!(method.attempts(), Attempts::Retried(_)))
    };
    let layer = RetryLayer::new(retrier)
        .grpc_codes(retries.codes())
        .repeat_when(may_be_repeated)
        // What was never sent is repeated whatever it is.
        .sent(|error: &transport::Error| Sent::of(error));
    let channel = Channel::from_shared(format!("http://{address}"))?.connect_lazy();
    let wrap: Wrap = |request| request.map(Body::new);
    Ok(StockClient::new(ServiceBuilder::new().layer(layer).map_request(wrap).service(channel)))
}

/// A stock that is sometimes busy, and remembers who asked.
#[derive(Clone, Default)]
struct Shelf {
    busy: Arc<Mutex<VecDeque<Status>>>,
    /// When, which method, and how many attempts were before.
    seen: Arc<Mutex<Vec<(Instant, &'static str, Option<String>)>>>,
}

impl Shelf {
    /// Answers the next calls with these, and those after them as it should.
    fn fails_with(&self, statuses: impl IntoIterator<Item = Status>) {
        lock(&self.busy).extend(statuses);
    }

    fn is_asked(&self, method: &'static str, metadata: &MetadataMap) -> Result<(), Status> {
        let previous = metadata.get("grpc-previous-rpc-attempts").and_then(|value| value.to_str().ok());
        lock(&self.seen).push((Instant::now(), method, previous.map(str::to_owned)));
        lock(&self.busy).pop_front().map_or(Ok(()), Err)
    }

    fn seen(&self) -> Vec<(Instant, &'static str, Option<String>)> {
        core::mem::take(&mut lock(&self.seen))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[tonic::async_trait]
impl Stock for Shelf {
    async fn count(&self, request: Request<CountRequest>) -> Result<Response<CountReply>, Status> {
        self.is_asked("count", request.metadata())?;
        Ok(Response::new(CountReply { pieces: 7 }))
    }

    async fn order(&self, request: Request<OrderRequest>) -> Result<Response<OrderReply>, Status> {
        self.is_asked("order", request.metadata())?;
        Ok(Response::new(OrderReply {}))
    }
}

fn unavailable() -> Status {
    Status::unavailable("busy")
}

/// With what the server says about coming back: so many milliseconds, or a negative number for never.
fn pushed_back(millis: &'static str) -> Status {
    let mut metadata = MetadataMap::new();
    metadata.insert("grpc-retry-pushback-ms", tonic::metadata::MetadataValue::from_static(millis));
    Status::with_metadata(Code::Unavailable, "busy", metadata)
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let config: ServiceConfig = CONFIG.parse()?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?;
    drop(listener);
    let (shelf, mut client) = (Shelf::default(), client(address, &config)?);
    let item = || CountRequest { item: "screws".to_owned() };
    let order = || OrderRequest { item: "screws".to_owned(), pieces: 3 };

    // The server is late. Nothing was sent to it, so that even an order may be tried again.
    let serves = shelf.clone();
    let server = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(30)).await;
        let listener = TcpListener::bind(address).await?;
        let incoming = TcpListenerStream::new(listener);
        Server::builder().add_service(StockServer::new(serves)).serve_with_incoming(incoming).await?;
        Ok::<_, Box<dyn Error + Send + Sync>>(())
    });
    client.order(order()).await?;
    assert_eq!(shelf.seen().len(), 1);
    println!("an order that could not be sent was sent when the server was there");

    // Busy twice; the second time it says when to come back.
    shelf.fails_with([unavailable(), pushed_back("150")]);
    let pieces = client.count(item()).await?.into_inner().pieces;
    let seen = shelf.seen();
    let previous: Vec<_> = seen.iter().map(|(_, _, previous)| previous.as_deref()).collect();
    let waited = seen[2].0 - seen[1].0;
    println!("{pieces} screws after {} attempts; the last came {waited:.0?} after a pushback of 150 ms", seen.len());
    assert_eq!((pieces, previous), (7, vec![None, Some("1"), Some("2")]));
    assert!(waited >= Duration::from_millis(150), "{waited:?}");

    // It wants to be left alone.
    shelf.fails_with([pushed_back("-1")]);
    let status = client.count(item()).await.err().ok_or("it was told to fail")?;
    assert_eq!((status.code(), shelf.seen().len()), (Code::Unavailable, 1));
    println!("a server that says never is asked once: {}", status.message());

    // An order may have been carried out by whoever says that it is not available.
    shelf.fails_with([unavailable()]);
    let status = client.order(order()).await.err().ok_or("it was told to fail")?;
    assert_eq!((status.code(), shelf.seen().len()), (Code::Unavailable, 1));
    println!("an order that was sent is not sent again: {}", status.message());

    server.abort();
    Ok(())
}
