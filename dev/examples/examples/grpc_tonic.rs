//! gRPC with tonic, whose channel does not retry by itself: a layer above it applies the service config.
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
use stagger::Retrier;
use stagger::time::Tokio;
use stagger_http::RequestProgress;
use stagger_http::service_config::{AttemptPolicy, ServiceConfig};
use stagger_http::tower::{ReplayBody, RetryLayer, RetryService};
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

/// The service config that gRPC channels take in other languages. It does not name `Order`, which is not idempotent.
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
type Client = StockClient<RetryService<MapRequest<Channel, Wrap>, Tokio>>;

/// Creates a client for the server at this address, which may not be listening yet.
fn client(address: SocketAddr, config: &ServiceConfig) -> Result<Client, Box<dyn Error>> {
    let method = config.method_config("/stock.Stock/Count").map(|method| method.attempt_policy());
    let Some(AttemptPolicy::Retry(retries)) = method else {
        return Err("the service config has no retryPolicy".into());
    };
    let mut retrier = Retrier::new(*retries.policy());
    if let Some(throttling) = config.throttling() {
        retrier = retrier.budget(throttling.to_budget());
    }
    let named = config.clone();
    let is_retryable = move |request: &Parts| {
        let method = named.method_config(request.uri.path());
        method.is_some_and(|method| matches!(method.attempt_policy(), AttemptPolicy::Retry(_)))
    };
    let layer = RetryLayer::new(retrier)
        .grpc_retryable_codes(retries.retryable_codes())
        .idempotent_if(is_retryable)
        // Any request that was not sent is retried.
        .classify_progress(|error: &transport::Error| RequestProgress::from_error(error));
    let channel = Channel::from_shared(format!("http://{address}"))?.connect_lazy();
    let wrap: Wrap = |request| request.map(Body::new);
    Ok(StockClient::new(ServiceBuilder::new().layer(layer).map_request(wrap).service(channel)))
}

/// A stock service that is sometimes unavailable, and records its calls.
#[derive(Clone, Default)]
struct Shelf {
    busy: Arc<Mutex<VecDeque<Status>>>,
    /// The time and method of each call, and the number of previous attempts.
    calls: Arc<Mutex<Vec<(Instant, &'static str, Option<String>)>>>,
}

impl Shelf {
    /// Responds to the next calls with these statuses, and normally after that.
    fn fails_with(&self, statuses: impl IntoIterator<Item = Status>) {
        lock(&self.busy).extend(statuses);
    }

    fn record(&self, method: &'static str, metadata: &MetadataMap) -> Result<(), Status> {
        let previous = metadata.get("grpc-previous-rpc-attempts").and_then(|value| value.to_str().ok());
        lock(&self.calls).push((Instant::now(), method, previous.map(str::to_owned)));
        lock(&self.busy).pop_front().map_or(Ok(()), Err)
    }

    fn take_calls(&self) -> Vec<(Instant, &'static str, Option<String>)> {
        core::mem::take(&mut lock(&self.calls))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[tonic::async_trait]
impl Stock for Shelf {
    async fn count(&self, request: Request<CountRequest>) -> Result<Response<CountReply>, Status> {
        self.record("count", request.metadata())?;
        Ok(Response::new(CountReply { pieces: 7 }))
    }

    async fn order(&self, request: Request<OrderRequest>) -> Result<Response<OrderReply>, Status> {
        self.record("order", request.metadata())?;
        Ok(Response::new(OrderReply {}))
    }
}

fn unavailable() -> Status {
    Status::unavailable("busy")
}

/// Returns a status with a pushback: a delay in milliseconds, or a negative number to forbid retries.
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

    // The server starts late. Nothing was sent to it, so even an order is safe to retry.
    let service = shelf.clone();
    let server = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(30)).await;
        let listener = TcpListener::bind(address).await?;
        let incoming = TcpListenerStream::new(listener);
        Server::builder().add_service(StockServer::new(service)).serve_with_incoming(incoming).await?;
        Ok::<_, Box<dyn Error + Send + Sync>>(())
    });
    client.order(order()).await?;
    assert_eq!(shelf.take_calls().len(), 1);
    println!("an order that could not be sent was sent once the server was listening");

    // Unavailable twice, the second time with a pushback.
    shelf.fails_with([unavailable(), pushed_back("150")]);
    let pieces = client.count(item()).await?.into_inner().pieces;
    let calls = shelf.take_calls();
    let previous: Vec<_> = calls.iter().map(|(_, _, previous)| previous.as_deref()).collect();
    let waited = calls[2].0 - calls[1].0;
    println!("{pieces} screws after {} attempts; the last came {waited:.0?} after a pushback of 150 ms", calls.len());
    assert_eq!((pieces, previous), (7, vec![None, Some("1"), Some("2")]));
    assert!(waited >= Duration::from_millis(150), "{waited:?}");

    // The server forbids retries.
    shelf.fails_with([pushed_back("-1")]);
    let status = client.count(item()).await.err().ok_or("the call must fail")?;
    assert_eq!((status.code(), shelf.take_calls().len()), (Code::Unavailable, 1));
    println!("a server that forbids retries is called once: {}", status.message());

    // A server that responds UNAVAILABLE may have processed the order.
    shelf.fails_with([unavailable()]);
    let status = client.order(order()).await.err().ok_or("the call must fail")?;
    assert_eq!((status.code(), shelf.take_calls().len()), (Code::Unavailable, 1));
    println!("an order that was sent is not sent again: {}", status.message());

    server.abort();
    Ok(())
}
