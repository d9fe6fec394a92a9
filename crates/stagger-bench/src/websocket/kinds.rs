//! The kinds of connections.

use core::marker::PhantomData;
use std::io;
use std::sync::LazyLock;

use futures_util::{SinkExt as _, StreamExt as _};
use stagger::admission::Admission;
use stagger_ws::server::Sockets;
use stagger_ws::{Client, ClientBuilder, Connection, Message, ReconnectLoop};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio_tungstenite::{WebSocketStream, accept_async_with_config, client_async_with_config};

use super::talk::{Talk, Wire, config, echo, exchange};

const ADDRESS: &str = "ws://server.test/feed";

/// How many messages wait in a channel, at most.
const ROOM: usize = 64;

/// The library alone, at both ends.
pub(super) struct Bare<W>(WebSocketStream<W>);

impl<W: Wire> Talk for Bare<W> {
    async fn open() -> Self {
        Self(dial(answered::<W>().await).await)
    }

    async fn exchange(&mut self, message: Message) {
        exchange(&mut self.0, message).await;
    }

    async fn idle(mut self) {
        while let Some(Ok(_)) = self.0.next().await {}
    }
}

/// What is written by hand, so that more than one task can send: a task, and a channel each way.
pub(super) struct InATask<W> {
    sends: Sender<Message>,
    receives: Receiver<Message>,
    over: PhantomData<W>,
}

impl<W: Wire> Talk for InATask<W> {
    async fn open() -> Self {
        let mut socket = dial(answered::<W>().await).await;
        let ((sends, mut outbox), (inbox, receives)) = (channel::<Message>(ROOM), channel(ROOM));
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

/// This project's low level; the other end is the library alone.
pub(super) struct Low<W>(Connection<'static>, PhantomData<W>);

impl<W: Wire> Talk for Low<W> {
    async fn open() -> Self {
        // It lives as long as the process.
        let links = Box::leak(Box::new(wired::<W>(ReconnectLoop::builder()).reconnect_loop()));
        let opened = links.next_connection().await;
        // Nobody refuses it.
        Self(opened.expect("it opens").expect("a connection"), PhantomData)
    }

    async fn exchange(&mut self, message: Message) {
        exchange(&mut self.0, message).await;
    }

    async fn idle(mut self) {
        while let Some(Ok(_)) = self.0.next().await {}
    }
}

/// This project's high level; the other end is the library alone.
pub(super) struct High<W>(Client, PhantomData<W>);

impl<W: Wire> Talk for High<W> {
    async fn open() -> Self {
        let mut client = wired::<W>(Client::builder()).connect();
        // It tells that it has opened.
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

/// The library alone; the other end is this project's.
pub(super) struct Served<W>(WebSocketStream<W>);

impl<W: Wire> Talk for Served<W> {
    async fn open() -> Self {
        static SOCKETS: LazyLock<Sockets> = LazyLock::new(|| {
            let admission = Admission::per_second(1_000_000_000).burst(1_000_000).build();
            let settings = admission.map(|admission| Sockets::builder(admission).websocket_config(config()).build());
            settings.expect("a rate").expect("settings that are valid")
        });
        let (ours, theirs) = W::pair().await;
        tokio::spawn(async {
            // The request is let go of.
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

fn wired<W: Wire>(builder: ClientBuilder) -> ClientBuilder {
    builder.url(ADDRESS).websocket_config(config()).connector(|_| async { io::Result::Ok(answered::<W>().await) })
}

async fn dial<W: Wire>(wire: W) -> WebSocketStream<W> {
    // There is nobody between the two who could spoil it.
    client_async_with_config(ADDRESS, wire, Some(config())).await.expect("a handshake").0
}

/// To somebody who sends back what comes.
async fn answered<W: Wire>() -> W {
    let (ours, theirs) = W::pair().await;
    tokio::spawn(async {
        if let Ok(socket) = accept_async_with_config(theirs, Some(config())).await {
            echo(socket).await;
        }
    });
    ours
}
