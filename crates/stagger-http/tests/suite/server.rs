//! The server's side: what it reads of its caller.

use core::convert::Infallible;
use core::time::Duration;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use stagger::{Jitter, Policy, Retrier, policy, scope, time::Clock as _, time::Tokio};
use stagger_http::Deadline;
use stagger_http::tower::{CallerLayer, CallersAttempt, ReplayBody, RetryLayer};
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

/// What a handler sees of its caller: the depth, the attempt, what is left of the deadline.
async fn seen(headers: &[(&str, &str)]) -> (u32, Option<u32>, Option<Duration>) {
    let seen = Arc::new(Mutex::new(None));
    let log = Arc::clone(&seen);
    let handler = service_fn(move |request: Request<Body>| {
        let log = Arc::clone(&log);
        async move {
            tokio::task::yield_now().await;
            let attempt = request.extensions().get::<CallersAttempt>().map(|attempt| attempt.0);
            let left = request.extensions().get::<Deadline>().map(|at| at.0.saturating_since(Tokio.now()));
            *log.lock().unwrap() = Some((scope::depth(), attempt, left));
            Ok::<_, Infallible>(Response::new(Body::default()))
        }
    });
    CallerLayer::new().layer(handler).oneshot(with(headers)).await.unwrap();
    assert_eq!(scope::depth(), 0);
    let seen = seen.lock().unwrap().take();
    seen.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_caller_that_retries_makes_the_next_hop_stand_down() {
    assert_eq!(seen(&[]).await, (0, None, None));
    assert_eq!(seen(&[("x-retry-attempt", "1")]).await, (1, Some(1), None));
    assert_eq!(seen(&[("grpc-previous-rpc-attempts", "2")]).await, (1, Some(3), None));
    for unreadable in ["0", "-1", "+1", "", "one", "99999999999"] {
        assert_eq!(seen(&[("x-retry-attempt", unreadable)]).await, (0, None, None), "{unreadable:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_caller_still_waits_is_a_deadline() {
    let left = |headers: &'static [(&'static str, &'static str)]| async move { seen(headers).await.2 };
    assert_eq!(left(&[("stagger-timeout-ms", "250")]).await, Some(Duration::from_millis(250)));
    assert_eq!(left(&[("grpc-timeout", "2S")]).await, Some(Duration::from_secs(2)));
    assert_eq!(left(&[("grpc-timeout", "2S"), ("stagger-timeout-ms", "250")]).await, Some(Duration::from_millis(250)));
    for unreadable in ["-1", "+1", "1.5", "", "1s"] {
        assert_eq!(seen(&[("stagger-timeout-ms", unreadable)]).await.2, None, "{unreadable:?}");
    }
    let endless = left(&[("stagger-timeout-ms", "99999999999999999999999")]).await.unwrap();
    assert!(endless > Duration::from_secs(1 << 32), "as long as the clock can tell: {endless:?}");
    for unreadable in ["2", "S", "123456789S", "2s", "-2S", "2.5S", ""] {
        assert_eq!(seen(&[("grpc-timeout", unreadable)]).await.2, None, "{unreadable:?}");
    }
}

/// Three hops, each with a layer that retries, over what travels on the wire: three requests arrive at the last, not 27.
#[tokio::test(start_paused = true)]
async fn a_chain_of_hops_does_not_multiply() {
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
        // A process of its own: nothing but headers comes in.
        macro_rules! hop {
            ($next:expr) => {{
                let client = retry()
                    .layer(ServiceBuilder::new().map_request(|request: Request<_>| request.map(|_| ())).service($next));
                let handler = service_fn(move |_: Request<()>| {
                    let call = client.clone().oneshot(with(&[]));
                    async move { Ok::<_, Infallible>(call.await.unwrap()) }
                });
                let server = CallerLayer::new().layer(handler);
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

/// A caller that waits for 250 ms, a hop that hands its deadline on, and one further in that is down: neither the one nor the
/// other calls it when nobody waits any more.
#[tokio::test(start_paused = true)]
async fn a_deadline_is_handed_from_hop_to_hop() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&told);
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
    let answer = CallerLayer::new().layer(handler).oneshot(with(&[("stagger-timeout-ms", "250")])).await.unwrap();
    assert_eq!(answer.status(), 503);
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 3, "at 0, 100 and 200 ms: {told:?}");
    assert!(told.iter().zip([250, 150, 50]).all(|(got, want)| got.abs_diff(want) <= 3), "{told:?}");
    assert!(started.elapsed() < Duration::from_millis(250));
}
