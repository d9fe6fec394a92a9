//! What is said, over what, and how each kind of connection is asked for it.

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

/// What bytes go over.
pub(super) trait Wire: AsyncRead + AsyncWrite + Send + Unpin + 'static {
    /// Both ends of one.
    fn pair() -> impl Future<Output = (Self, Self)> + Send
    where
        Self: Sized;
}

/// No kernel: what is measured is the code.
impl Wire for DuplexStream {
    async fn pair() -> (Self, Self) {
        // Room for any message here.
        duplex(16 << 10)
    }
}

/// What a message costs on one machine.
impl Wire for TcpStream {
    async fn pair() -> (Self, Self) {
        async fn connected() -> io::Result<(TcpStream, TcpStream)> {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            let (ours, theirs) = tokio::join!(TcpStream::connect(listener.local_addr()?), listener.accept());
            let (ours, theirs) = (ours?, theirs?.0);
            ours.set_nodelay(true)?;
            theirs.set_nodelay(true)?;
            Ok((ours, theirs))
        }
        connected().await.expect("a connection to this machine")
    }
}

/// A connection of some kind. At its other end, what comes is sent back.
pub(super) trait Talk: Sized + 'static {
    /// Opens one.
    async fn open() -> Self;

    /// Sends a message and waits until it is back.
    async fn exchange(&mut self, message: Message);

    /// Waits for what comes, and nothing does.
    fn idle(self) -> impl Future<Output = ()> + Send + 'static;
}

/// The same for all of them; tungstenite's own reading buffer of 128 KiB would hide everything else.
pub(super) fn config() -> WebSocketConfig {
    WebSocketConfig::default().read_buffer_size(4 << 10).write_buffer_size(4 << 10)
}

/// Sends back what comes.
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

/// There and back again.
pub(super) async fn exchange<S>(socket: &mut S, message: Message)
where
    S: Stream + Sink<Message> + Unpin,
{
    black_box(socket.send(message).await.is_ok());
    black_box(socket.next().await.is_some());
}

/// A connection that is kept from turn to turn.
pub(super) struct Kept<T>(Runtime, RefCell<T>);

impl<T: Talk> Kept<T> {
    pub(super) fn open() -> Self {
        let runtime = tokio_runtime::connected();
        let connection = runtime.block_on(T::open());
        Self(runtime, RefCell::new(connection))
    }

    pub(super) fn talk(&self, message: &Message, times: u64) {
        let mut connection = self.1.borrow_mut();
        self.0.block_on(async {
            for _ in 0..times {
                connection.exchange(message.clone()).await;
            }
        });
    }
}
