//! A server that does to each connection what its path says.

use core::net::SocketAddr;
use core::time::Duration;
use std::sync::Arc;

use futures_util::{SinkExt as _, StreamExt as _};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;

use crate::support::{SECOND, on_loopback};

/// What the server does to a connection.
#[derive(Clone, Copy, Debug)]
pub(super) enum Act {
    /// Sends messages back until one is `lose`, and then drops the connection without a close frame.
    Echo,
    /// Accepts, and closes with this code and this reason.
    Close(u16, &'static str),
    /// Accepts, writes these bytes so many times, and drops the connection.
    Write(&'static [u8], usize),
    /// Answers the upgrade with these bytes, so many times, and drops the connection.
    Answer(&'static [u8], usize),
}

/// The server; dropping it drops its connections.
pub(super) struct Scripted {
    pub(super) address: SocketAddr,
    _tasks: JoinSet<()>,
}

impl Scripted {
    /// Serves each act under its index: `/0`.
    pub(super) fn serve(acts: impl IntoIterator<Item = Act>) -> Self {
        let acts: Arc<[Act]> = acts.into_iter().collect();
        let (listener, address) = on_loopback();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                // A connection that ends early is what many of them are for.
                let acts = Arc::clone(&acts);
                connections.spawn(async move { timeout(60 * SECOND, perform(stream, &acts)).await });
            }
        });
        Self { address, _tasks: tasks }
    }
}

async fn perform(mut stream: TcpStream, acts: &[Act]) -> Option<()> {
    let mut head = [0; 32];
    // `GET /12 HTTP/1.1`, which the handshake reads again.
    let read = stream.peek(&mut head).await.ok()?;
    let path = core::str::from_utf8(&head[..read]).ok()?.split(' ').nth(1)?;
    let act = acts.get(path.trim_start_matches('/').parse::<usize>().ok()?)?;
    if let Act::Answer(bytes, times) = act {
        _ = stream.read(&mut [0; 4096]).await.ok()?;
        return write(&mut stream, bytes, *times).await;
    }
    let mut socket = accept_async(stream).await.ok()?;
    match *act {
        Act::Close(code, reason) => {
            let frame = CloseFrame { code: code.into(), reason: reason.into() };
            socket.close(Some(frame)).await.ok()?;
            while let Some(Ok(_)) = socket.next().await {}
        }
        Act::Write(bytes, times) => write(socket.get_mut(), bytes, times).await?,
        Act::Echo | Act::Answer(..) => {
            while let Some(Ok(message)) = socket.next().await {
                if message == Message::text("lose") {
                    break;
                }
                socket.send(message).await.ok()?;
            }
        }
    }
    Some(())
}

async fn write(stream: &mut TcpStream, bytes: &[u8], times: usize) -> Option<()> {
    stream.write_all(&bytes.repeat(times)).await.ok()?;
    stream.shutdown().await.ok()?;
    // What was written is lost if the connection is dropped while the page's bytes are unread.
    let rest = async { while !matches!(stream.read(&mut [0; 4096]).await, Ok(0) | Err(_)) {} };
    timeout(Duration::from_millis(500), rest).await.ok()
}
