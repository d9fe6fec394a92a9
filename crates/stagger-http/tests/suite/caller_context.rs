//! `CallerContextLayer`: what a server learns about its caller.

use core::convert::Infallible;
use core::time::Duration;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use stagger::{Jitter, Policy, Retrier, policy, scope, time::Clock as _, time::Tokio};
use stagger_http::Deadline;
use stagger_http::tower::{CallerAttempt, CallerContextLayer, ReplayBody, RetryLayer};
use tokio::time::{Instant, sleep};
use tower::{Layer as _, ServiceBuilder, ServiceExt as _, service_fn};

const POLICY: Policy = policy!(exponential(ms(100), secs(1)).max_attempts(3));

type Body = Full<Bytes>;

fn with(headers: &[(&str, &str)]) -> Request<Body> {
    let mut request = Request::builder().uri("/");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Body::default()).unwrap()
}

/// Returns what a handler sees of its caller: the scope's depth, the attempt number and the time until the deadline.
async fn seen(headers: &[(&str, &str)]) -> (u32, Option<u32>, Option<Duration>) {
    let seen = Arc::new(Mutex::new(None));
    let log = Arc::clone(&seen);
    let handler = service_fn(move |request: Request<Body>| {
        let log = Arc::clone(&log);
        async move {
            tokio::task::yield_now().await;
            let attempt = request.extensions().get::<CallerAttempt>().map(|attempt| attempt.number());
            let left = request.extensions().get::<Deadline>().map(|at| at.instant().saturating_since(Tokio.now()));
            *log.lock().unwrap() = Some((scope::depth(), attempt, left));
            Ok::<_, Infallible>(Response::new(Body::default()))
        }
    });
    CallerContextLayer::new().layer(handler).oneshot(with(headers)).await.unwrap();
    assert_eq!(scope::depth(), 0);
    let seen = seen.lock().unwrap().take();
    seen.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_retries_disables_retries_of_the_next_hop() {
    assert_eq!(seen(&[]).await, (0, None, None));
    assert_eq!(seen(&[("x-retry-attempt", "1")]).await, (1, Some(1), None));
    assert_eq!(seen(&[("grpc-previous-rpc-attempts", "2")]).await, (1, Some(3), None));
    for malformed in ["0", "-1", "+1", "", "one", "99999999999"] {
        assert_eq!(seen(&[("x-retry-attempt", malformed)]).await, (0, None, None), "{malformed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_timeout_of_the_caller_becomes_a_deadline() {
    let left = |headers: &'static [(&'static str, &'static str)]| async move { seen(headers).await.2 };
    assert_eq!(left(&[("stagger-timeout-ms", "250")]).await, Some(Duration::from_millis(250)));
    assert_eq!(left(&[("grpc-timeout", "2S")]).await, Some(Duration::from_secs(2)));
    assert_eq!(left(&[("grpc-timeout", "2S"), ("stagger-timeout-ms", "250")]).await, Some(Duration::from_millis(250)));
    for malformed in ["-1", "+1", "1.5", "", "1s"] {
        assert_eq!(seen(&[("stagger-timeout-ms", malformed)]).await.2, None, "{malformed:?}");
    }
    let endless = left(&[("stagger-timeout-ms", "99999999999999999999999")]).await.unwrap();
    assert!(endless > Duration::from_secs(1 << 32), "it saturates: {endless:?}");
    for malformed in ["2", "S", "123456789S", "2s", "-2S", "2.5S", ""] {
        assert_eq!(seen(&[("grpc-timeout", malformed)]).await.2, None, "{malformed:?}");
    }
}

// Three hops, each with a retry layer: three requests arrive at the last hop, not 27.
#[tokio::test(start_paused = true)]
async fn a_chain_of_hops_does_not_multiply_attempts() {
    for (guarded, want) in [(true, 3), (false, 27)] {
        let arrived = Arc::new(Mutex::new(0));
        let log = Arc::clone(&arrived);
        let last = service_fn(move |_: Request<()>| {
            *log.lock().unwrap() += 1;
            async { Ok::<_, Infallible>(Response::builder().status(503).body(Body::default()).unwrap()) }
        });
        let retry = || {
            let layer = RetryLayer::new(Retrier::new(POLICY));
            if guarded { layer.attempt_header() } else { layer }
        };
        // Simulates another process: only the headers are passed on.
        macro_rules! hop {
            ($next:expr) => {{
                let client = retry()
                    .layer(ServiceBuilder::new().map_request(|request: Request<_>| request.map(|_| ())).service($next));
                let handler = service_fn(move |_: Request<()>| {
                    let call = client.clone().oneshot(with(&[]));
                    async move { Ok::<_, Infallible>(call.await.unwrap()) }
                });
                let server = CallerContextLayer::new().layer(handler);
                service_fn(move |request: Request<()>| scope::detached(server.clone().oneshot(request)))
            }};
        }
        let second = hop!(last);
        let first = hop!(second);
        let client =
            retry().layer(ServiceBuilder::new().map_request(|request: Request<_>| request.map(|_| ())).service(first));
        assert_eq!(client.oneshot(with(&[])).await.unwrap().status(), 503);
        assert_eq!(*arrived.lock().unwrap(), want);
    }
}

// The caller waits for 250 ms, the middle hop propagates the deadline, and the last hop is down: no attempt starts
// after the caller has given up.
#[tokio::test(start_paused = true)]
async fn a_deadline_is_propagated_from_hop_to_hop() {
    let timeouts = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&timeouts);
    let last = service_fn(move |request: Request<ReplayBody<Body>>| {
        log.lock().unwrap().push(request.headers()["stagger-timeout-ms"].to_str().unwrap().parse::<u64>().unwrap());
        async {
            sleep(Duration::from_millis(10)).await;
            Ok::<_, Infallible>(Response::builder().status(503).body(Body::default()).unwrap())
        }
    });
    let steady = Policy::constant(Duration::from_millis(90)).jitter(Jitter::None).max_attempts(9).build().unwrap();
    let client = RetryLayer::new(Retrier::new(steady)).timeout_header().layer(last);
    let handler = service_fn(move |request: Request<Body>| {
        let mut inner = with(&[]);
        inner.extensions_mut().insert(*request.extensions().get::<Deadline>().unwrap());
        client.clone().oneshot(inner)
    });
    let started = Instant::now();
    let response =
        CallerContextLayer::new().layer(handler).oneshot(with(&[("stagger-timeout-ms", "250")])).await.unwrap();
    assert_eq!(response.status(), 503);
    let timeouts = timeouts.lock().unwrap();
    assert_eq!(timeouts.len(), 3, "at 0, 100 and 200 ms: {timeouts:?}");
    assert!(timeouts.iter().zip([250, 150, 50]).all(|(got, want)| got.abs_diff(want) <= 3), "{timeouts:?}");
    assert!(started.elapsed() < Duration::from_millis(250));
}
