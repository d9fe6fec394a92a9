//! The body of a failed response is drained if it is short and ends soon, and dropped otherwise, before the backoff
//! ends.

use core::convert::Infallible;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Method, Response};
use http_body::{Body, Frame, SizeHint};
use stagger::{Policy, Retrier, policy};
use stagger_http::tower::RetryLayer;
use tokio::time::{Instant, timeout};
use tower::{Layer as _, ServiceExt as _, service_fn};

use super::tower::{LayerRequest, request};

const SLOW: Policy = policy!(constant(secs(60)).jitter(Jitter::None).max_attempts(2));

/// The KiB read from a body, and when the body was dropped.
type Observed = Arc<Mutex<(usize, Option<Instant>)>>;

/// Yields `kilobytes` KiB, and then ends or does not. Its size hint has the lower bound `min_bytes`.
struct Answer {
    kilobytes: usize,
    end: Poll<()>,
    min_bytes: u64,
    observed: Observed,
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.observed.lock().unwrap().1 = Some(Instant::now());
    }
}

impl Body for Answer {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(left) = self.kilobytes.checked_sub(1) else { return self.end.map(|()| None) };
        self.kilobytes = left;
        self.observed.lock().unwrap().0 += 1;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'x'; 1024])))))
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = SizeHint::new();
        hint.set_lower(self.min_bytes);
        hint
    }
}

/// Returns the KiB read from the first response, and how long it was held.
async fn read_and_held(kilobytes: usize, end: Poll<()>, min_bytes: u64) -> (usize, Duration) {
    let observed = Observed::default();
    let log = Arc::clone(&observed);
    let server = service_fn(move |_: LayerRequest| {
        let body = Answer { kilobytes, end, min_bytes, observed: Arc::clone(&log) };
        async move { Ok::<_, Infallible>(Response::builder().status(503).body(body).unwrap()) }
    });
    let started = Instant::now();
    let call = RetryLayer::new(Retrier::new(SLOW)).layer(server).oneshot(request(Method::GET, ""));
    assert!(timeout(Duration::from_secs(1), call).await.is_err(), "the call is in backoff");
    let (read, dropped) = *observed.lock().unwrap();
    (read, dropped.unwrap() - started)
}

#[tokio::test(start_paused = true)]
async fn a_response_that_does_not_end_is_held_for_the_grace_period() {
    let (read, held) = read_and_held(3, Poll::Pending, 0).await;
    assert_eq!(read, 3);
    assert!((50..60).contains(&held.as_millis()), "{held:?}");
}

#[tokio::test(start_paused = true)]
async fn a_response_is_dropped_as_soon_as_it_has_ended() {
    assert_eq!(read_and_held(3, Poll::Ready(()), 0).await, (3, Duration::ZERO));
}

#[tokio::test(start_paused = true)]
async fn a_long_response_is_read_for_16_kib_and_dropped() {
    assert_eq!(read_and_held(1000, Poll::Pending, 0).await, (17, Duration::ZERO));
    assert_eq!(read_and_held(16, Poll::Pending, 0).await.0, 16);
}

#[tokio::test(start_paused = true)]
async fn a_response_with_a_long_size_hint_is_dropped_unread() {
    assert_eq!(read_and_held(1000, Poll::Pending, 16 * 1024 + 1).await, (0, Duration::ZERO));
    assert_eq!(read_and_held(1000, Poll::Pending, 16 * 1024).await.0, 17);
}
