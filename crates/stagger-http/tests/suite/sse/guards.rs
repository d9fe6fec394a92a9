//! The retrier of a client: guards, rules, listeners, layers below; on tokio's paused clock.

use core::sync::atomic::{AtomicU32, Ordering};
use core::time::Duration;
use std::io;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use stagger::breaker::CircuitBreaker;
use stagger::budget::Tokens;
use stagger::observe::Action;
use stagger::time::{Clock as _, Tokio};
use stagger::{Outcome, Policy, Retrier, Seed, StopReason, policy};
use stagger_http::sse::{Client, ConnectionError};
use stagger_http::tower::{ReplayBody, RetryLayer};
use tower::{Layer as _, ServiceExt as _};

use super::scripted_server::{Reply, Server, run, status, stream, take};
use super::secs;
use crate::suite::bulkhead::Bulkhead;

const EXACT: Policy = policy!(constant(secs(1)).jitter(Jitter::None).unlimited_attempts());

#[tokio::test(start_paused = true)]
async fn guards_decide_about_every_attempt() {
    let server = Server::always(status(500));
    let (_, fatal) = run(server
        .client()
        .retrier(Retrier::new(EXACT).budget(Tokens::builder().capacity(2).initial(2).cost(1).build().unwrap()))
        .connect())
    .await;
    assert_eq!((fatal.unwrap().stop_reason(), server.times().len()), (StopReason::BUDGET, 3));

    let server = Server::always(status(500));
    let breaker = CircuitBreaker::builder(Seed::new(1)).consecutive(3).build().unwrap();
    let (_, fatal) = run(server.client().retrier(Retrier::new(EXACT).breaker(breaker)).connect()).await;
    assert_eq!((fatal.unwrap().stop_reason(), server.times().len()), (StopReason::BREAKER, 3));
}

#[tokio::test(start_paused = true)]
async fn a_guard_that_rejects_is_the_cause_that_is_returned() {
    let server = Server::always(status(500));
    let breaker = CircuitBreaker::builder(Seed::new(1)).consecutive(3).build().unwrap();
    breaker.force_open(&Tokio.now());
    let (_, fatal) = run(server.client().retrier(Retrier::new(EXACT).breaker(breaker)).connect()).await;
    let fatal = fatal.unwrap();
    assert_eq!((fatal.stop_reason(), fatal.cause().name(), server.times().len()), (StopReason::BREAKER, "guard", 0));
    assert!(fatal.cause().to_string().contains("circuit breaker is open"), "{fatal:#}");
}

/// An open stream is no attempt any more.
#[tokio::test(start_paused = true)]
async fn a_guard_of_the_application_lets_clients_connect_one_after_the_other() {
    let server = Server::new([stream(""), status(503), stream(""), stream("")]);
    let inner = server.service();
    let slow = tower::service_fn(move |request: Request<Full<Bytes>>| {
        let inner = inner.clone();
        async move {
            tokio::time::sleep(secs(1)).await;
            inner.oneshot(request).await
        }
    });
    let retrier = Retrier::new(EXACT).guard(Bulkhead::new(1, Duration::from_secs(60)));
    let connect = async |mut client: Client| take(&mut client, 1).await;
    let client = || Client::with_service(slow.clone()).url("http://server.test/").retrier(&retrier).connect();
    let (one, two, three) = tokio::join!(connect(client()), connect(client()), connect(client()));
    let told = [one, two, three].concat();
    assert_eq!(told, ["open by attempt 1", "closed: rejected with 503 Service Unavailable", "open by attempt 1"]);
    let seconds: Vec<_> = server.times().iter().map(Duration::as_secs).collect();
    assert_eq!(seconds, [1, 2, 3]);
}

#[tokio::test(start_paused = true)]
async fn a_rule_comes_before_the_meaning_of_a_failure() {
    let not_found = Retrier::new(EXACT).classify(|error: &ConnectionError| match error {
        ConnectionError::Rejected(rejected) if rejected.status() == 404 => Outcome::TRANSIENT,
        _ => Outcome::Permanent,
    });
    let server = Server::new([status(404), stream("")]);
    let (_, fatal) = run(server.client().retrier(not_found).connect()).await;
    assert_eq!((fatal.unwrap().stop_reason(), server.times().len()), (StopReason::Permanent, 2));

    let refused = Retrier::new(EXACT).when(|error: &io::Error| error.kind() != io::ErrorKind::ConnectionRefused);
    let server =
        Server::new([Reply::Fails(io::ErrorKind::ConnectionReset), Reply::Fails(io::ErrorKind::ConnectionRefused)]);
    let (_, fatal) = run(server.client().retrier(refused).connect()).await;
    assert_eq!((fatal.unwrap().stop_reason(), server.times().len()), (StopReason::Permanent, 2));
}

#[tokio::test(start_paused = true)]
async fn listeners_are_told_of_every_attempt_and_every_loss() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let record = Arc::clone(&told);
    let closed = Arc::new(Mutex::new(Vec::new()));
    let causes = Arc::clone(&closed);
    let retrier = Retrier::new(EXACT).named("feed").on_event(move |event| {
        let cause = event.error_as::<ConnectionError>().map(ConnectionError::name);
        let action = match event.action {
            Action::Retry { .. } => "retry",
            Action::Done => "done",
            Action::Stop(stop) => stop.name(),
            _ => "other",
        };
        record.lock().unwrap().push((event.target.to_owned(), event.attempt, action, cause));
    });
    let server = Server::new([status(500), stream(""), status(404)]);
    let client = server.client().retrier(retrier).on_closed(move |closed| {
        causes.lock().unwrap().push((closed.cause.name(), closed.retry_in));
    });
    run(client.connect()).await;
    let feed = |attempt, action, cause| ("feed".to_owned(), attempt, action, cause);
    assert_eq!(
        *told.lock().unwrap(),
        [
            feed(1, "retry", Some("rejected")),
            feed(2, "done", None),
            feed(2, "retry", Some("ended")),
            feed(3, "permanent", Some("rejected")),
        ]
    );
    assert_eq!(*closed.lock().unwrap(), [("rejected", Some(secs(1))), ("ended", Some(secs(1))), ("rejected", None)]);
}

#[tokio::test(start_paused = true)]
async fn a_retry_layer_below_makes_one_attempt() {
    let calls = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&calls);
    let server = Server::always(status(503));
    let inner = server.service();
    let service = tower::service_fn(move |request: Request<ReplayBody<Full<Bytes>>>| {
        count.fetch_add(1, Ordering::Relaxed);
        inner.clone().oneshot(request.map(|_| Full::default()))
    });
    let retrying = RetryLayer::new(EXACT).layer(service);
    let client = Client::with_service::<_, Full<Bytes>, _>(retrying).url("http://server.test/");
    let mut client = client.retrier(EXACT).connect();
    take(&mut client, 3).await;
    assert_eq!((calls.load(Ordering::Relaxed), client.attempts()), (3, 3));
}
