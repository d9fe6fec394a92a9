//! hyper-util's client under the tower layer, and a server that is killed while it works: every GET gets its answer, and what
//! may have been carried out already is not sent a second time.
//!
//! ```sh
//! cargo run -p stagger-http --example hyper_client
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
use hyper_util::client::legacy::{self, Client};
use hyper_util::rt::TokioExecutor;
use stagger::{Outcome, Policy, Retrier, classify, policy};
use stagger_http::RequestProgress;
use stagger_http::tower::RetryLayer;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio::time::sleep;
use tower::{ServiceBuilder, ServiceExt as _};

const POLICY: Policy = policy!(exponential(ms(50), secs(1)).max_attempts(8));
const WORK: Duration = Duration::from_millis(100);

/// What the servers have begun to work on.
type Begun = Arc<Mutex<Vec<String>>>;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    // An attempt that could not connect has sent nothing; an I/O error is judged by its kind.
    let retrier =
        Retrier::new(POLICY).classify(|error: &legacy::Error| classify::chain(error).unwrap_or(Outcome::TRANSIENT));
    let retries = RetryLayer::new(retrier).classify_progress(|error: &legacy::Error| {
        if error.is_connect() { RequestProgress::NotSent } else { RequestProgress::MaybeProcessed }
    });
    let client = ServiceBuilder::new().layer(retries).service(Client::builder(TokioExecutor::new()).build_http());

    let begun = Begun::default();
    let server = Server::start(SocketAddr::from(([127, 0, 0, 1], 0)), &begun)?;
    let address = server.address;
    let mut calls = JoinSet::new();
    let mut call = |method: Method, name: String| {
        let request = Request::builder().method(method).uri(format!("http://{address}/{name}")).body(Full::default());
        let client = client.clone();
        calls.spawn(async move {
            let answer = client.oneshot(request.map_err(|error| error.to_string())?);
            let answer = answer.await.map_err(|error| error.to_string())?;
            let body = answer.into_body().collect().await.map_err(|error| error.to_string())?;
            Ok::<Bytes, String>(body.to_bytes())
        });
    };

    // The server is killed while it works on these …
    for n in 0..20 {
        call(Method::GET, format!("page-{n}"));
    }
    call(Method::POST, "payment-before".to_owned());
    sleep(WORK / 2).await;
    server.kill()?;
    // … and is down when this is sent.
    call(Method::POST, "payment-while-down".to_owned());
    sleep(WORK).await;
    let server = Server::start(address, &begun)?;

    let ends = calls.join_all().await;
    let (answers, errors): (Vec<_>, Vec<_>) = ends.into_iter().partition(Result::is_ok);
    let begun = begun.lock().map(|begun| begun.clone()).unwrap_or_default();
    let times = |name: &str| begun.iter().filter(|begun| *begun == name).count();
    println!("{} answers, {} error: {:?}", answers.len(), errors.len(), errors);
    println!(
        "page-0 was begun {} times, the payments {} and {} times",
        times("page-0"),
        times("payment-before"),
        times("payment-while-down")
    );
    assert_eq!((answers.len(), errors.len()), (21, 1));
    // Nobody knows whether the first payment was made; it was not sent again. The second was never sent before.
    assert_eq!([times("page-0"), times("payment-before"), times("payment-while-down")], [2, 1, 1]);
    server.kill()?;
    Ok(())
}

/// A server on a thread of its own.
struct Server {
    address: SocketAddr,
    life: oneshot::Sender<()>,
    thread: JoinHandle<io::Result<()>>,
}

impl Server {
    fn start(address: SocketAddr, begun: &Begun) -> io::Result<Self> {
        let (life, death) = oneshot::channel();
        let (tell, told) = mpsc::channel();
        let begun = Arc::clone(begun);
        let thread = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
            runtime.block_on(async {
                let listener = TcpListener::bind(address).await?;
                let _ = tell.send(listener.local_addr()?);
                tokio::select! {
                    end = axum::serve(listener, pages(begun)) => end,
                    _ = death => Ok(()),
                }
            })
        });
        let address = told.recv().map_err(io::Error::other)?;
        Ok(Self { address, life, thread })
    }

    /// Its runtime ends, and with it every connection in the middle of whatever it does.
    fn kill(self) -> io::Result<()> {
        drop(self.life);
        self.thread.join().unwrap_or_else(|_| Err(io::Error::other("the server panicked")))
    }
}

fn pages(begun: Begun) -> Router {
    let work = async move |Path(name): Path<String>| {
        if let Ok(mut begun) = begun.lock() {
            begun.push(name.clone());
        }
        sleep(WORK).await;
        name
    };
    Router::new().route("/{name}", get(work.clone()).post(work))
}
