//! Makes the call of a case with each client.

use core::cell::Cell;
use core::future::pending;
use core::time::Duration;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use http::{HeaderMap, Method, StatusCode};
use stagger::observe::Action;
use stagger::testing::Recorder;
use stagger::{Marked, Outcome, classify};
use stagger_http::tower::{Error, RetryLayer};
use stagger_http::{Deadline, Idempotency, hint, status};
use tokio::time::{Instant, sleep};
use tower::{Layer as _, ServiceExt as _, service_fn};

use super::super::tower::{LayerRequest, ServerResponse, request};
use super::case::{Case, End, Reply, Trace};

/// How long every attempt takes that ends by itself.
const ATTEMPT: Duration = Duration::from_millis(7);

/// A server that follows the script of a case, and responds with success after its end.
#[derive(Clone)]
struct Server {
    script: Arc<[Reply]>,
    start: Instant,
    attempts: Arc<Mutex<Vec<Duration>>>,
}

impl Server {
    fn new(case: &Case<'_>) -> Self {
        Self { script: case.script.into(), start: Instant::now(), attempts: Arc::default() }
    }

    /// Records an attempt and replies to it.
    async fn respond(&self) -> Reply {
        let index = {
            let mut attempts = self.attempts.lock().unwrap();
            attempts.push(self.start.elapsed());
            attempts.len() - 1
        };
        sleep(ATTEMPT).await;
        match self.script.get(index).copied().unwrap_or(Reply::Status(200)) {
            Reply::Silent => pending().await,
            reply => reply,
        }
    }

    fn trace(&self, recorder: &Recorder, end: End) -> Trace {
        Trace::new(recorder, self.attempts.lock().unwrap().clone(), end)
    }
}

/// `Retrier::run`, with an operation that classifies its response as [`status`] documents.
pub(super) async fn run(case: &Case<'_>) -> Trace {
    let (server, recorder) = (&Server::new(case), Recorder::new());
    let retrier = case.retrier(&recorder);
    let has_refreshed = &Cell::new(false);
    let call = retrier.run(|| async move {
        let (status, headers) = server
            .respond()
            .await
            .response()
            .map_err(|error| Marked::with_outcome(End::Broken(error.kind()), classify::io(&error)))?;
        let outcome = if status == StatusCode::UNAUTHORIZED && !has_refreshed.replace(true) {
            Outcome::NotProcessed
        } else {
            status::outcome(status, Idempotency::ByMethod, hint::server_hint(&headers, SystemTime::now))
        };
        match outcome {
            Outcome::Success => Ok(status),
            outcome => Err(Marked::with_outcome(End::Status(status.as_u16()), outcome)),
        }
    });
    let result = match case.deadline() {
        Some(deadline) => call.deadline(deadline).await,
        None => call.await,
    };
    let end = match result {
        Ok(status) => End::Status(status.as_u16()),
        Err(error) => {
            let (stop, attempts) = (error.stop_reason(), error.attempts());
            let last = recorder.events().pop().map(|event| (event.action, event.attempt));
            assert_eq!(last, Some((Action::Stop(stop), attempts)), "the event of the end");
            End::from_cause(error.cause())
        }
    };
    server.trace(&recorder, end)
}

async fn fresh_credentials() -> Option<HeaderMap> {
    Some(HeaderMap::new())
}

/// The tower layer.
pub(super) async fn tower(case: &Case<'_>) -> Trace {
    let (server, recorder) = (&Server::new(case), Recorder::new());
    let layer = RetryLayer::new(case.retrier(&recorder)).refresh_credentials(|_| fresh_credentials());
    let client = layer.layer(service_fn(|_: LayerRequest| async move {
        let (status, headers) = server.respond().await.response()?;
        let mut response = ServerResponse::new("said the server".into());
        (*response.status_mut(), *response.headers_mut()) = (status, headers);
        Ok::<_, io::Error>(response)
    }));
    let mut request = request(Method::GET, "");
    if let Some(deadline) = case.deadline() {
        request.extensions_mut().insert(Deadline::at(deadline));
    }
    let end = match client.oneshot(request).await {
        Ok(response) => End::Status(response.status().as_u16()),
        Err(Error::Service(error)) => End::Broken(error.kind()),
        Err(Error::Rejected(rejected)) => End::Rejected(rejected),
    };
    server.trace(&recorder, end)
}

/// The reqwest middleware.
#[cfg(feature = "reqwest-middleware")]
pub(super) async fn reqwest(case: &Case<'_>) -> Trace {
    use http::{Extensions, Response};
    use reqwest::ResponseBuilderExt as _;
    use reqwest_middleware::{ClientBuilder, Error, Middleware, Next};

    struct Innermost(Server);

    #[async_trait::async_trait]
    impl Middleware for Innermost {
        async fn handle(
            &self,
            request: reqwest::Request,
            _: &mut Extensions,
            _: Next<'_>,
        ) -> reqwest_middleware::Result<reqwest::Response> {
            let (status, headers) = self.0.respond().await.response().map_err(Error::middleware)?;
            let response = Response::builder().status(status).url(request.url().clone());
            let mut response = response.body("said the server").map_err(Error::middleware)?;
            *response.headers_mut() = headers;
            Ok(response.into())
        }
    }

    let (server, recorder) = (Server::new(case), Recorder::new());
    let retry = stagger_http::reqwest::RetryMiddleware::new(case.retrier(&recorder))
        .refresh_credentials(|_| fresh_credentials());
    let client = ClientBuilder::new(reqwest::Client::new()).with(retry).with(Innermost(server.clone())).build();
    let mut request = client.get("http://server.test/");
    if let Some(deadline) = case.deadline() {
        request = request.with_extension(Deadline::at(deadline));
    }
    let end = match request.send().await {
        Ok(response) => End::Status(response.status().as_u16()),
        Err(Error::Middleware(error)) => match (error.downcast_ref::<io::Error>(), error.downcast_ref()) {
            (Some(error), _) => End::Broken(error.kind()),
            (_, Some(rejected)) => End::Rejected(*rejected),
            _ => panic!("{error:?}"),
        },
        Err(error) => panic!("{error:?}"),
    };
    server.trace(&recorder, end)
}
