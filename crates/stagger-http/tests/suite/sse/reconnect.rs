//! When the client reconnects, and what it sends then; on tokio's paused clock.

use core::convert::Infallible;
use core::future::poll_fn;
use core::pin::{Pin, pin};
use core::task::{Context, Poll};
use core::time::Duration;

use bytes::Bytes;
use futures_core::Stream as _;
use http::{Request, Response};
use http_body::{Body, Frame};
use http_body_util::Full;
use stagger::{Policy, Seed, StopReason, policy};
use stagger_http::sse::{Client, ConnectionError, Event};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::scripted_server::{Reply, Server, Step, open, run, send, status, stream, take};
use super::{ms, secs};

/// One second after every loss, exactly.
const EXACT: Policy = policy!(constant(secs(1)).jitter(Jitter::None).unlimited_attempts().stable_after(secs(10)));

#[tokio::test(start_paused = true)]
async fn a_lost_stream_is_continued_after_the_last_event() {
    let lost = Reply::Stream(vec![send("id: 7\ndata: a\n\nid: 8\ndata: not complete\n"), Step::Break]);
    let server = Server::new([stream("data: no id\n\n"), lost, open("data: b\n\n")]);
    let mut client = server.client().retrier(EXACT).connect();
    let told = take(&mut client, 8).await;
    assert_eq!(
        told,
        [
            "open by attempt 1",
            "message: no id",
            "closed: the server ended the stream",
            "open by attempt 2",
            "message: a",
            "closed: connection reset",
            "open by attempt 3",
            "message: b",
        ]
    );
    assert_eq!(client.last_event_id(), "7");
    assert_eq!(server.times(), [0, 1, 2].map(secs));
    assert_eq!(server.headers("last-event-id"), [None, None, Some("7".to_owned())]);
    assert_eq!(server.headers("accept"), [(); 3].map(|()| Some("text/event-stream".to_owned())));
    assert_eq!(server.headers("cache-control"), [(); 3].map(|()| Some("no-store".to_owned())));
}

#[tokio::test(start_paused = true)]
async fn an_id_beyond_ascii_is_sent_as_utf_8_and_an_empty_one_ends_it() {
    let server = Server::new([stream("id: …\ndata\n\n"), stream("id\ndata\n\n")]);
    let mut client = server.client().retrier(EXACT).last_event_id("first").connect();
    take(&mut client, 7).await;
    assert_eq!(server.headers("last-event-id"), [Some("first".to_owned()), Some("…".to_owned()), None]);
}

/// Returns when each of a thousand clients came back, from the loss of their streams on.
async fn returns(retry: &str) -> Vec<Duration> {
    let mut clients = JoinSet::new();
    for seed in 0..1000 {
        let server = Server::new([Reply::Stream(vec![send(retry), Step::Wait(secs(60))])]);
        let retrier = stagger::Retrier::new(stagger::profile::WEB_SOCKET.policy()).seed(Seed::new(seed));
        let mut client = server.client().retrier(retrier).connect();
        clients.spawn(async move {
            // Open, closed, open.
            take(&mut client, 3).await;
            server.times()[1] - secs(60)
        });
    }
    clients.join_all().await
}

#[tokio::test(start_paused = true)]
async fn every_loss_is_spread_whatever_the_server_asks_for() {
    // From, and to.
    for (retry, least, most) in [("", 0, 10), ("retry: 0\n", 0, 10), ("retry: 3000\n", 3, 13)] {
        let returns = returns(retry).await;
        let in_second = |n: u64| returns.iter().filter(|&&after| (secs(n)..secs(n + 1)).contains(&after)).count();
        let most_in_a_second = (0..15).map(in_second).max();
        assert!(most_in_a_second < Some(140), "{retry:?}: {most_in_a_second:?} of 1000 in a second");
        assert!(returns.iter().all(|&after| secs(least) <= after && after <= secs(most)), "{retry:?}");
        assert!((least..most).all(|second| in_second(second) > 60), "{retry:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_retry_of_zero_is_no_tight_loop() {
    let server = Server::always(stream("retry: 0\ndata: x\n\n"));
    let client = server.client().connect();
    assert!(timeout(secs(600), run(client)).await.is_err());
    let times = server.times();
    assert!((20..45).contains(&times.len()), "{} attempts in ten minutes", times.len());
    // The streams are too short to be healthy, so the backoff's delays count, the shortest of which is 7.5 s. A timer
    // may round down to its tick.
    let shortest = times.windows(2).map(|pair| pair[1] - pair[0]).min();
    assert!(shortest >= Some(ms(7499)), "{shortest:?}");
}

#[tokio::test(start_paused = true)]
async fn retry_is_a_minimum_for_failed_attempts_too_and_the_longer_wait_counts() {
    let busy = Reply::Head(503, vec![("retry-after", "5".to_owned())]);
    let server = Server::new([stream("retry: 20000\n"), status(500), busy, open("")]);
    let mut client = server.client().retrier(EXACT).connect();
    take(&mut client, 5).await;
    let waits: Vec<_> = server.times().windows(2).map(|pair| pair[1] - pair[0]).collect();
    // A hint is spread upward, by half of it.
    assert_eq!(waits.len(), 3);
    assert!(waits.iter().all(|wait| (secs(20)..=secs(30)).contains(wait)), "{waits:?}");
    let busy = Reply::Head(503, vec![("retry-after", "20".to_owned())]);
    let server = Server::new([stream("retry: 5000\n"), busy, open("")]);
    take(&mut server.client().retrier(EXACT).connect(), 4).await;
    let wait = server.times()[2] - server.times()[1];
    assert!((secs(20)..=secs(30)).contains(&wait), "{wait:?}");
}

#[tokio::test(start_paused = true)]
async fn an_absurd_retry_is_capped_and_reported_once_per_stream() {
    let absurd = "retry: 31622400000\ndata: x\n\nretry: 86400000\ndata: y\n\n";
    let server = Server::new([stream(absurd)]);
    let mut client = server.client().retrier(EXACT).max_retry(secs(40)).connect();
    let told = take(&mut client, 6).await;
    assert_eq!(
        told[1..5],
        ["capped: 31622400s to 40s", "message: x", "message: y", "closed: the server ended the stream"]
    );
    let wait = server.times()[1];
    assert!((secs(40)..=secs(60)).contains(&wait), "{wait:?}");

    // A hint above the policy's `max_hint` would stop the client: the server's `retry` does not.
    const IMPATIENT: Policy = policy!(constant(secs(1)).jitter(Jitter::None).unlimited_attempts().max_hint(secs(2)));
    let server = Server::new([stream("retry: 3000\n")]);
    let mut client = server.client().retrier(IMPATIENT).connect();
    assert_eq!(take(&mut client, 4).await[1], "capped: 3s to 2s");
    assert!((secs(2)..=secs(3)).contains(&server.times()[1]));
}

#[tokio::test(start_paused = true)]
async fn the_count_restarts_only_after_a_stable_stream() {
    const FOUR: Policy = policy!(constant(secs(1)).jitter(Jitter::None).max_attempts(4).stable_after(secs(10)));
    let lived = |length| Reply::Stream(vec![Step::Wait(length)]);
    // Without a spread, the loss of a stable stream is the first of the four.
    let short = Server::always(lived(secs(9)));
    let (_, fatal) = run(short.client().retrier(FOUR).connect()).await;
    let fatal = fatal.unwrap();
    assert_eq!((fatal.stop_reason(), fatal.attempts(), short.times().len()), (StopReason::Attempts, 4, 4));
    assert_eq!(format!("{fatal:#}"), "gave up after 4 attempts, every attempt was used: the server ended the stream");

    let long = Server::new([secs(9), secs(9), secs(10), secs(9), secs(9), secs(9)].map(lived));
    let mut client = long.client().retrier(FOUR).connect();
    take(&mut client, 11).await;
    assert_eq!(long.times().len(), 6, "the third stream restarts the count");
    let fatal = run(client).await.1.unwrap();
    assert_eq!((fatal.stop_reason(), fatal.attempts(), long.times().len()), (StopReason::Attempts, 3, 6));

    // The builder's settings override the policy's.
    let short = Server::always(lived(secs(9)));
    let client = short.client().retrier(FOUR).stable_after(secs(9)).spread(secs(1)).connect();
    assert!(timeout(secs(600), run(client)).await.is_err());
    assert!(short.times().len() > 55);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_is_down_is_reported_as_unreachable() {
    let server = Server::always(Reply::Fails(std::io::ErrorKind::ConnectionRefused));
    let mut client = server.client().retrier(EXACT).connect();
    let told = take(&mut client, 11).await;
    assert_eq!(told[9..], ["closed: connection refused", "unreachable: 10 attempts"]);
    assert!(client.unreachable().is_some());
    assert!(client.next_attempt_at().is_some_and(|at| at > Instant::now()));
}

#[tokio::test(start_paused = true)]
async fn cancelling_next_loses_nothing() {
    let steps = (0..20).flat_map(|n| [send(&format!("data: {n}")), Step::Wait(ms(70)), send("\n\n")]).collect();
    let server = Server::new([status(500), Reply::Stream(steps)]);
    let mut client = server.client().retrier(EXACT).connect();
    let mut told = Vec::new();
    while told.len() < 22 {
        if let Ok(event) = timeout(ms(10), client.next()).await {
            told.push(event.unwrap().unwrap());
        }
    }
    let data = told.iter().filter_map(|event| match event {
        Event::Message(message) => Some(message.data.clone()),
        _ => None,
    });
    assert_eq!(data.collect::<Vec<_>>(), (0..20).map(|n| n.to_string()).collect::<Vec<_>>());
    assert_eq!(server.times(), [secs(0), secs(1)], "the wait is not restarted");
}

#[tokio::test(start_paused = true)]
async fn messages_are_a_stream_without_the_other_events() {
    let server = Server::new([stream("data: a\n\n"), stream("data: b\n\n"), status(204)]);
    let mut messages = pin!(server.client().retrier(EXACT).connect().messages());
    let mut data = Vec::new();
    while let Some(message) = poll_fn(|cx| messages.as_mut().poll_next(cx)).await {
        data.push(message.unwrap().data);
    }
    assert_eq!(data, ["a", "b"]);
}

#[tokio::test(start_paused = true)]
async fn reconnect_now_ends_a_wait_and_a_stream_and_restarts_after_giving_up() {
    let server = Server::new([status(500), open("id: 1\ndata: x\n\n"), status(404), open("")]);
    let mut client = server.client().connect();
    take(&mut client, 1).await;
    client.reconnect_now();
    take(&mut client, 2).await;
    client.reconnect_now();
    assert_eq!(take(&mut client, 1).await, ["closed: rejected with 404 Not Found"]);
    assert!(matches!(client.next().await, Some(Err(fatal)) if fatal.stop_reason() == StopReason::Permanent));
    assert!(client.next().await.is_none());
    client.reconnect_now();
    take(&mut client, 1).await;
    assert_eq!(server.times(), [Duration::ZERO; 4]);
    assert_eq!(server.headers("last-event-id")[2..], [Some("1".to_owned()), Some("1".to_owned())]);
    client.close();
    client.reconnect_now();
    assert!(client.next().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn the_downtime_is_from_the_end_of_a_stream_to_the_next() {
    let server = Server::new([Reply::Stream(vec![Step::Wait(secs(60))]), status(500), open("")]);
    let mut client = server.client().retrier(EXACT).connect();
    let mut downtimes = Vec::new();
    while downtimes.len() < 2 {
        if let Event::Open(opened) = client.next().await.unwrap().unwrap() {
            downtimes.push(opened.downtime);
        }
    }
    assert_eq!(downtimes, [None, Some(secs(2))]);
}

/// A body of so many comments, all of which have arrived.
struct Comments(u32);

impl Body for Comments {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0 = self.0.saturating_sub(1);
        Poll::Ready((self.0 > 0).then(|| Ok(Frame::data(Bytes::from_static(b":\n")))))
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_sends_only_comments_does_not_keep_the_task_busy() {
    let service = tower::service_fn(|_: Request<Full<Bytes>>| async {
        let response = Response::builder().header("content-type", "text/event-stream");
        Ok::<_, Infallible>(response.body(Comments(10_000)).unwrap())
    });
    let mut client = Client::with_service(service).url("http://server.test/").connect();
    take(&mut client, 1).await;
    let mut polls = 0;
    let ended = poll_fn(|cx| {
        polls += 1;
        pin!(client.next()).poll(cx).map(|event| event.unwrap().unwrap())
    });
    let ended = ended.await;
    assert!(matches!(ended, Event::Closed(closed) if matches!(closed.cause, ConnectionError::Ended)));
    assert!(polls > 100, "{polls} polls for 10,000 chunks");
}

#[test]
fn a_client_can_move_between_threads() {
    fn is_send<T: Send>() {}
    is_send::<Client>();
}

const EVERY_SECOND: Policy = policy!(constant(secs(1)).jitter(Jitter::None).unlimited_attempts());
const SILENT: &str = "closed: no line from the server for 90 s";

#[tokio::test(start_paused = true)]
async fn a_silent_server_counts_as_lost_after_the_idle_timeout() {
    let server = Server::new([open("data: x\n\n")]);
    let told = take(&mut server.client().retrier(EVERY_SECOND).connect(), 4).await;
    assert_eq!(told[2..], [SILENT, "open by attempt 1"]);
    assert_eq!(server.times(), [secs(0), secs(91)]);
}

#[tokio::test(start_paused = true)]
async fn bytes_without_the_end_of_a_line_do_not_count() {
    let trickle = (0..200).flat_map(|_| [send("x"), Step::Wait(secs(1))]).collect();
    let server = Server::new([Reply::Stream(trickle)]);
    let told = take(&mut server.client().retrier(EVERY_SECOND).connect(), 2).await;
    assert_eq!(told[1], SILENT);
}

#[tokio::test(start_paused = true)]
async fn comments_keep_a_stream_open() {
    let alive = (0..100).flat_map(|_| [Step::Wait(secs(80)), send(":\n")]).collect();
    let server = Server::new([Reply::Stream(alive)]);
    let told = take(&mut server.client().retrier(EVERY_SECOND).connect(), 2).await;
    assert_eq!(told[1], "closed: the server ended the stream");
    assert_eq!(server.times(), [secs(0)]);
}

#[tokio::test(start_paused = true)]
async fn the_idle_timeout_can_be_changed_and_turned_off() {
    let server = Server::new([open("")]);
    take(&mut server.client().retrier(EVERY_SECOND).idle_timeout(secs(5)).connect(), 3).await;
    assert_eq!(server.times(), [secs(0), secs(6)]);

    let server = Server::new([open("")]);
    assert!(timeout(secs(86_400), run(server.client().no_idle_timeout().connect())).await.is_err());
    assert_eq!(server.times(), [Duration::ZERO]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_is_not_a_silent_server() {
    let steps = (0..10).flat_map(|_| [send("data: x\n\n"), Step::Wait(secs(1))]).collect();
    let server = Server::new([Reply::Stream(steps)]);
    let mut client = server.client().retrier(EVERY_SECOND).connect();
    take(&mut client, 1).await;
    for n in 0..10 {
        assert_eq!(take(&mut client, 1).await, ["message: x"], "{n}");
        sleep(secs(100)).await;
    }
    assert_eq!(take(&mut client, 1).await, ["closed: the server ended the stream"]);
}
