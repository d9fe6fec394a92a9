//! Section J: WebSockets with both ends in this process, over a pipe or a socket.

use core::cell::RefCell;
use core::hint::black_box;
use core::marker::PhantomData;
use core::mem::forget;
use core::net::Ipv4Addr;
use core::time::Duration;
use std::io;
use std::sync::LazyLock;

use bytes::Bytes;
use futures_util::{Sink, SinkExt as _, Stream, StreamExt as _};
use stagger::admission::{Admission, Secret};
use stagger_ws::server::{RejectBy, Sockets};
use stagger_ws::{Client, ClientBuilder, Connection, Message, ReconnectLoop, WebSocketConfig};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::yield_now;
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::{WebSocketStream, accept_async, accept_async_with_config, client_async_with_config};

use crate::case::{Case, Role, Table};
use crate::operation;

const BARE: &str = "tokio-tungstenite";
const IN_A_TASK: &str = "tokio-tungstenite in a task, two channels";
const LOW: &str = "Connection";
const HIGH: &str = "Client";
const SERVED: &str = "server::Socket";
const OPEN_AND_CLOSE: &str = "tokio-tungstenite, opened and closed";
const BY_CLOSE: &str = "Sockets, by a close";
const BY_RESPONSE: &str = "Sockets, by a 503";

/// Returns the rows of the tables.
pub(crate) fn cases() -> Vec<Case> {
    [message_cases(), idle_cases(), rejected_cases()].concat()
}

// The round trip of a message.

static SHORT: LazyLock<Message> = LazyLock::new(|| Message::Binary(Bytes::from_static(&[b'x'; 64])));
static LONG: LazyLock<Message> = LazyLock::new(|| Message::Binary(Bytes::from_static(&[b'x'; 4 << 10])));

/// Creates a case on a kind of connection that is opened once for all turns of the case.
macro_rules! over {
    ($kind:ty, $message:expr) => {
        |times| {
            thread_local! {
                static OPEN: OpenConnection<$kind> = OpenConnection::open();
            }
            OPEN.with(|open| open.exchange(&$message, times));
        }
    };
}

/// Creates the rows of a table: each kind of connection over this transport.
macro_rules! rows {
    ($table:expr, $wire:ty, $message:expr) => {
        [
            Case::work($table, Role::Bare, BARE, over!(Bare<$wire>, $message)),
            Case::work($table, Role::Floor, IN_A_TASK, over!(InATask<$wire>, $message)),
            Case::work($table, Role::Stagger, LOW, over!(Low<$wire>, $message)),
            Case::work($table, Role::Stagger, HIGH, over!(High<$wire>, $message)),
            Case::work($table, Role::Stagger, SERVED, over!(Served<$wire>, $message)),
        ]
    };
}

/// Returns the rows of the four tables.
fn message_cases() -> Vec<Case> {
    [
        rows!(Table::PipeShort, DuplexStream, SHORT),
        rows!(Table::PipeLong, DuplexStream, LONG),
        rows!(Table::SocketShort, TcpStream, SHORT),
        rows!(Table::SocketLong, TcpStream, LONG),
    ]
    .concat()
}

// Idle connections.

const IDLE: u64 = 2_000;

/// Returns the rows of the table.
fn idle_cases() -> Vec<Case> {
    let row = |role, name, run| Case::work(Table::SocketIdle, role, name, run).keeping(IDLE);
    vec![
        row(Role::Bare, BARE, open::<Bare<DuplexStream>>),
        row(Role::Floor, IN_A_TASK, open::<InATask<DuplexStream>>),
        row(Role::Stagger, LOW, open::<Low<DuplexStream>>),
        row(Role::Stagger, HIGH, open::<High<DuplexStream>>),
        row(Role::Stagger, SERVED, open::<Served<DuplexStream>>),
    ]
}

/// Opens `times` connections and drops them. For 0, opens the connections whose memory is measured, and keeps them.
fn open<T: EchoConnection>(times: u64) {
    let runtime = operation::connected();
    if times == 0 {
        runtime.block_on(async {
            for _ in 0..IDLE {
                tokio::spawn(T::open().await.idle());
            }
            // All tasks have reached their wait.
            for _ in 0..16 {
                yield_now().await;
            }
        });
        forget(runtime);
    } else {
        runtime.block_on(async {
            for _ in 0..times {
                drop(T::open().await);
            }
        });
    }
}

// Rejected upgrades. The client writes bytes and reads bytes, so the server's work is what is measured.

const KEPT: u64 = 2_000;
/// The request of a browser.
const REQUEST: &[u8] = b"GET /feed HTTP/1.1\r\nHost: feed.example\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
    Origin: https://chat.example\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
/// A masked close frame with code 1013.
const REPLY: &[u8] = &[0x88, 0x82, 0, 0, 0, 0, 0x03, 0xf5];
const REASON: &str = r#"{"retry_after_ms":1520,"reservation":"00000000000000010123456789abcdef"}"#;

/// Returns the rows of the table.
fn rejected_cases() -> Vec<Case> {
    let row = |role, name, run| Case::work(Table::SocketRejected, role, name, run).keeping(KEPT);
    vec![
        row(Role::Bare, OPEN_AND_CLOSE, |times| reject(times, open_and_close)),
        row(Role::Stagger, BY_CLOSE, |times| reject(times, by_close)),
        Case::work(Table::SocketRejected, Role::Stagger, BY_RESPONSE, |times| reject(times, by_response)),
    ]
}

/// Rejects `times` clients. For 0, rejects the clients whose memory is measured, which never reply.
fn reject<F>(times: u64, server: fn(DuplexStream) -> F)
where
    F: Future<Output = ()> + Send + 'static,
{
    let runtime = operation::connected();
    runtime.block_on(async {
        for _ in 0..times {
            let mut client = connect(server).await;
            let mut answer = [0; 512];
            let mut length = 0;
            // The end of the head, or of the reason.
            while !answer[..length].ends_with(b"close\r\n\r\n") && !answer[..length].ends_with(b"}") {
                length += client.read(&mut answer[length..]).await.expect("an answer");
            }
            let _ = client.write_all(REPLY).await;
            while client.read(&mut answer).await.is_ok_and(|read| read > 0) {}
        }
    });
    if times == 0 {
        runtime.block_on(async {
            for _ in 0..KEPT {
                forget(connect(server).await);
            }
            // All tasks have reached their wait.
            for _ in 0..16 {
                yield_now().await;
            }
        });
        forget(runtime);
    }
}

async fn connect<F>(server: fn(DuplexStream) -> F) -> DuplexStream
where
    F: Future<Output = ()> + Send + 'static,
{
    let (mut client, theirs) = duplex(1 << 10);
    tokio::spawn(server(theirs));
    client.write_all(REQUEST).await.expect("the pipe is open");
    client
}

/// What an application does without this project.
async fn open_and_close(stream: DuplexStream) {
    let Ok(mut socket) = accept_async(stream).await else { return };
    let _ = socket.close(Some(CloseFrame { code: 1013.into(), reason: REASON.into() })).await;
    while let Some(Ok(_)) = socket.next().await {}
}

async fn by_close(stream: DuplexStream) {
    static SOCKETS: LazyLock<Sockets> = LazyLock::new(|| sockets(RejectBy::Close));
    drop(SOCKETS.accept(stream).await);
}

async fn by_response(stream: DuplexStream) {
    static SOCKETS: LazyLock<Sockets> = LazyLock::new(|| sockets(RejectBy::Response));
    drop(SOCKETS.accept(stream).await);
}

/// Returns a server that has admitted the client of its burst and rejects all others for years.
fn sockets(reject_by: RejectBy) -> Sockets {
    let horizon = Duration::from_secs(1 << 30);
    let admission = Admission::per_second(1).burst(1).tolerance(Duration::ZERO, horizon).build(Secret::new([1; 16]));
    let settings = admission.map(|admission| {
        let settings = Sockets::builder(admission).reject_by(move |_, _| reject_by);
        settings.max_closing(usize::MAX).rejection_timeout(Duration::from_secs(3600)).build()
    });
    let sockets = settings.expect("a valid rate").expect("valid settings");
    drop(sockets.admit(&http::HeaderMap::new()));
    sockets
}

// The transports, and what each kind of connection does in a case.

/// A byte stream between two ends.
trait Transport: AsyncRead + AsyncWrite + Send + Unpin + 'static {
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
trait EchoConnection: Sized + 'static {
    /// Opens a connection.
    async fn open() -> Self;

    /// Sends a message and waits for its echo.
    async fn exchange(&mut self, message: Message);

    /// Waits for messages, of which there are none.
    fn idle(self) -> impl Future<Output = ()> + Send + 'static;
}

/// Returns the configuration of all connections. The default read buffer of 128 KiB would dominate the memory figures.
fn config() -> WebSocketConfig {
    WebSocketConfig::default().read_buffer_size(4 << 10).write_buffer_size(4 << 10)
}

/// Echoes each message.
async fn echo<S, E>(mut socket: S)
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
async fn exchange<S>(socket: &mut S, message: Message)
where
    S: Stream + Sink<Message> + Unpin,
{
    black_box(socket.send(message).await.is_ok());
    black_box(socket.next().await.is_some());
}

/// A connection that stays open between turns.
struct OpenConnection<T>(Runtime, RefCell<T>);

impl<T: EchoConnection> OpenConnection<T> {
    fn open() -> Self {
        let runtime = operation::connected();
        let connection = runtime.block_on(T::open());
        Self(runtime, RefCell::new(connection))
    }

    fn exchange(&self, message: &Message, times: u64) {
        let mut connection = self.1.borrow_mut();
        self.0.block_on(async {
            for _ in 0..times {
                connection.exchange(message.clone()).await;
            }
        });
    }
}

// The kinds of connections.

const ADDRESS: &str = "ws://server.test/feed";

/// The capacity of a channel, in messages.
const CAPACITY: usize = 64;

/// tokio-tungstenite at both ends.
struct Bare<W>(WebSocketStream<W>);

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
struct InATask<W> {
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
struct Low<W>(Connection<'static>, PhantomData<W>);

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
struct High<W>(Client, PhantomData<W>);

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
struct Served<W>(WebSocketStream<W>);

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
