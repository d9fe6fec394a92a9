//! An nginx that closes the connections of a client's pool, while POSTs are sent over them.

use core::future::Future;
use core::net::SocketAddr;
use core::pin::Pin;
use core::time::Duration;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use http::Method;
use hyper_util::client::legacy::Client;
use hyper_util::rt::TokioExecutor;
use stagger::{Policy, Retrier, policy};
use stagger_http::tower::RetryLayer;
use stagger_kit::{Port, Server, Signal};
use tower::{Layer as _, ServiceExt as _};

use super::nginx::start;
use super::{on_one_thread, on_threads, request};

const POLICY: Policy = policy!(constant(ms(20)).max_attempts(3));
/// A request can be left without an answer by hyper 1.12, if nginx closes its connection in the moment of writing.
const TIMEOUT: Duration = Duration::from_secs(20);
const ROUNDS: usize = 10;
/// POSTs that are sent at the same time.
const AT_ONCE: usize = 5;
const POSTS: usize = ROUNDS * AT_ONCE;

/// How nginx speaks to its clients, and when it closes their connections.
#[derive(Clone, Copy, Debug)]
enum Closes {
    /// HTTP/1.1: it announces the end with the response.
    AfterEachResponse,
    /// HTTP/1.1: without a word, while the pool holds the connection.
    WhenIdle,
    /// HTTP/2: with a GOAWAY, while there are other streams.
    AfterSevenStreams,
}

impl Closes {
    const fn is_http2(self) -> bool {
        matches!(self, Self::AfterSevenStreams)
    }

    fn nginx(self, directory: &Path, port: &Port) -> Server {
        let (http2, setting) = match self {
            Self::AfterEachResponse => ("", "keepalive_requests 1;"),
            Self::WhenIdle => ("", "keepalive_timeout 1ms;"),
            Self::AfterSevenStreams => ("http2", "keepalive_requests 7;"),
        };
        let http = format!(
            "log_format posts '$request_method $arg_id $status';\n\
             access_log {path}/posts posts;\n\
             server {{ listen {listens} {http2}; {setting} location / {{ return 200 done; }} }}",
            path = directory.display(),
            listens = port.address(),
        );
        start(directory, port, &http)
    }
}

/// The results of all POSTs by number: whether there was a response, and how often nginx has carried it out.
type Results = BTreeMap<usize, (bool, usize)>;

/// Sends a POST to this path of an nginx. Returns whether there was a response.
type Post = Box<dyn Fn(String) -> Pin<Box<dyn Future<Output = bool> + Send>>>;

/// Sends POSTs, a few at a time, with the client that `client` makes for this address.
fn post_all(closes: Closes, client: impl FnOnce(SocketAddr) -> Post) -> Results {
    let (directory, port) = (tempfile::tempdir().unwrap(), Port::reserve().unwrap());
    // On several threads, hyper 1.12 has a race, of which `http.md` tells: a POST may be carried out twice.
    let on_runtime = if closes.is_http2() { on_one_thread } else { on_threads };
    let responses: Vec<_> = on_runtime(async {
        let mut server = closes.nginx(directory.path(), &port);
        let post = client(port.address());
        let mut responses = Vec::new();
        for round in 0..ROUNDS {
            let posts = (0..AT_ONCE).map(|n| tokio::spawn(post(format!("/?id={}", round * AT_ONCE + n))));
            for end in posts.collect::<Vec<_>>() {
                responses.push(end.await.unwrap());
            }
        }
        // nginx writes all lines before it exits.
        server.stop(Signal::QUIT, Duration::from_secs(20)).unwrap();
        responses
    });
    let log = fs::read_to_string(directory.path().join("posts")).unwrap();
    let carried_out = |n: usize| log.lines().filter(|line| *line == format!("POST {n} 200")).count();
    assert!(log.lines().all(|line| line.starts_with("POST ") && line.ends_with(" 200")), "{log}");
    responses.into_iter().enumerate().map(|(n, is_ok)| (n, (is_ok, carried_out(n)))).collect()
}

fn by_hyper(closes: Closes) -> Results {
    post_all(closes, |address| {
        let mut network = Client::builder(TokioExecutor::new());
        // Left to the layer, as the guide advises.
        network.retry_canceled_requests(false).http2_only(closes.is_http2());
        let client = RetryLayer::new(Retrier::new(POLICY).timeout(TIMEOUT)).layer(network.build_http());
        Box::new(move |path| {
            let end = client.clone().oneshot(request(Method::POST, address, &path, "pay"));
            Box::pin(async { end.await.is_ok_and(|response| response.status() == 200) })
        })
    })
}

#[cfg(feature = "reqwest-middleware")]
fn by_reqwest(closes: Closes) -> Results {
    use reqwest::redirect::Policy as RedirectPolicy;
    use stagger_http::reqwest::RetryMiddleware;

    post_all(closes, |address| {
        let builder = reqwest::Client::builder().timeout(TIMEOUT);
        let builder = if closes.is_http2() { builder.http2_prior_knowledge() } else { builder };
        let client = RetryMiddleware::new(POLICY).build_client(builder, RedirectPolicy::default()).unwrap();
        Box::new(move |path| {
            let end = client.post(format!("http://{address}{path}")).body("pay").send();
            Box::pin(async { end.await.is_ok_and(|response| response.status() == 200) })
        })
    })
}

fn results(closes: Closes) -> Vec<(&'static str, Results)> {
    vec![
        ("hyper", by_hyper(closes)),
        #[cfg(feature = "reqwest-middleware")]
        ("reqwest", by_reqwest(closes)),
    ]
}

#[test]
fn every_post_is_carried_out_once_by_an_nginx_that_announces_the_end_of_its_connections() {
    for closes in [Closes::AfterEachResponse, Closes::AfterSevenStreams] {
        for (client, results) in results(closes) {
            assert_eq!(results.len(), POSTS);
            assert!(results.values().all(|result| *result == (true, 1)), "{client}: {closes:?}: {results:?}");
        }
    }
}

/// A connection that ends while a POST is written to it proves nothing, so the caller gets the error.
#[test]
fn no_post_is_carried_out_twice_by_an_nginx_that_closes_idle_connections() {
    for (client, results) in results(Closes::WhenIdle) {
        for (n, (is_ok, carried_out)) in results {
            assert!(carried_out == usize::from(is_ok) || !is_ok && carried_out == 1, "{client}: {n}: {carried_out}");
        }
    }
}
