//! A server of HTTP/2 that decides about each stream by itself, frame by frame: RFC 9113.

use core::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// Length of the preface with which a client begins.
const PREFACE: usize = 24;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const GOAWAY: u8 = 7;

pub(super) const NO_ERROR: u32 = 0;
pub(super) const INTERNAL_ERROR: u32 = 2;
pub(super) const REFUSED_STREAM: u32 = 7;
pub(super) const ENHANCE_YOUR_CALM: u32 = 11;

/// What a server does with a stream.
#[derive(Clone, Copy, Debug)]
pub(super) enum Answer {
    /// Responds 200.
    Ok,
    /// Resets the stream with this reason.
    Reset(u32),
    /// Goes away with this reason before the stream, and closes the connection.
    GoAwayBefore(u32),
    /// Goes away after the stream, which it may have processed, and closes the connection.
    GoAwayAfter(u32),
    /// Closes the connection.
    Close,
}

/// A server that has these answers for its first streams, and then 200.
#[derive(Clone)]
pub(super) struct FrameServer {
    pub(super) address: SocketAddr,
    answers: Arc<[Answer]>,
    streams: Arc<Mutex<usize>>,
}

impl FrameServer {
    pub(super) async fn start(answers: impl Into<Arc<[Answer]>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self { address: listener.local_addr().unwrap(), answers: answers.into(), streams: Arc::default() };
        let serving = server.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let server = serving.clone();
                tokio::spawn(async move { server.serve(stream).await });
            }
        });
        server
    }

    /// Returns the number of streams that clients have opened.
    pub(super) fn streams(&self) -> usize {
        *self.streams.lock().unwrap()
    }

    /// Serves a connection. Returns `None` if either side closes it.
    async fn serve(self, mut socket: TcpStream) -> Option<()> {
        socket.read_exact(&mut [0; PREFACE]).await.ok()?;
        send(&mut socket, SETTINGS, 0, 0, &[]).await?;
        loop {
            let mut head = [0; 9];
            socket.read_exact(&mut head).await.ok()?;
            let [a, b, c, kind, flags, id @ ..] = head;
            let (length, id) = (u32::from_be_bytes([0, a, b, c]), u32::from_be_bytes(id));
            socket.read_exact(&mut vec![0; length as usize]).await.ok()?;
            match kind {
                SETTINGS if flags == 0 => send(&mut socket, SETTINGS, 1, 0, &[]).await?,
                HEADERS => self.answer(&mut socket, id).await?,
                _ => {}
            }
        }
    }

    async fn answer(&self, socket: &mut TcpStream, id: u32) -> Option<()> {
        let number = {
            let mut streams = self.streams.lock().unwrap();
            *streams += 1;
            *streams
        };
        let go_away = |last: u32, reason: u32| [last.to_be_bytes(), reason.to_be_bytes()].concat();
        match self.answers.get(number - 1).unwrap_or(&Answer::Ok) {
            // `:status: 200` is the eighth entry of the static table; the stream ends with it.
            Answer::Ok => send(socket, HEADERS, 0x5, id, &[0x88]).await,
            Answer::Reset(reason) => send(socket, RST_STREAM, 0, id, &reason.to_be_bytes()).await,
            // The ids of a client's streams are odd.
            Answer::GoAwayBefore(reason) => {
                send(socket, GOAWAY, 0, 0, &go_away(id.saturating_sub(2), *reason)).await?;
                self.close(socket).await
            }
            Answer::GoAwayAfter(reason) => {
                send(socket, GOAWAY, 0, 0, &go_away(id, *reason)).await?;
                self.close(socket).await
            }
            Answer::Close => self.close(socket).await,
        }
    }

    /// Closes the connection. What the client still sends is read, so that the system does not reset the connection and
    /// discard the frames on their way.
    async fn close(&self, socket: &mut TcpStream) -> Option<()> {
        socket.shutdown().await.ok()?;
        while socket.read(&mut [0; 1024]).await.ok()? > 0 {}
        None
    }
}

/// Sends a frame.
async fn send(socket: &mut TcpStream, kind: u8, flags: u8, id: u32, payload: &[u8]) -> Option<()> {
    let [_, a, b, c] = u32::try_from(payload.len()).ok()?.to_be_bytes();
    let frame = [&[a, b, c, kind, flags], &id.to_be_bytes()[..], payload].concat();
    socket.write_all(&frame).await.ok()
}
