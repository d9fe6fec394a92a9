//! Replay of request bodies.

use core::pin::Pin;
use core::task::{Context, Poll};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt as _, Full};
use stagger::{Policy, Retrier, policy};
use stagger_http::tower::{ReplayBody, RetryLayer};
use tower::{Layer as _, ServiceExt as _, service_fn};

const POLICY: Policy = policy!(constant(ms(1)).max_attempts(3));

/// A body of these frames. It is pending before each frame unless it has a known length.
struct Stream {
    frames: VecDeque<Result<Frame<Bytes>, &'static str>>,
    is_pending: bool,
    length: Option<u64>,
}

impl Body for Stream {
    type Data = Bytes;
    type Error = &'static str;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, &'static str>>> {
        self.is_pending = !self.is_pending && self.length.is_none();
        if self.is_pending {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        Poll::Ready(self.frames.pop_front())
    }

    fn size_hint(&self) -> SizeHint {
        self.length.map_or_else(SizeHint::new, SizeHint::with_exact)
    }
}

fn chunks(chunks: &[&'static str]) -> Stream {
    let frames = chunks.iter().map(|chunk| Ok(Frame::data(Bytes::from_static(chunk.as_bytes())))).collect();
    Stream { frames, is_pending: false, length: None }
}

type Seen = Arc<Mutex<Vec<(String, Option<HeaderMap>)>>>;

/// Sends `body` to a server that reads `frames` frames of it and responds 503. Returns what the server has read in each
/// attempt.
async fn received(body: Stream, frames: usize, limit: usize) -> Vec<(String, Option<HeaderMap>)> {
    let seen = Seen::default();
    let log = Arc::clone(&seen);
    let server = service_fn(move |request: Request<ReplayBody<Stream>>| {
        let log = Arc::clone(&log);
        async move {
            let (mut text, mut trailers) = (String::new(), None);
            let mut body = request.into_body();
            for _ in 0..frames {
                match body.frame().await {
                    Some(Ok(frame)) if frame.is_data() => {
                        text += core::str::from_utf8(frame.data_ref().unwrap()).unwrap()
                    }
                    Some(Ok(frame)) => trailers = frame.into_trailers().ok(),
                    Some(Err(error)) => text += error,
                    None => break,
                }
            }
            log.lock().unwrap().push((text, trailers));
            Ok::<_, std::io::Error>(Response::builder().status(503).body(Full::<Bytes>::default()).unwrap())
        }
    });
    let layer = RetryLayer::new(Retrier::new(POLICY)).replay_limit(limit);
    layer.layer(server).oneshot(Request::put("/").body(body).unwrap()).await.unwrap();
    let seen = seen.lock().unwrap();
    seen.clone()
}

fn texts(seen: Vec<(String, Option<HeaderMap>)>) -> Vec<String> {
    seen.into_iter().map(|(text, _)| text).collect()
}

#[tokio::test(start_paused = true)]
async fn a_stream_is_replayed_from_its_beginning() {
    assert_eq!(texts(received(chunks(&["ab", "cd", "ef"]), 9, 64).await), ["abcdef"; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_partially_read_body_is_replayed_from_its_beginning() {
    for frames in 0..5 {
        let want = "abcdef".get(..2 * frames.min(3)).unwrap();
        assert_eq!(texts(received(chunks(&["ab", "cd", "ef"]), frames, 64).await), [want; 3], "{frames}");
    }
}

#[tokio::test(start_paused = true)]
async fn trailers_are_replayed() {
    let trailers = HeaderMap::from_iter([("x-sum".parse().unwrap(), "5".parse().unwrap())]);
    let mut body = chunks(&["ab"]);
    body.frames.push_back(Ok(Frame::trailers(trailers.clone())));
    assert_eq!(received(body, 9, 64).await, vec![("ab".to_owned(), Some(trailers)); 3]);
}

#[tokio::test(start_paused = true)]
async fn a_body_beyond_the_replay_limit_is_sent_in_full_but_once() {
    assert_eq!(texts(received(chunks(&["ab", "cd", "ef"]), 9, 5).await), ["abcdef"]);
    assert_eq!(texts(received(chunks(&["ab", "cd", "ef"]), 9, 6).await), ["abcdef"; 3]);
    // It can be replayed as long as the part that was read is within the limit.
    assert_eq!(texts(received(chunks(&["ab", "cd", "ef"]), 2, 5).await), ["abcd"; 3]);
}

// A longer body is not retried even if the request is declared idempotent: only the end of the body is left.
#[tokio::test(start_paused = true)]
async fn the_default_replay_limit_is_64_kib() {
    for (length, want) in [(64 * 1024, 3), (64 * 1024 + 1, 1)] {
        let calls = Arc::new(Mutex::new(0));
        let count = Arc::clone(&calls);
        let server = service_fn(move |request: Request<ReplayBody<Full<Bytes>>>| {
            *count.lock().unwrap() += 1;
            async move {
                request.into_body().collect().await.unwrap();
                Ok::<_, std::io::Error>(Response::builder().status(503).body(Full::<Bytes>::default()).unwrap())
            }
        });
        let layer = RetryLayer::new(Retrier::new(POLICY)).idempotent_if(|_| true);
        let request = Request::post("/").body(Full::from(vec![b'x'; length])).unwrap();
        assert_eq!(layer.layer(server).oneshot(request).await.unwrap().status(), 503);
        assert_eq!(*calls.lock().unwrap(), want, "{length}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_body_is_not_replayed() {
    let mut body = chunks(&["ab"]);
    body.frames.push_back(Err("!"));
    assert_eq!(texts(received(body, 9, 64).await), ["ab!"]);
}

// Such a body is polled before the request is sent; the first frame must not be lost.
#[tokio::test(start_paused = true)]
async fn a_body_with_a_known_length_is_replayed_like_any_other() {
    let known = |chunks_of: &[&'static str], length| Stream { length: Some(length), ..chunks(chunks_of) };
    for frames in 0..5 {
        let want = "abcdef".get(..2 * frames.min(3)).unwrap();
        assert_eq!(texts(received(known(&["ab", "cd", "ef"], 6), frames, 64).await), [want; 3], "{frames}");
    }
    assert_eq!(texts(received(known(&["ab", "cd", "ef"], 6), 9, 5).await), ["abcdef"]);
    // Longer than its size hint.
    assert_eq!(texts(received(known(&["abcdef"], 1), 9, 5).await), ["abcdef"]);

    let trailers = HeaderMap::from_iter([("x-sum".parse().unwrap(), "5".parse().unwrap())]);
    let mut body = known(&[], 0);
    body.frames.push_back(Ok(Frame::trailers(trailers.clone())));
    assert_eq!(received(body, 9, 64).await, vec![(String::new(), Some(trailers)); 3]);

    let mut body = known(&[], 2);
    body.frames.push_back(Err("!"));
    assert_eq!(texts(received(body, 9, 64).await), ["!"]);
}

// The end of an empty stream is known only to one who has polled it.
#[tokio::test(start_paused = true)]
async fn a_body_up_to_the_limit_is_polled_before_it_is_sent() {
    for (length, want) in [(0, true), (4, true), (5, false)] {
        let server = service_fn(move |request: Request<ReplayBody<Stream>>| {
            assert_eq!(request.body().is_end_stream(), want, "{length}");
            async { Ok::<_, std::io::Error>(Response::new(Full::<Bytes>::default())) }
        });
        let layer = RetryLayer::new(Retrier::new(POLICY)).replay_limit(4);
        let body = Stream { length: Some(length), ..chunks(&[]) };
        assert!(layer.layer(server).oneshot(Request::put("/").body(body).unwrap()).await.is_ok());
    }
}

// In every attempt its size hint is exact, and it does not end before it has been read.
#[tokio::test(start_paused = true)]
async fn a_single_chunk_body_is_replayed_with_its_length() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let server = service_fn(move |request: Request<ReplayBody<Full<Bytes>>>| {
        let log = Arc::clone(&log);
        async move {
            let mut body = request.into_body();
            let before = (body.is_end_stream(), body.size_hint().exact());
            let chunk = body.frame().await.unwrap().unwrap().into_data().unwrap();
            let after = (body.is_end_stream(), body.size_hint().exact(), body.frame().await.is_none());
            log.lock().unwrap().push((before, chunk, after));
            Ok::<_, std::io::Error>(Response::builder().status(503).body(Full::<Bytes>::default()).unwrap())
        }
    });
    let request = Request::put("/").body(Full::from("abc")).unwrap();
    RetryLayer::new(Retrier::new(POLICY)).layer(server).oneshot(request).await.unwrap();
    let want = ((false, Some(3)), Bytes::from_static(b"abc"), (true, Some(0), true));
    assert_eq!(*seen.lock().unwrap(), vec![want; 3]);
}

// A server that keeps the stream of an earlier attempt reads nothing more from it, and takes nothing from the next.
#[tokio::test(start_paused = true)]
async fn the_stream_of_an_earlier_attempt_ends_when_the_next_begins() {
    let held = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&held);
    let server = service_fn(move |request: Request<ReplayBody<Stream>>| {
        let mut held = log.lock().unwrap();
        held.push(request.into_body());
        let status = if held.len() < 3 { 503 } else { 200 };
        let response = Response::builder().status(status).body(Full::<Bytes>::default()).unwrap();
        async move { Ok::<_, std::io::Error>(response) }
    });
    let request = Request::put("/").body(chunks(&["ab", "c"])).unwrap();
    RetryLayer::new(Retrier::new(POLICY)).layer(server).oneshot(request).await.unwrap();
    let bodies = core::mem::take(&mut *held.lock().unwrap());
    let mut read = Vec::new();
    for body in bodies {
        read.push((body.is_end_stream(), body.collect().await.unwrap().to_bytes()));
    }
    assert_eq!(read[..2].iter().map(|(is_over, body)| (*is_over, body.len())).collect::<Vec<_>>(), [(true, 0); 2]);
    assert_eq!(read[2], (false, Bytes::from_static(b"abc")));
}
