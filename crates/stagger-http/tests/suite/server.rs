//! The server's side: what it reads of its caller, and whom it lets in.

use core::convert::Infallible;
use core::time::Duration;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use stagger::{Admission, Clock as _, Policy, Retrier, Seed, Tokio, policy, scope};
use stagger_http::Deadline;
use stagger_http::tower::{AdmissionLayer, CallerLayer, CallersAttempt, RetryLayer};
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
    for unreadable in ["0", "-1", "", "one", "99999999999"] {
        assert_eq!(seen(&[("x-retry-attempt", unreadable)]).await, (0, None, None), "{unreadable:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_caller_still_waits_is_a_deadline() {
    let left = |headers: &'static [(&'static str, &'static str)]| async move { seen(headers).await.2 };
    assert_eq!(left(&[("stagger-timeout-ms", "250")]).await, Some(Duration::from_millis(250)));
    assert_eq!(left(&[("grpc-timeout", "2S")]).await, Some(Duration::from_secs(2)));
    assert_eq!(left(&[("grpc-timeout", "2S"), ("stagger-timeout-ms", "250")]).await, Some(Duration::from_millis(250)));
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

type Admitted = Arc<Mutex<Vec<Duration>>>;

/// A server that lets in so many a second and notes when.
fn admitting(
    rate: u32,
    start: Instant,
) -> (
    impl tower::Service<Request<Body>, Response = Response<Body>, Error = Infallible, Future: Send> + Clone + Send,
    Admitted,
) {
    let admitted = Admitted::default();
    let log = Arc::clone(&admitted);
    let handler = service_fn(move |_: Request<Body>| {
        log.lock().unwrap().push(start.elapsed());
        async { Ok::<_, Infallible>(Response::new(Body::default())) }
    });
    let admission = Admission::per_second(rate).burst(1).secret(Seed::new(7)).build().unwrap();
    (AdmissionLayer::new(admission).layer(handler), admitted)
}

/// A thousand clients at once before a server that takes a hundred a second: each makes two attempts, and they come in one
/// after the other.
#[tokio::test(start_paused = true)]
async fn a_herd_that_reads_its_appointments_comes_back_as_a_line() {
    let start = Instant::now();
    let (server, admitted) = admitting(100, start);
    let attempts = Arc::new(Mutex::new(0));
    let calls: Vec<_> = (0..1000)
        .map(|_| {
            let (server, attempts) = (server.clone(), Arc::clone(&attempts));
            let network = service_fn(move |request: Request<stagger_http::tower::ReplayBody<Body>>| {
                *attempts.lock().unwrap() += 1;
                server.clone().oneshot(request.map(|_| Body::default()))
            });
            tokio::spawn(RetryLayer::new(Retrier::new(POLICY)).layer(network).oneshot(with(&[])))
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().status(), 200);
    }
    assert!(*attempts.lock().unwrap() <= 2 * 1000);
    let admitted = admitted.lock().unwrap();
    assert_eq!(admitted.len(), 1000);
    for second in 0..10 {
        let within = admitted.iter().filter(|at| at.as_secs() == second).count();
        assert!((90..=110).contains(&within), "second {second}: {within}");
    }
}

#[tokio::test(start_paused = true)]
async fn places_are_limited_and_free_again_however_a_request_ends() {
    let handler = service_fn(|_: Request<Body>| async {
        sleep(Duration::from_secs(1)).await;
        Ok::<_, Infallible>(Response::new(Body::default()))
    });
    let layer = AdmissionLayer::new(Admission::per_second(1000).build().unwrap()).concurrency(2);
    let server = layer.layer(handler);
    let first = tokio::spawn(server.clone().oneshot(with(&[])));
    let second = tokio::spawn(server.clone().oneshot(with(&[])));
    sleep(Duration::from_millis(1)).await;
    assert_eq!(layer.inside(), 2);
    let refused = server.clone().oneshot(with(&[])).await.unwrap();
    assert_eq!((refused.status().as_u16(), refused.headers().contains_key("stagger-slot")), (503, true));
    first.abort();
    second.await.unwrap().unwrap();
    assert_eq!(layer.inside(), 0);
    assert_eq!(server.oneshot(with(&[])).await.unwrap().status(), 200);
}

/// Beyond the longest appointment the answer is no, with a wait for everybody's clients.
#[tokio::test(start_paused = true)]
async fn a_queue_that_is_too_long_says_so() {
    let admission = Admission::per_second(1).burst(1).longest(Duration::from_secs(2)).build().unwrap();
    let handler = service_fn(|_: Request<Body>| async { Ok::<_, Infallible>(Response::new(Body::default())) });
    let server = AdmissionLayer::new(admission).layer(handler);
    let mut told = Vec::new();
    for _ in 0..5 {
        let answer = server.clone().oneshot(with(&[])).await.unwrap();
        let text =
            |name: &str| Some(answer.headers().get(name)?.to_str().unwrap().split(';').next().unwrap().to_owned());
        told.push((answer.status().as_u16(), text("retry-after"), text("stagger-slot")));
    }
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(told[0], (200, None, None));
    assert_eq!(told[1..3], [(503, some("1"), some("1000")), (503, some("2"), some("2000"))]);
    assert_eq!(told[3..], [(503, some("2"), None), (503, some("2"), None)]);
}
