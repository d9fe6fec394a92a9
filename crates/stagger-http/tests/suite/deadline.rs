//! Calls whose deadline has passed, and attempts that have little time left.

use core::convert::Infallible;
use core::time::Duration;
use std::sync::{Arc, Mutex};

use http::{HeaderMap, Method, Request};
use http_body_util::Full;
use stagger::observe::Action;
use stagger::testing::Recorder;
use stagger::time::{Clock as _, Tokio};
use stagger::{Instant, Rejected, Retrier, StopReason};
use stagger_http::Deadline;
use stagger_http::tower::{CallerContextLayer, Error, RetryLayer};
use tower::{Layer as _, ServiceExt as _, service_fn};

use super::tower::{LayerRequest, POLICY, ServerResponse, ms, request};

/// The headers of the requests that an upstream has seen.
type Seen = Arc<Mutex<Vec<HeaderMap>>>;

const STOPPED: [(u32, Action); 1] = [(0, Action::Stop(StopReason::Deadline))];

/// The clients, each with what an incoming request tells it: its extensions, and its gRPC headers.
#[derive(Clone, Copy, Debug)]
enum Client {
    Tower,
    #[cfg(feature = "reqwest-middleware")]
    Reqwest,
}

const CLIENTS: &[Client] = &[
    Client::Tower,
    #[cfg(feature = "reqwest-middleware")]
    Client::Reqwest,
];

impl Client {
    /// Sends a GET through this retrier to an upstream that records it.
    async fn get(self, retrier: Retrier, deadline: Option<Instant>, headers: HeaderMap) -> (Option<Rejected>, Seen) {
        let seen = Seen::default();
        let rejected = match self {
            Self::Tower => through_tower(retrier, deadline, headers, &seen).await,
            #[cfg(feature = "reqwest-middleware")]
            Self::Reqwest => through_reqwest(retrier, deadline, headers, &seen).await,
        };
        (rejected, seen)
    }
}

async fn through_tower(
    retrier: Retrier,
    deadline: Option<Instant>,
    headers: HeaderMap,
    seen: &Seen,
) -> Option<Rejected> {
    let upstream = service_fn(|request: LayerRequest| async move {
        seen.lock().unwrap().push(request.headers().clone());
        Ok::<_, Infallible>(ServerResponse::default())
    });
    let mut request = request(Method::GET, "");
    request.headers_mut().extend(headers);
    if let Some(deadline) = deadline {
        request.extensions_mut().insert(Deadline::at(deadline));
    }
    match RetryLayer::new(retrier).timeout_header().layer(upstream).oneshot(request).await {
        Ok(_) => None,
        Err(Error::Rejected(rejected)) => Some(rejected),
        Err(Error::Service(never)) => match never {},
    }
}

#[cfg(feature = "reqwest-middleware")]
async fn through_reqwest(
    retrier: Retrier,
    deadline: Option<Instant>,
    headers: HeaderMap,
    seen: &Seen,
) -> Option<Rejected> {
    use reqwest_middleware::{ClientBuilder, Error, Middleware, Next};

    struct Upstream(Seen);

    #[async_trait::async_trait]
    impl Middleware for Upstream {
        async fn handle(
            &self,
            request: reqwest::Request,
            _: &mut http::Extensions,
            _: Next<'_>,
        ) -> reqwest_middleware::Result<reqwest::Response> {
            self.0.lock().unwrap().push(request.headers().clone());
            Ok(http::Response::new("").into())
        }
    }

    let retry = stagger_http::reqwest::RetryMiddleware::new(retrier).timeout_header();
    let client = ClientBuilder::new(reqwest::Client::new()).with(retry).with(Upstream(Arc::clone(seen))).build();
    let mut request = client.get("http://server.test/").headers(headers);
    if let Some(deadline) = deadline {
        request = request.with_extension(Deadline::at(deadline));
    }
    match request.send().await {
        Ok(_) => None,
        Err(Error::Middleware(error)) => Some(*error.downcast_ref().unwrap()),
        Err(error) => panic!("{error:?}"),
    }
}

fn grpc(timeout: &'static str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert("content-type", "application/grpc".parse().unwrap());
    headers.insert("grpc-timeout", timeout.parse().unwrap());
    headers
}

#[tokio::test(start_paused = true)]
async fn a_request_whose_deadline_has_passed_is_not_sent() {
    tokio::time::sleep(ms(5)).await;
    let (now, before) = (Tokio.now(), Instant::from_nanos(Tokio.now().as_nanos() - 1));
    for &client in CLIENTS {
        for (deadline, headers) in [(Some(now), HeaderMap::new()), (Some(before), HeaderMap::new()), (None, grpc("0S"))]
        {
            let recorder = Recorder::new();
            let retrier = Retrier::new(POLICY).on_event(recorder.listener());
            let (rejected, seen) = client.get(retrier, deadline, headers).await;
            assert_eq!((rejected, seen.lock().unwrap().len()), (Some(Rejected::DeadlinePassed), 0), "{client:?}");
            let events: Vec<_> = recorder.events().iter().map(|event| (event.attempt, event.action)).collect();
            assert_eq!(events, STOPPED, "{client:?}");
        }
    }
}

// The caller has given up, as its header says: the next hop is not asked.
#[tokio::test(start_paused = true)]
async fn a_caller_without_time_left_is_not_worked_for() {
    for &client in CLIENTS {
        for (timeout, want) in [("0", Some(Rejected::DeadlinePassed)), ("250", None)] {
            let result = &Mutex::new(None);
            let handler = service_fn(|incoming: Request<Full<bytes::Bytes>>| async move {
                let deadline = incoming.extensions().get::<Deadline>().map(|deadline| deadline.instant());
                let (rejected, seen) = client.get(Retrier::new(POLICY), deadline, HeaderMap::new()).await;
                let sent: Vec<_> = seen.lock().unwrap().iter().map(|sent| sent["stagger-timeout-ms"].clone()).collect();
                *result.lock().unwrap() = Some((rejected, sent));
                Ok::<_, Infallible>(ServerResponse::default())
            });
            let mut incoming = request(Method::GET, "");
            incoming.headers_mut().insert("stagger-timeout-ms", timeout.parse().unwrap());
            CallerContextLayer::new().layer(handler).oneshot(incoming).await.unwrap();
            let (rejected, sent) = result.lock().unwrap().take().unwrap();
            assert_eq!((rejected, sent.len()), (want, usize::from(want.is_none())), "{client:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_attempt_with_less_than_a_millisecond_left_does_not_tell_the_server_zero() {
    for &client in CLIENTS {
        for (left, want) in [(Duration::from_micros(400), "1"), (Duration::from_micros(2_900), "2")] {
            let deadline = Tokio.now().saturating_add(left);
            let (rejected, seen) = client.get(Retrier::new(POLICY), Some(deadline), HeaderMap::new()).await;
            assert_eq!((rejected, &seen.lock().unwrap()[0]["stagger-timeout-ms"]), (None, &want.parse().unwrap()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_sooner_of_deadline_and_grpc_timeout_limits_the_call() {
    for &client in CLIENTS {
        for (ahead, timeout) in [(ms(100), "250m"), (ms(250), "100m")] {
            let deadline = Tokio.now().saturating_add(ahead);
            let (rejected, seen) = client.get(Retrier::new(POLICY), Some(deadline), grpc(timeout)).await;
            assert_eq!((rejected, &seen.lock().unwrap()[0]["stagger-timeout-ms"]), (None, &"100".parse().unwrap()));
        }
    }
}
