//! Servers that are silent or slow; on tokio's paused clock.

use core::time::Duration;

use stagger::{Policy, policy};
use tokio::time::{sleep, timeout};

use super::scripted_server::{Reply, Server, Step, open, run, send, take};
use super::secs;

const EXACT: Policy = policy!(constant(secs(1)).jitter(Jitter::None).unlimited_attempts());
const SILENT: &str = "closed: no line from the server for 90 s";

#[tokio::test(start_paused = true)]
async fn a_silent_server_counts_as_lost_after_the_idle_timeout() {
    let server = Server::new([open("data: x\n\n")]);
    let told = take(&mut server.client().retrier(EXACT).connect(), 4).await;
    assert_eq!(told[2..], [SILENT, "open by attempt 1"]);
    assert_eq!(server.times(), [secs(0), secs(91)]);
}

#[tokio::test(start_paused = true)]
async fn bytes_without_the_end_of_a_line_do_not_count() {
    let trickle = (0..200).flat_map(|_| [send("x"), Step::Wait(secs(1))]).collect();
    let server = Server::new([Reply::Stream(trickle)]);
    let told = take(&mut server.client().retrier(EXACT).connect(), 2).await;
    assert_eq!(told[1], SILENT);
}

#[tokio::test(start_paused = true)]
async fn comments_keep_a_stream_open() {
    let alive = (0..100).flat_map(|_| [Step::Wait(secs(80)), send(":\n")]).collect();
    let server = Server::new([Reply::Stream(alive)]);
    let told = take(&mut server.client().retrier(EXACT).connect(), 2).await;
    assert_eq!(told[1], "closed: the server ended the stream");
    assert_eq!(server.times(), [secs(0)]);
}

#[tokio::test(start_paused = true)]
async fn the_idle_timeout_can_be_changed_and_turned_off() {
    let server = Server::new([open("")]);
    take(&mut server.client().retrier(EXACT).idle_timeout(secs(5)).connect(), 3).await;
    assert_eq!(server.times(), [secs(0), secs(6)]);

    let server = Server::new([open("")]);
    assert!(timeout(secs(86_400), run(server.client().no_idle_timeout().connect())).await.is_err());
    assert_eq!(server.times(), [Duration::ZERO]);
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_is_not_a_silent_server() {
    let steps = (0..10).flat_map(|_| [send("data: x\n\n"), Step::Wait(secs(1))]).collect();
    let server = Server::new([Reply::Stream(steps)]);
    let mut client = server.client().retrier(EXACT).connect();
    take(&mut client, 1).await;
    for n in 0..10 {
        assert_eq!(take(&mut client, 1).await, ["message: x"], "{n}");
        sleep(secs(100)).await;
    }
    assert_eq!(take(&mut client, 1).await, ["closed: the server ended the stream"]);
}
