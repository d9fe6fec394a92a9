//! The retrier of a client: guards, rules, listeners, layers below; on tokio's paused clock.

use core::sync::atomic::{AtomicU32, Ordering};
use std::io;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use stagger::breaker::CircuitBreaker;
use stagger::budget::Tokens;
use stagger::observe::Action;
use stagger::{Outcome, Policy, Retrier, Seed, StopReason, policy};
use stagger_http::sse::{Client, ConnectionError};
use stagger_http::tower::{ReplayBody, RetryLayer};
use tower::{Layer as _, ServiceExt as _};

use super::scripted_server::{Reply, Server, run, status, stream, take};
use super::secs;

const EXACT: Policy = policy!(constant(secs(1)).jitter(Jitter::None).unlimited_attempts());

#[tokio::test(start_paused = true)]
async fn guards_decide_about_every_attempt() {
    let server = Server::always(status(500));
    let (_, fatal) = run(server
        .client()
        .retrier(Retrier::new(EXACT).budget(Tokens::builder().capacity(2).initial(2).cost(1).build().unwrap()))
        .connect())
    .await;
    assert_eq!((fatal.unwrap().stop_reason(), server.times().len()), (StopReason::Budget, 3));

    let server = Server::always(status(500));
    let breaker = CircuitBreaker::builder(Seed::new(1)).consecutive(3).build().unwrap();
    let (_, fatal) = run(server.client().retrier(Retrier::new(EXACT).breaker(breaker)).connect()).await;
    assert_eq!((fatal.unwrap().stop_reason(), server.times().len()), (StopReason::Breaker, 3));
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
