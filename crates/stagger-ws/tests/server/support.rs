//! Clients and servers connected by pipes or by sockets.

use core::net::SocketAddr;
use core::time::Duration;

use futures_util::{SinkExt as _, StreamExt as _};
use http::HeaderMap;
use stagger::admission::{Admission, Reservation, Secret};
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

/// Returns a configuration with small buffers, since there are many connections.
pub(crate) fn small() -> WebSocketConfig {
    WebSocketConfig::default().read_buffer_size(1024).write_buffer_size(0)
}

/// Returns a builder of a server that admits every client.
pub(crate) fn unlimited() -> SocketsBuilder {
    let admission = Admission::per_second(1_000_000_000).burst(1_000_000).build(Secret::new([1; 16])).unwrap();
    Sockets::builder(admission).websocket_config(small())
}

/// Sends an upgrade request, with the token of a reservation if there is one.
pub(crate) async fn request_upgrade<S>(stream: S, token: Option<&str>) -> Result<WebSocketStream<S>, Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut request = "ws://server.example/feed?token=secret".into_client_request()?;
    request.headers_mut().extend(token.map(|token| (Some(RESERVATION_TOKEN), token.parse().unwrap())));
    client_async_with_config(request, stream, Some(small())).await.map(|(socket, _)| socket)
}

/// Returns the headers of a rejection, which has the status 503.
pub(crate) fn rejection_headers(error: Error) -> HeaderMap {
    let Error::Http(response) = error else { panic!("not a rejection: {error}") };
    assert_eq!(response.status(), 503);
    response.headers().clone()
}

/// Sends an upgrade request that is rejected. Returns the headers of the response.
pub(crate) async fn request_rejected(sockets: &Sockets) -> HeaderMap {
    let (ours, theirs) = duplex(4096);
    let (accepted, answer) = tokio::join!(sockets.accept(ours), request_upgrade(theirs, None));
    assert!(matches!(accepted, Err(AcceptError::Rejected(_))), "{accepted:?}");
    rejection_headers(answer.unwrap_err())
}

pub(crate) type Client = WebSocketStream<DuplexStream>;

/// Opens a connection over a pipe. Returns both ends.
pub(crate) async fn connect(sockets: &Sockets) -> (Accepted<DuplexStream>, Client) {
    connect_through(sockets, 4096).await
}

/// Opens a connection over a pipe with a buffer of `room` bytes.
pub(crate) async fn connect_through(sockets: &Sockets, room: usize) -> (Accepted<DuplexStream>, Client) {
    let (ours, theirs) = duplex(room);
    let (accepted, client) = tokio::join!(sockets.accept(ours), request_upgrade(theirs, None));
    (accepted.unwrap(), client.unwrap())
}

/// Echoes messages.
pub(crate) async fn echo<S: AsyncRead + AsyncWrite + Unpin>(Accepted { mut socket, .. }: Accepted<S>) {
    while let Some(Ok(message)) = socket.next().await {
        if message.is_text() && socket.send(message).await.is_err() {
            break;
        }
    }
}

/// Creates a listener on loopback, on a free port.
pub(crate) fn on_loopback() -> (TcpListener, SocketAddr) {
    let listener = listen(([127, 0, 0, 1], 0).into(), 4096).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

pub(crate) async fn dial(address: SocketAddr) -> tungstenite::Result<WebSocketStream<TcpStream>> {
    request_upgrade(TcpStream::connect(address).await?, None).await
}

/// Connects at its reservations until it is admitted. Returns the reservations.
pub(crate) async fn connect_until_admitted<S, F>(mut dial: impl FnMut() -> F) -> (WebSocketStream<S>, Vec<Reservation>)
where
    S: AsyncRead + AsyncWrite + Unpin,
    F: Future<Output = S>,
{
    let (mut reservations, mut token) = (Vec::new(), None);
    loop {
        match request_upgrade(dial().await, token.as_deref()).await {
            Ok(socket) => return (socket, reservations),
            Err(error) => {
                let reservation = reservation(&rejection_headers(error)).expect("a reservation");
                reservations.push(reservation);
                token = Some(reservation.token.to_string());
                sleep(reservation.after).await;
            }
        }
    }
}

/// Waits for a condition at the other end of a socket, where there is nothing to wait on.
pub(crate) async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let wait = async {
        while !condition() {
            sleep(Duration::from_millis(2)).await;
        }
    };
    timeout(20 * SECOND, wait).await.unwrap_or_else(|_| panic!("not within 20 s: {what}"));
}
