//! The transports, and what each kind of connection does in a case.

use core::cell::RefCell;
use core::hint::black_box;
use core::net::Ipv4Addr;
use std::io;

use futures_util::{Sink, SinkExt as _, Stream, StreamExt as _};
use stagger_ws::{Message, WebSocketConfig};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, duplex};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

use crate::tokio_runtime;

/// A byte stream between two ends.
pub(super) trait Transport: AsyncRead + AsyncWrite + Send + Unpin + 'static {
    /// Creates both ends.
    fn pair() -> impl Future<Output = (Self, Self)> + Send
    where
        Self: Sized;
}

/// A pipe in memory, without the kernel.
impl Transport for DuplexStream {
    async fn pair() -> (Self, Self) {
        // Larger than any message of the cases.
        duplex(16 << 10)
    }
}

/// A TCP connection over loopback.
impl Transport for TcpStream {
    async fn pair() -> (Self, Self) {
        async fn connected() -> io::Result<(TcpStream, TcpStream)> {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            let (ours, theirs) = tokio::join!(TcpStream::connect(listener.local_addr()?), listener.accept());
            let (ours, theirs) = (ours?, theirs?.0);
            ours.set_nodelay(true)?;
            theirs.set_nodelay(true)?;
            Ok((ours, theirs))
        }
        connected().await.expect("loopback connections work")
    }
}

/// A kind of connection. The other end echoes each message.
pub(super) trait EchoConnection: Sized + 'static {
    /// Opens a connection.
    async fn open() -> Self;

    /// Sends a message and waits for its echo.
    async fn exchange(&mut self, message: Message);

    /// Waits for messages, of which there are none.
    fn idle(self) -> impl Future<Output = ()> + Send + 'static;
}

/// Returns the configuration of all connections. The default read buffer of 128 KiB would dominate the memory figures.
pub(super) fn config() -> WebSocketConfig {
    WebSocketConfig::default().read_buffer_size(4 << 10).write_buffer_size(4 << 10)
}

/// Echoes each message.
pub(super) async fn echo<S, E>(mut socket: S)
where
    S: Stream<Item = Result<Message, E>> + Sink<Message> + Unpin,
{
    while let Some(Ok(message)) = socket.next().await {
        if socket.send(message).await.is_err() {
            break;
        }
    }
}

/// Sends a message and waits for its echo.
pub(super) async fn exchange<S>(socket: &mut S, message: Message)
where
    S: Stream + Sink<Message> + Unpin,
{
    black_box(socket.send(message).await.is_ok());
    black_box(socket.next().await.is_some());
}

/// A connection that stays open between turns.
pub(super) struct OpenConnection<T>(Runtime, RefCell<T>);

impl<T: EchoConnection> OpenConnection<T> {
    pub(super) fn open() -> Self {
        let runtime = tokio_runtime::connected();
        let connection = runtime.block_on(T::open());
        Self(runtime, RefCell::new(connection))
    }

    pub(super) fn exchange(&self, message: &Message, times: u64) {
        let mut connection = self.1.borrow_mut();
        self.0.block_on(async {
            for _ in 0..times {
                connection.exchange(message.clone()).await;
            }
        });
    }
}
