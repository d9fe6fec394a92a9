//! The layer over tower's own services, which panic or fail if they are called before they are ready.

use core::time::Duration;
use std::sync::{Arc, Mutex};

use http::Method;
use stagger::{Retrier, time::Tokio};
use stagger_http::Sent;
use stagger_http::tower::RetryLayer;
use tokio::time::{Instant, sleep};
use tower::load_shed::error::Overloaded;
use tower::{BoxError as Error, ServiceBuilder, ServiceExt as _};

use super::tower::{POLICY, Sent1, ms, request, server, status};

fn layer() -> RetryLayer<Tokio> {
    RetryLayer::new(Retrier::new(POLICY))
}

/// For services with errors of their own.
fn whatever_was_sent() -> RetryLayer<Tokio> {
    layer().sent::<Error>(|_| Sent::No)
}

/// Five requests at once, and a server that takes 10 ms for each and whose first answers are these.
macro_rules! five_succeed_over {
    ($statuses:expr, $client:expr) => {{
        let (server, seen) = server($statuses.map(status));
        let client = $client.map_future(|answer| async {
            sleep(ms(10)).await;
            answer.await
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
async fn readiness_is_obeyed_over_a_concurrency_limit() {
    let arrived = five_succeed_over!([503, 503, 200], ServiceBuilder::new().layer(layer()).concurrency_limit(1));
    assert_eq!(arrived, 5 + 2);
}

#[tokio::test(start_paused = true)]
async fn readiness_is_obeyed_over_a_buffer() {
    let arrived = five_succeed_over!([503, 503, 200], ServiceBuilder::new().layer(whatever_was_sent()).buffer(2));
    assert_eq!(arrived, 5 + 2);
}

/// What a layer further in has shed was not sent, and waits its turn.
#[tokio::test(start_paused = true)]
async fn what_was_shed_is_tried_again_over_a_load_shed() {
    let shed = Arc::new(Mutex::new(0));
    let count = Arc::clone(&shed);
    let retrier = Retrier::new(POLICY).on_event(move |event| {
        let is_shed = event.error_as::<Error>().is_some_and(|error| error.is::<Overloaded>());
        *count.lock().unwrap() += u32::from(is_shed);
    });
    let layer = RetryLayer::new(retrier).sent::<Error>(|_| Sent::No);
    let shedding = ServiceBuilder::new().layer(layer).load_shed().concurrency_limit(2);
    let arrived = five_succeed_over!([503, 200], shedding);
    let shed = *shed.lock().unwrap();
    assert!(arrived == 5 + 1 && shed >= 3, "there is room for two: {arrived} arrived, {shed} were shed");
}

/// Retries wait for the limit like everybody else.
#[tokio::test(start_paused = true)]
async fn readiness_is_obeyed_over_a_rate_limit() {
    let (server, _) = server([503, 503].map(status));
    let limited = ServiceBuilder::new().layer(whatever_was_sent()).buffer(4).rate_limit(1, Duration::from_secs(1));
    let started = Instant::now();
    assert_eq!(limited.service(server).oneshot(request(Method::GET, "")).await.unwrap().status(), 200);
    assert!(started.elapsed() >= Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn a_timeout_below_the_layer_is_one_failed_attempt() {
    let calls = Arc::new(Mutex::new(0));
    let log = Arc::clone(&calls);
    let slow = tower::service_fn(move |_: Sent1| {
        *log.lock().unwrap() += 1;
        async {
            sleep(ms(5000)).await;
            status(200)
        }
    });
    let client = ServiceBuilder::new().layer(layer()).timeout(ms(10)).service(slow);
    let error = client.oneshot(request(Method::GET, "")).await.unwrap_err().service().unwrap();
    assert!(error.is::<tower::timeout::error::Elapsed>());
    assert_eq!(*calls.lock().unwrap(), 4);
}
