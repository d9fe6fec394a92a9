//! Clients and servers, at both ends of a pipe or of a socket.

use core::net::SocketAddr;
use core::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use http::HeaderMap;
use stagger::{admission::Admission, admission::Reservation};
use stagger_http::header::RESERVATION_TOKEN;
use stagger_http::hint::reservation;
use stagger_ws::server::{AcceptError, Accepted, Sockets, SocketsBuilder, listen};
use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, duplex};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_tungstenite::tungstenite::client::IntoClientRequest as _;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Error};
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

pub(crate) const SECOND: Duration = Duration::from_secs(1);

/// Buffers as small as the messages here, since there are many connections.
pub(crate) fn small() -> WebSocketConfig {
    WebSocketConfig::default().read_buffer_size(1024).write_buffer_size(0)
}

/// Lets in whoever comes.
pub(crate) fn open_to_all() -> SocketsBuilder {
    let admission = Admission::per_second(1_000_000_000).burst(1_000_000).build().unwrap();
    Sockets::builder(admission).websocket(small())
}

/// Asks for an upgrade, with the ticket of an appointment.
pub(crate) async fn ask<S>(stream: S, ticket: Option<&str>) -> Result<WebSocketStream<S>, Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut request = "ws://server.example/feed?token=secret".into_client_request()?;
    request.headers_mut().extend(ticket.map(|ticket| (Some(RESERVATION_TOKEN), ticket.parse().unwrap())));
    client_async_with_config(request, stream, Some(small())).await.map(|(socket, _)| socket)
}

/// The headers of a refusal, which has the status 503.
pub(crate) fn refused(error: Error) -> HeaderMap {
    let Error::Http(response) = error else { panic!("{error} is no refusal") };
    assert_eq!(response.status(), 503);
    response.headers().clone()
}

/// An upgrade over a pipe that is not let in: what its client is told.
pub(crate) async fn knock(sockets: &Sockets) -> HeaderMap {
    let (ours, theirs) = duplex(4096);
    let (accepted, answer) = tokio::join!(sockets.accept(ours), ask(theirs, None));
    assert!(matches!(accepted, Err(AcceptError::Refused(_))), "{accepted:?}");
    refused(answer.unwrap_err())
}

pub(crate) type Client = WebSocketStream<DuplexStream>;

/// A connection over a pipe, with both of its ends.
pub(crate) async fn connect(sockets: &Sockets) -> (Accepted<DuplexStream>, Client) {
    connect_through(sockets, 4096).await
}

/// Of a pipe with room for so many bytes.
pub(crate) async fn connect_through(sockets: &Sockets, room: usize) -> (Accepted<DuplexStream>, Client) {
    let (ours, theirs) = duplex(room);
    let (accepted, client) = tokio::join!(sockets.accept(ours), ask(theirs, None));
    (accepted.unwrap(), client.unwrap())
}

/// Sends back what comes.
pub(crate) async fn echo<S: AsyncRead + AsyncWrite + Unpin>(Accepted { mut socket, .. }: Accepted<S>) {
    while let Some(Ok(message)) = socket.next().await {
        if message.is_text() && socket.send(message).await.is_err() {
            break;
        }
    }
}

/// A server on loopback, on a port that was free.
pub(crate) fn on_loopback() -> (TcpListener, SocketAddr) {
    let listener = listen(([127, 0, 0, 1], 0).into(), 4096).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

pub(crate) async fn dial(address: SocketAddr) -> tungstenite::Result<WebSocketStream<TcpStream>> {
    ask(TcpStream::connect(address).await?, None).await
}

/// Comes back at its appointments until it is let in, and has those that it was given.
pub(crate) async fn come_until_let_in<S, F>(mut dial: impl FnMut() -> F) -> (WebSocketStream<S>, Vec<Reservation>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    F: Future<Output = S>,
{
    let (mut told, mut ticket) = (Vec::new(), None);
    loop {
        match ask(dial().await, ticket.as_deref()).await {
            Ok(socket) => return (socket, told),
            Err(error) => {
                let appointment = reservation(&refused(error)).expect("an appointment");
                told.push(appointment);
                ticket = Some(appointment.token.to_string());
                sleep(appointment.after).await;
            }
        }
    }
}

/// Waits for what happens at the other end of a socket, where there is nothing to wait on.
pub(crate) async fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let wait = async {
        while !is_so() {
            sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(20 * SECOND, wait).await.unwrap_or_else(|_| panic!("{what}: not within twenty seconds"));
}
