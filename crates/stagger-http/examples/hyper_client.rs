//! hyper-util's client under the tower layer, and a server that is killed while it processes requests: every GET gets
//! its response, and a POST that may have been processed is not sent a second time.
//!
//! ```sh
//! cargo run -p stagger-http --features hyper --example hyper_client
//! ```

use core::error::Error;
use core::net::SocketAddr;
use core::time::Duration;
use std::io;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};

use axum::Router;
use axum::extract::Path;
use axum::routing::get;
use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use stagger::{Policy, Retrier, policy};
use stagger_http::tower::RetryLayer;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tower::{ServiceBuilder, ServiceExt as _};

const POLICY: Policy = policy!(exponential(ms(50), secs(1)).max_attempts(8));
const TIMEOUT: Duration = Duration::from_secs(5);
const WORK: Duration = Duration::from_millis(100);

/// The requests that the servers have started to process.
type Started = Arc<Mutex<Vec<String>>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // With the feature `hyper`, the layer knows what the client's errors say: an attempt that could not connect has
    // sent nothing. The client has no timeout; this is that of each attempt.
    let retries = RetryLayer::new(Retrier::new(POLICY).timeout(TIMEOUT));
    let network = Client::builder(TokioExecutor::new()).retry_canceled_requests(false).build_http();
    let client = ServiceBuilder::new().layer(retries).service(network);

    let started = Started::default();
    let server = Server::start(SocketAddr::from(([127, 0, 0, 1], 0)), &started)?;
    let address = server.address;
    let mut calls = JoinSet::new();
    let mut call = |method: Method, name: String| {
        let request = Request::builder().method(method).uri(format!("http://{address}/{name}")).body(Full::default());
        let client = client.clone();
        calls.spawn(async move {
            let response = client.oneshot(request.map_err(|error| error.to_string())?);
            let response = response.await.map_err(|error| error.to_string())?;
            let body = response.into_body().collect().await.map_err(|error| error.to_string())?;
            Ok::<Bytes, String>(body.to_bytes())
        });
    };

    // The server is killed while it processes these …
    for n in 0..20 {
        call(Method::GET, format!("page-{n}"));
    }
    call(Method::POST, "payment-before".to_owned());
    sleep(WORK / 2).await;
    server.kill()?;
    // … and is down when this one is sent.
    call(Method::POST, "payment-while-down".to_owned());
    sleep(WORK).await;
    let server = Server::start(address, &started)?;

    let ends = calls.join_all().await;
    let (responses, errors): (Vec<_>, Vec<_>) = ends.into_iter().partition(Result::is_ok);
    let started = started.lock().map(|started| started.clone()).unwrap_or_default();
    let times = |name: &str| started.iter().filter(|started| *started == name).count();
    println!("{} responses, {} error: {:?}", responses.len(), errors.len(), errors);
    println!(
        "page-0 was started {} times, the payments {} and {} times",
        times("page-0"),
        times("payment-before"),
        times("payment-while-down")
    );
    assert_eq!((responses.len(), errors.len()), (21, 1));
    // Whether the first payment was processed is unknown, so it was not sent again. The second had not been sent
    // before.
    assert_eq!([times("page-0"), times("payment-before"), times("payment-while-down")], [2, 1, 1]);
    server.kill()?;
    Ok(())
}

/// A server on its own thread.
struct Server {
    address: SocketAddr,
    shutdown: oneshot::Sender<()>,
    thread: JoinHandle<io::Result<()>>,
}

impl Server {
    fn start(address: SocketAddr, started: &Started) -> io::Result<Self> {
        let (shutdown, killed) = oneshot::channel();
        let (sender, receiver) = mpsc::channel();
        let started = Arc::clone(started);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let listener = TcpListener::bind(address).await?;
                let _ = sender.send(listener.local_addr()?);
                tokio::select! {
                    end = axum::serve(listener, pages(started)) => end,
                    _ = killed => Ok(()),
                }
            })
        });
        let address = receiver.recv().map_err(io::Error::other)?;
        Ok(Self { address, shutdown, thread })
    }

    /// Stops the server's runtime, which cuts off every connection.
    fn kill(self) -> io::Result<()> {
        drop(self.shutdown);
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the server panicked")))
    }
}

fn pages(started: Started) -> Router {
    let work = async move |Path(name): Path<String>| {
        if let Ok(mut started) = started.lock() {
            started.push(name.clone());
        }
        sleep(WORK).await;
        name
    };
    Router::new().route("/{name}", get(work.clone()).post(work))
}
