//! The layer on tower's own services, which panic or fail if they are called before they are ready.

use core::time::Duration;
use std::sync::{Arc, Mutex};

use http::Method;
use stagger::Retrier;
use stagger::observe::Action;
use stagger::time::Tokio;
use stagger_http::RequestProgress;
use stagger_http::tower::RetryLayer;
use tokio::time::{Instant, sleep};
use tower::load_shed::error::Overloaded;
use tower::{BoxError as Error, Layer as _, ServiceBuilder, ServiceExt as _};

use super::tower::{LayerRequest, POLICY, ms, request, server, status};

fn layer() -> RetryLayer<Tokio> {
    RetryLayer::new(Retrier::new(POLICY))
}

/// Creates a layer for services with boxed errors, all of which mean that nothing was sent.
fn layer_for_boxed_errors() -> RetryLayer<Tokio> {
    layer().classify_progress::<Error>(|_| RequestProgress::NotSent)
}

/// Sends five requests at once to a server that takes 10 ms for each and begins with these statuses. Returns the number
/// of requests that arrived.
macro_rules! five_succeed_over {
    ($statuses:expr, $client:expr) => {{
        let (server, seen) = server($statuses.map(status));
        let client = $client.map_future(|response| async {
            sleep(ms(10)).await;
            response.await
        });
        let client = client.service(server);
        let calls = (0..5).map(|_| tokio::spawn(client.clone().oneshot(request(Method::GET, ""))));
        for call in calls.collect::<Vec<_>>() {
            assert_eq!(call.await.unwrap().unwrap().status(), 200);
        }
        seen.lock().unwrap().len()
    }};
}

#[tokio::test(start_paused = true)]
async fn readiness_is_respected_on_a_concurrency_limit() {
    let arrived = five_succeed_over!([503, 503, 200], ServiceBuilder::new().layer(layer()).concurrency_limit(1));
    assert_eq!(arrived, 5 + 2);
}

#[tokio::test(start_paused = true)]
async fn readiness_is_respected_on_a_buffer() {
    let arrived = five_succeed_over!([503, 503, 200], ServiceBuilder::new().layer(layer_for_boxed_errors()).buffer(2));
    assert_eq!(arrived, 5 + 2);
}

// A request that an inner layer sheds was not sent.
#[tokio::test(start_paused = true)]
async fn shed_requests_are_retried() {
    let shed = Arc::new(Mutex::new(0));
    let count = Arc::clone(&shed);
    let retrier = Retrier::new(POLICY).on_event(move |event| {
        let is_shed = event.error_as::<Error>().is_some_and(|error| error.is::<Overloaded>());
        *count.lock().unwrap() += u32::from(is_shed);
    });
    let layer = RetryLayer::new(retrier).classify_progress::<Error>(|_| RequestProgress::NotSent);
    let shedding = ServiceBuilder::new().layer(layer).load_shed().concurrency_limit(2);
    let arrived = five_succeed_over!([503, 200], shedding);
    let shed = *shed.lock().unwrap();
    assert!(arrived == 5 + 1 && shed >= 3, "two fit: {arrived} arrived, {shed} were shed");
}

// Nothing was sent, so even a POST is: at once, and then after its delay.
#[tokio::test(start_paused = true)]
async fn a_shed_post_is_retried_without_a_rule() {
    let delays = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&delays);
    let retrier = Retrier::new(POLICY).on_event(move |event| {
        if let Action::Retry { after, .. } = event.action {
            log.lock().unwrap().push(after);
        }
    });
    let (server, seen) = server([status(200)]);
    let busy = ServiceBuilder::new().load_shed().concurrency_limit(1).map_future(|response| async {
        sleep(ms(10)).await;
        response.await
    });
    let client = RetryLayer::new(retrier).layer(busy.service(server));
    let calls = [(); 2].map(|()| tokio::spawn(client.clone().oneshot(request(Method::POST, "pay"))));
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap().status(), 200);
    }
    assert_eq!((seen.lock().unwrap().len(), delays.lock().unwrap().clone()), (2, vec![ms(0), ms(100)]));
}

// Retries wait for the rate limit like first attempts.
#[tokio::test(start_paused = true)]
async fn readiness_is_respected_on_a_rate_limit() {
    let (server, _) = server([503, 503].map(status));
    let limited = ServiceBuilder::new().layer(layer_for_boxed_errors()).buffer(4).rate_limit(1, Duration::from_secs(1));
    let started = Instant::now();
    assert_eq!(limited.service(server).oneshot(request(Method::GET, "")).await.unwrap().status(), 200);
    assert!(started.elapsed() >= Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn a_timeout_below_the_layer_is_one_failed_attempt() {
    let calls = Arc::new(Mutex::new(0));
    let log = Arc::clone(&calls);
    let slow = tower::service_fn(move |_: LayerRequest| {
        *log.lock().unwrap() += 1;
        async {
            sleep(ms(5000)).await;
            status(200)
        }
    });
    let client = ServiceBuilder::new().layer(layer()).timeout(ms(10)).service(slow);
    let error = client.oneshot(request(Method::GET, "")).await.unwrap_err().into_service_error().unwrap();
    assert!(error.is::<tower::timeout::error::Elapsed>());
    assert_eq!(*calls.lock().unwrap(), 4);
}
