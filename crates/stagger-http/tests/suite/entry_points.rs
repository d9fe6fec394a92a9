//! What a retrier has applies to every client: its name, listeners, rules and operator controls.

use core::fmt;
use core::time::Duration;
use std::io;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Method, Response};
use http_body_util::Full;
use stagger::control::RetryControls;
use stagger::observe::Action;
use stagger::testing::Recorder;
use stagger::{DelaySource, Marked, Retrier, StopReason};
use stagger_http::tower::RetryLayer;
use stagger_http::{Idempotency, status};
use tower::{Layer as _, ServiceExt as _, service_fn};

use super::tower::{LayerRequest, POLICY, ms, request, status as response};

/// An error with a rule of the application.
#[derive(Clone, Copy, Debug)]
struct Own;

impl fmt::Display for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("own error")
    }
}

impl core::error::Error for Own {}

/// The clients that retry.
#[derive(Clone, Copy, Debug)]
enum Client {
    Tower,
    /// The layer, for a gRPC method.
    Grpc,
    /// `Retrier::run`, as in the recipes.
    Recipe,
    #[cfg(feature = "reqwest-middleware")]
    Reqwest,
}

const CLIENTS: &[Client] = &[
    Client::Tower,
    Client::Grpc,
    Client::Recipe,
    #[cfg(feature = "reqwest-middleware")]
    Client::Reqwest,
];

/// Why every attempt fails.
#[derive(Clone, Copy, Debug)]
enum Failure {
    Response,
    Own,
    Io(io::ErrorKind),
}

impl Client {
    /// Makes a call that fails with this error every time. Returns the number of attempts.
    async fn fail(self, retrier: &Retrier, failure: Failure) -> usize {
        let count = Arc::new(Mutex::new(0));
        let attempt = || {
            *count.lock().unwrap() += 1;
            match failure {
                Failure::Response => response(503),
                Failure::Own => Err(io::Error::other(Own)),
                Failure::Io(kind) => Err(kind.into()),
            }
        };
        match self {
            Self::Tower => {
                let client = RetryLayer::new(retrier).layer(service_fn(|_: LayerRequest| async { attempt() }));
                let _ = client.oneshot(request(Method::GET, "")).await;
            }
            Self::Grpc => {
                let layer = RetryLayer::new(retrier).idempotent_if(|_| true);
                let client = layer.layer(service_fn(|_: LayerRequest| async {
                    let unavailable =
                        Response::builder().header("content-type", "application/grpc").header("grpc-status", 14);
                    attempt().map(|_| unavailable.body(Full::<Bytes>::default()).unwrap())
                }));
                let mut call = request(Method::POST, "");
                call.headers_mut().insert("content-type", "application/grpc".parse().unwrap());
                let _ = client.oneshot(call).await;
            }
            Self::Recipe => {
                let call = retrier.run(async || match attempt() {
                    Ok(response) => {
                        let outcome = status::outcome(response.status(), Idempotency::ByMethod, None);
                        Err::<(), _>(Marked::with_outcome(io::Error::other("503"), outcome))
                    }
                    Err(error) => Err(Marked::from(error)),
                });
                call.await.unwrap_err();
            }
            #[cfg(feature = "reqwest-middleware")]
            Self::Reqwest => through_reqwest(retrier, failure, &count).await,
        }
        *count.lock().unwrap()
    }
}

#[cfg(feature = "reqwest-middleware")]
async fn through_reqwest(retrier: &Retrier, failure: Failure, count: &Arc<Mutex<usize>>) {
    use reqwest_middleware::{ClientBuilder, Error, Middleware, Next};

    struct Innermost(Failure, Arc<Mutex<usize>>);

    #[async_trait::async_trait]
    impl Middleware for Innermost {
        async fn handle(
            &self,
            _: reqwest::Request,
            _: &mut http::Extensions,
            _: Next<'_>,
        ) -> reqwest_middleware::Result<reqwest::Response> {
            *self.1.lock().unwrap() += 1;
            match self.0 {
                Failure::Response => Ok(Response::builder().status(503).body("").unwrap().into()),
                Failure::Own => Err(Error::middleware(Own)),
                Failure::Io(kind) => Err(Error::middleware(io::Error::from(kind))),
            }
        }
    }

    let retry = stagger_http::reqwest::RetryMiddleware::new(retrier);
    let client =
        ClientBuilder::new(reqwest::Client::new()).with(retry).with(Innermost(failure, Arc::clone(count))).build();
    let _ = client.get("http://server.test/").send().await;
}

const FAILURES: [Failure; 2] = [Failure::Response, Failure::Io(io::ErrorKind::ConnectionReset)];

#[tokio::test(start_paused = true)]
async fn listeners_receive_every_decision_under_the_name_of_the_retrier() {
    for &client in CLIENTS {
        for failure in FAILURES {
            let recorder = Recorder::new();
            let retrier = Retrier::new(POLICY).named("api").on_event(recorder.listener());
            assert_eq!(client.fail(&retrier, failure).await, 4, "{client:?}");
            let events: Vec<_> =
                recorder.events().into_iter().map(|event| (event.target, event.attempt, event.action)).collect();
            let retry = Action::Retry { after: ms(100), source: DelaySource::Schedule };
            let want = [(1, retry), (2, retry), (3, retry), (4, Action::Stop(StopReason::Attempts))];
            assert_eq!(events, want.map(|(n, action)| ("api".to_owned(), n, action)), "{client:?}, {failure:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn operator_controls_stop_the_retries_of_their_target() {
    for &client in CLIENTS {
        for failure in FAILURES {
            for (line, want) in [("api=no-retries", 1), ("other=no-retries", 4)] {
                let controls = RetryControls::new();
                let retrier = Retrier::new(POLICY).named("api").controls(&controls);
                controls.apply(line).unwrap();
                assert_eq!(client.fail(&retrier, failure).await, want, "{client:?}, {failure:?}, {line}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn rules_apply_to_what_an_error_contains() {
    let own = |is_transient| Retrier::new(POLICY).when(move |_: &Own| is_transient);
    let no_resets = Retrier::new(POLICY).when(|error: &io::Error| error.kind() != io::ErrorKind::ConnectionReset);
    for &client in CLIENTS {
        assert_eq!(client.fail(&own(true), Failure::Own).await, 4, "{client:?}");
        assert_eq!(client.fail(&own(false), Failure::Own).await, 1, "{client:?}");
        assert_eq!(client.fail(&no_resets, Failure::Io(io::ErrorKind::ConnectionReset)).await, 1, "{client:?}");
        assert_eq!(client.fail(&no_resets, Failure::Io(io::ErrorKind::ConnectionAborted)).await, 4, "{client:?}");
    }
}

// The connection error is inside reqwest's own error.
#[cfg(feature = "reqwest-middleware")]
#[tokio::test(start_paused = true)]
async fn a_rule_for_io_errors_applies_to_those_of_reqwest() {
    let gone = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let refused = |error: &io::Error| error.kind() != io::ErrorKind::ConnectionRefused;
    for (retrier, want) in [(Retrier::new(POLICY), 4), (Retrier::new(POLICY).when(refused), 1)] {
        let recorder = Recorder::new();
        let retry = stagger_http::reqwest::RetryMiddleware::new(retrier.on_event(recorder.listener()));
        let client = reqwest_middleware::ClientBuilder::new(reqwest::Client::new()).with(retry).build();
        client.get(format!("http://{gone}/")).send().await.unwrap_err();
        assert_eq!(recorder.events().len(), want);
    }
}

// A policy alone is a retrier without a name, guards or listeners.
#[tokio::test(start_paused = true)]
async fn a_policy_is_enough_for_a_client() {
    let start = tokio::time::Instant::now();
    let client = RetryLayer::new(POLICY).layer(service_fn(|_: LayerRequest| async { response(503) }));
    assert_eq!(client.oneshot(request(Method::GET, "")).await.unwrap().status(), 503);
    assert_eq!(start.elapsed(), Duration::from_millis(300));
}
