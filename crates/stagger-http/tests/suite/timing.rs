//! Attempts that take too long, services that are never ready, breakers that are open.

use core::convert::Infallible;
use core::future::{Ready, pending, ready};
use core::task::{Context, Poll};
use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex};

use http::Method;
use stagger::breaker::CircuitBreaker;
use stagger::{Breaker as _, LastAttempt, Outcome, Rejected, Retrier, Seed, time::Clock as _, time::Tokio};
use stagger_http::tower::{Error, RetryLayer};
use tokio::time::{Instant, sleep};
use tower::{Layer as _, Service, ServiceExt as _, service_fn};

use super::tower::{Answer, POLICY, Sent1, ms, request, status};

/// The retrier's own timeout drops the attempt.
#[tokio::test(start_paused = true)]
async fn an_attempt_that_takes_too_long_is_dropped() {
    let hangs = service_fn(|_: Sent1| pending::<Result<Answer, Infallible>>());
    let started = Instant::now();
    let layer = RetryLayer::new(Retrier::new(POLICY).timeout(ms(10)));
    let error = layer.layer(hangs).oneshot(request(Method::GET, "")).await.unwrap_err();
    assert_eq!(error.to_string(), Rejected::TimedOut.to_string());
    assert_eq!(started.elapsed(), ms(4 * 10 + 3 * 100 + 4).min(started.elapsed()));
    assert!(started.elapsed() >= ms(340));
}

/// A timeout makes room for another attempt. Where none is left, a late answer is better than none.
#[tokio::test(start_paused = true)]
async fn ht_31_the_last_attempt_may_take_longer_than_the_others() {
    let slow = service_fn(|_: Sent1| async {
        sleep(ms(500)).await;
        status(200)
    });
    let started = Instant::now();
    let retrier = Retrier::new(POLICY).timeout(ms(10)).last_attempt(LastAttempt::Untimed);
    let answer = RetryLayer::new(retrier).layer(slow).oneshot(request(Method::GET, "")).await.unwrap();
    assert_eq!(answer.status(), 200);
    let took = started.elapsed();
    assert!((ms(3 * 10 + 3 * 100 + 500)..=ms(3 * 10 + 3 * 100 + 500 + 8)).contains(&took), "{took:?}");
}

/// Nobody knows whether it was carried out.
#[tokio::test(start_paused = true)]
async fn a_post_that_takes_too_long_is_not_sent_again() {
    let sent = Arc::new(Mutex::new(0));
    let count = Arc::clone(&sent);
    let hangs = service_fn(move |_: Sent1| {
        *count.lock().unwrap() += 1;
        pending::<Result<Answer, Infallible>>()
    });
    let layer = RetryLayer::new(Retrier::new(POLICY).timeout(ms(10)));
    let error = layer.layer(hangs).oneshot(request(Method::POST, "pay")).await.unwrap_err();
    assert_eq!((error, *sent.lock().unwrap()), (Error::Refused(Rejected::TimedOut), 1));
}

/// A service by script: how ready it says it is, and what it answers.
#[derive(Clone)]
struct Script {
    readiness: Arc<Mutex<VecDeque<Poll<io::Result<()>>>>>,
    answers: Arc<Mutex<VecDeque<io::Result<Answer>>>>,
}

fn script<const R: usize, const A: usize>(
    readiness: [Poll<io::Result<()>>; R],
    answers: [io::Result<Answer>; A],
) -> Script {
    let (readiness, answers) = (VecDeque::from(readiness), VecDeque::from(answers));
    Script { readiness: Arc::new(Mutex::new(readiness)), answers: Arc::new(Mutex::new(answers)) }
}

impl Service<Sent1> for Script {
    type Response = Answer;
    type Error = io::Error;
    type Future = Ready<io::Result<Answer>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.readiness.lock().unwrap().pop_front().unwrap()
    }

    fn call(&mut self, _: Sent1) -> Self::Future {
        ready(self.answers.lock().unwrap().pop_front().unwrap())
    }
}

fn refused() -> io::Result<Answer> {
    Err(io::ErrorKind::ConnectionRefused.into())
}

const READY: Poll<io::Result<()>> = Poll::Ready(Ok(()));

/// Nothing was sent, so even a payment may be tried again.
#[tokio::test(start_paused = true)]
async fn a_service_that_is_not_ready_in_time_was_sent_nothing() {
    // It is asked when its time begins and when it is over.
    let service = script([READY, Poll::Pending, Poll::Pending, READY], [refused(), status(200)]);
    let layer = RetryLayer::new(Retrier::new(POLICY).timeout(ms(10)));
    let started = Instant::now();
    assert_eq!(layer.layer(service).oneshot(request(Method::POST, "pay")).await.unwrap().status(), 200);
    // Two waits and the limit of the attempt in between; a shortage of our own waits for ten times as long.
    assert!((1110..1120).contains(&started.elapsed().as_millis()), "{:?}", started.elapsed());
}

#[tokio::test(start_paused = true)]
async fn a_service_that_fails_to_be_ready_ends_the_call_with_its_error() {
    let service = script([READY, Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))], [status(503)]);
    let call = RetryLayer::new(Retrier::new(POLICY)).layer(service).oneshot(request(Method::GET, ""));
    assert_eq!(call.await.unwrap_err().service().unwrap().kind(), io::ErrorKind::BrokenPipe);
}

/// Its own last error, if the last attempt had one; an answer has been let go of, and then it is the refusal.
#[tokio::test(start_paused = true)]
async fn a_breaker_that_opens_in_the_sleep_leaves_the_last_error() {
    for (first, want) in [(refused(), Some(io::ErrorKind::ConnectionRefused)), (status(503), None)] {
        let breaker = Arc::new(CircuitBreaker::builder(Seed::new(1)).consecutive(2).build().unwrap());
        let layer = RetryLayer::new(Retrier::new(POLICY).shared_breaker(breaker.clone()));
        let call = tokio::spawn(layer.layer(script([READY], [first])).oneshot(request(Method::GET, "")));
        sleep(ms(50)).await;
        let now = Tokio.now();
        breaker.record(breaker.admit(&now).unwrap(), &Outcome::TRANSIENT, &now);
        let error = call.await.unwrap().unwrap_err();
        assert!(want.is_some() || matches!(error, Error::Refused(Rejected::BreakerOpen(_))), "{error:?}");
        assert_eq!(error.service().map(|error| error.kind()), want);
    }
}
