//! Tests against real servers on loopback.

#[cfg(feature = "hyper")]
mod frames;
mod killed;
mod nginx;
#[cfg(feature = "hyper")]
pub(super) mod not_processed;
#[cfg(feature = "hyper")]
mod pooled;
mod sockets;

use core::future::Future;
use core::net::SocketAddr;

use axum::Router;
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::Full;
use hyper_util::client::legacy::{Client, Error, connect::HttpConnector};
use hyper_util::rt::TokioExecutor;
use stagger::Retrier;
use stagger::time::Tokio;
use stagger_http::RequestProgress;
use stagger_http::tower::{ReplayBody, RetryLayer};
use tokio::net::TcpListener;

/// The body of an outgoing request.
type Body = ReplayBody<Full<Bytes>>;
type Hyper = Client<HttpConnector, Body>;

fn on_one_thread<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(test)
}

/// Runs a test on two threads, so that the server does not share a single thread with its clients.
fn on_threads<T>(test: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap().block_on(test)
}

fn hyper() -> Hyper {
    Client::builder(TokioExecutor::new()).build_http()
}

fn layer(retrier: Retrier) -> RetryLayer<Tokio> {
    RetryLayer::new(retrier).classify_progress(|error: &Error| {
        if error.is_connect() { RequestProgress::NotSent } else { RequestProgress::MaybeProcessed }
    })
}

fn request(method: Method, address: SocketAddr, path: &str, body: impl Into<Bytes>) -> Request<Full<Bytes>> {
    let uri = format!("http://{address}{path}");
    Request::builder().method(method).uri(uri).body(Full::new(body.into())).unwrap()
}

/// Serves until the runtime ends.
async fn serve(app: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
    address
}
