//! The kinds of connections.

use core::marker::PhantomData;
use std::io;
use std::sync::LazyLock;

use futures_util::{SinkExt as _, StreamExt as _};
use stagger::admission::{Admission, Secret};
use stagger_ws::server::Sockets;
use stagger_ws::{Client, ClientBuilder, Connection, Message, ReconnectLoop};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_tungstenite::{WebSocketStream, accept_async_with_config, client_async_with_config};

use super::echo::{EchoConnection, Transport, config, echo, exchange};

const ADDRESS: &str = "ws://server.test/feed";

/// The capacity of a channel, in messages.
const CAPACITY: usize = 64;

/// tokio-tungstenite at both ends.
pub(super) struct Bare<W>(WebSocketStream<W>);

impl<W: Transport> EchoConnection for Bare<W> {
    async fn open() -> Self {
        Self(dial(connect_to_echo::<W>().await).await)
    }

    async fn exchange(&mut self, message: Message) {
        exchange(&mut self.0, message).await;
    }

    async fn idle(mut self) {
        while let Some(Ok(_)) = self.0.next().await {}
    }
}

/// tokio-tungstenite in a task with a channel in each direction, so that more than one task can send.
pub(super) struct InATask<W> {
    sends: Sender<Message>,
    receives: Receiver<Message>,
    over: PhantomData<W>,
}

impl<W: Transport> EchoConnection for InATask<W> {
    async fn open() -> Self {
        let mut socket = dial(connect_to_echo::<W>().await).await;
        let ((sends, mut outbox), (inbox, receives)) = (channel::<Message>(CAPACITY), channel(CAPACITY));
        tokio::spawn(async move {
            loop {
                tokio::select! {
                    Some(message) = outbox.recv() => {
                        if socket.send(message).await.is_err() {
                            break;
                        }
                    }
                    Some(Ok(message)) = socket.next() => {
                        if inbox.send(message).await.is_err() {
                            break;
                        }
                    }
                    else => break,
                }
            }
        });
        Self { sends, receives, over: PhantomData }
    }

    async fn exchange(&mut self, message: Message) {
        let _ = self.sends.send(message).await;
        let _ = self.receives.recv().await;
    }

    async fn idle(mut self) {
        while self.receives.recv().await.is_some() {}
    }
}

/// The low-level client of this project; the other end is tokio-tungstenite.
pub(super) struct Low<W>(Connection<'static>, PhantomData<W>);

impl<W: Transport> EchoConnection for Low<W> {
    async fn open() -> Self {
        // Leaked, because it is used until the process ends.
        let links = Box::leak(Box::new(with_echo::<W>(ReconnectLoop::builder()).reconnect_loop()));
        let opened = links.next_connection().await;
        // The other end accepts every connection.
        Self(opened.expect("it opens").expect("a connection"), PhantomData)
    }

    async fn exchange(&mut self, message: Message) {
        exchange(&mut self.0, message).await;
    }

    async fn idle(mut self) {
        while let Some(Ok(_)) = self.0.next().await {}
    }
}

/// The high-level client of this project; the other end is tokio-tungstenite.
pub(super) struct High<W>(Client, PhantomData<W>);

impl<W: Transport> EchoConnection for High<W> {
    async fn open() -> Self {
        let mut client = with_echo::<W>(Client::builder()).connect();
        // The first event is that the connection has opened.
        client.next().await;
        Self(client, PhantomData)
    }

    async fn exchange(&mut self, message: Message) {
        exchange(&mut self.0, message).await;
    }

    async fn idle(mut self) {
        while let Some(Ok(_)) = self.0.next().await {}
    }
}

/// tokio-tungstenite; the other end is the server of this project.
pub(super) struct Served<W>(WebSocketStream<W>);

impl<W: Transport> EchoConnection for Served<W> {
    async fn open() -> Self {
        static SOCKETS: LazyLock<Sockets> = LazyLock::new(|| {
            let admission = Admission::per_second(1_000_000_000).burst(1_000_000).build(Secret::new([1; 16]));
            let settings = admission.map(|admission| Sockets::builder(admission).websocket_config(config()).build());
            settings.expect("a valid rate").expect("valid settings")
        });
        let (ours, theirs) = W::pair().await;
        tokio::spawn(async {
            // The request is dropped here.
            let socket = SOCKETS.accept(theirs).await.map(|accepted| accepted.socket);
            if let Ok(socket) = socket {
                echo(socket).await;
            }
        });
        Self(dial(ours).await)
    }

    async fn exchange(&mut self, message: Message) {
        exchange(&mut self.0, message).await;
    }

    async fn idle(mut self) {
        while let Some(Ok(_)) = self.0.next().await {}
    }
}

fn with_echo<W: Transport>(builder: ClientBuilder) -> ClientBuilder {
    builder
        .url(ADDRESS)
        .websocket_config(config())
        .connector(|_| async { io::Result::Ok(connect_to_echo::<W>().await) })
}

async fn dial<W: Transport>(wire: W) -> WebSocketStream<W> {
    // The two ends are connected directly, so the handshake cannot fail.
    client_async_with_config(ADDRESS, wire, Some(config())).await.expect("a handshake").0
}

/// Connects to a peer that echoes each message.
async fn connect_to_echo<W: Transport>() -> W {
    let (ours, theirs) = W::pair().await;
    tokio::spawn(async {
        if let Ok(socket) = accept_async_with_config(theirs, Some(config())).await {
            echo(socket).await;
        }
    });
    ours
}
