//! What a client holds in memory when the server sends more than the program reads.

use core::pin::Pin;
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::{Context, Poll};
use std::io;
use std::sync::Arc;

use futures_util::{SinkExt, StreamExt};
use stagger::StopReason;
use stagger_ws::{Client, Event, Message};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf, duplex};
use tokio::sync::oneshot;
use tokio::time::{sleep, timeout};
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Bytes;

use super::peer::Step::{Hang, Send, Upgrade};
use super::peer::text;
use super::resume::Feed;
use super::scripted_server::{ScriptedServer, secs};

const MIB: u64 = 1 << 20;

/// A byte stream that counts what is read from it.
struct Counted {
    stream: DuplexStream,
    read: Arc<AtomicU64>,
}

impl AsyncRead for Counted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let polled = Pin::new(&mut self.stream).poll_read(cx, buf);
        self.read.fetch_add((buf.filled().len() - before) as u64, Ordering::Relaxed);
        polled
    }
}

impl AsyncWrite for Counted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Returns a message of this many bytes that begins with its number.
fn large(number: u8, bytes: u64) -> Message {
    let mut payload = vec![0; usize::try_from(bytes).unwrap()];
    payload[0] = number;
    Message::binary(payload)
}

/// Returns one unmasked frame with a payload of this many bytes.
fn frame_of(first: u8, bytes: u64) -> super::peer::Step {
    Send([&[first, 127], &bytes.to_be_bytes()[..], &vec![0; usize::try_from(bytes).unwrap()]].concat())
}

// What is held is what was read from the connection and has not been given to the program.
#[tokio::test(start_paused = true)]
async fn a_slow_program_holds_at_most_twice_the_inbox_whatever_the_server_sends() {
    const MESSAGES: u8 = 8;
    const SIZE: u64 = 15 * MIB;
    let read = Arc::new(AtomicU64::new(0));
    let (pong, ponged) = oneshot::channel();
    let (ours, theirs) = duplex(64 << 10);
    tokio::spawn(async move {
        let mut socket = accept_async(theirs).await.unwrap();
        for number in 0..MESSAGES {
            socket.send(large(number, SIZE)).await.unwrap();
        }
        socket.send(Message::Ping(Bytes::from_static(b"still there?"))).await.unwrap();
        let _ = pong.send(socket.next().await.unwrap().unwrap());
        core::future::pending::<()>().await;
    });
    let stream = std::sync::Mutex::new(Some(Counted { stream: ours, read: Arc::clone(&read) }));
    let connect = move |_| {
        let stream = stream.lock().unwrap().take();
        async move { stream.ok_or_else(|| io::ErrorKind::ConnectionRefused.into()) }
    };
    let mut messages =
        Client::builder().url("ws://server.test/").connector(connect).no_keepalive().connect().messages();
    let mut given = 0;
    for number in 0..MESSAGES {
        // The server has all the time that it wants.
        sleep(secs(60)).await;
        let held = read.load(Ordering::Relaxed) - given;
        assert!(held <= 2 * 16 * MIB + MIB, "{} MiB held", held / MIB);
        let message = messages.next().await.unwrap().unwrap();
        assert_eq!((message.len() as u64, message.into_data()[0]), (SIZE, number), "in order, and none is lost");
        given += SIZE;
    }
    // The ping comes after the messages, so it is answered once there is room to read on.
    let pong = timeout(secs(1), ponged);
    let answer = tokio::select! { answer = pong => answer, other = messages.next() => panic!("{other:?}") };
    assert_eq!(answer.unwrap().unwrap(), Message::Pong(Bytes::from_static(b"still there?")));
}

// In fragments, each of which is allowed. Before, 64 MiB were collected.
#[tokio::test(start_paused = true)]
async fn a_message_larger_than_the_default_inbox_is_rejected() {
    let fragments = [frame_of(0x02, 8 * MIB), frame_of(0x00, 8 * MIB), frame_of(0x80, 8 * MIB)];
    let server = ScriptedServer::new([[vec![Upgrade], fragments.to_vec(), vec![Hang]].concat()]);
    let mut client = server.over_pipes().connect();
    assert!(matches!(client.next().await, Some(Ok(Event::Open(_)))));
    let fatal = loop {
        match timeout(secs(60), client.next()).await.expect("the message is rejected").unwrap() {
            Ok(Event::Message(message)) => panic!("a message of {} bytes", message.len()),
            Ok(_) => {}
            Err(fatal) => break fatal,
        }
    };
    assert_eq!((fatal.stop_reason(), fatal.cause().name()), (StopReason::Permanent, "protocol"));
}

// Nothing can be held back before the server has answered, so the connection ends.
#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_answer_a_resume_fills_no_more_than_the_inbox() {
    let flood = vec![text(&"x".repeat(100)); 50];
    let server = ScriptedServer::new([[vec![Upgrade], flood.clone(), vec![text("fresh"), Hang]].concat()]);
    let mut client = server.over_pipes().resume(Feed::sending_first()).inbox_bytes(1_000).connect();
    let closed = client.next().await.unwrap().unwrap();
    let Event::Closed(closed) = closed else { panic!("{closed:?}") };
    assert_eq!(closed.cause.to_string(), "the server sent more than 1000 bytes before it decided about the resume");
    assert_eq!(closed.cause.name(), "protocol");
    let server = ScriptedServer::new([[vec![Upgrade], flood, vec![text("fresh"), Hang]].concat()]);
    let mut client = server.over_pipes().resume(Feed::sending_first()).connect();
    assert!(matches!(client.next().await, Some(Ok(Event::Open(_)))));
}
