//! The body of an answer that is not the last is read, if its end is near, or dropped, before the sleep is over.

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

use super::tower::{Sent1, request};

const PATIENT: Policy = policy!(constant(secs(60)).jitter(Jitter::None).max_attempts(2));

/// How much of a body has been read, and when it was dropped.
type Fate = Arc<Mutex<(usize, Option<Instant>)>>;

/// Gives so many kilobytes, says that there are at least so many bytes, and then does not end.
struct Endless {
    kilobytes: usize,
    says: u64,
    fate: Fate,
}

impl Drop for Endless {
    fn drop(&mut self) {
        self.fate.lock().unwrap().1 = Some(Instant::now());
    }
}

impl Body for Endless {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let Some(left) = self.kilobytes.checked_sub(1) else { return Poll::Pending };
        self.kilobytes = left;
        self.fate.lock().unwrap().0 += 1;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'x'; 1024])))))
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = SizeHint::new();
        hint.set_lower(self.says);
        hint
    }
}

/// How many kilobytes were read of the first answer, and how long it was held.
async fn read_and_held(kilobytes: usize, says: u64) -> (usize, Duration) {
    let fate = Fate::default();
    let log = Arc::clone(&fate);
    let server = service_fn(move |_: Sent1| {
        let body = Endless { kilobytes, says, fate: Arc::clone(&log) };
        async move { Ok::<_, Infallible>(Response::builder().status(503).body(body).unwrap()) }
    });
    let started = Instant::now();
    let call = RetryLayer::new(Retrier::new(PATIENT)).layer(server).oneshot(request(Method::GET, ""));
    assert!(timeout(Duration::from_secs(1), call).await.is_err(), "it waits for its second attempt");
    let (read, dropped) = *fate.lock().unwrap();
    (read, dropped.unwrap() - started)
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_does_not_end_is_held_for_a_moment_only() {
    let (read, held) = read_and_held(3, 0).await;
    assert_eq!(read, 3);
    assert!((50..60).contains(&held.as_millis()), "{held:?}");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_turns_out_to_be_long_is_read_for_16_kib_and_dropped() {
    assert_eq!(read_and_held(1000, 0).await, (17, Duration::ZERO));
    assert_eq!(read_and_held(16, 0).await.0, 16);
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_says_that_it_is_long_is_dropped_unread() {
    assert_eq!(read_and_held(1000, 16 * 1024 + 1).await, (0, Duration::ZERO));
    assert_eq!(read_and_held(1000, 16 * 1024).await.0, 17);
}
