//! Accepts connections of tungstenite: the listener, the handshake, and the admission in it.

use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use std::io;
use std::sync::Arc;

use http::{HeaderValue, Request, header};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout_at};
use tokio_tungstenite::tungstenite::handshake::server::{Callback, ErrorResponse, Response};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async_with_config, tungstenite};

use super::closing::{Closing, ClosingSlot};
use super::connections::ConnectionPermit;
use super::handshakes::{HandshakeSlot, Handshakes, Silence};
use super::rejection::UpgradeRejected;
use super::socket::Socket;
use super::sockets::Sockets;
use super::subprotocol::{header_value, protocol_for_close, protocol_for_token, redact, select};
use crate::sync::saturating_add;

/// The pause after an `accept` error that is not caused by the peer, such as running out of file descriptors: the next
/// call would fail, too.
const ACCEPT_ERROR_DELAY: Duration = Duration::from_millis(100);

/// An admitted WebSocket.
#[non_exhaustive]
pub struct Accepted<S> {
    /// The WebSocket, with keepalive and draining.
    pub socket: Socket<WebSocketStream<S>>,
    /// The client's request: path, query and headers. The token of a reservation is not in the query any more, and
    /// headers with one are marked as sensitive.
    pub request: Request<()>,
    /// The subprotocol that was selected from the server's
    /// [`subprotocols`](super::SocketsBuilder::subprotocols); `None` if the client offers none of them.
    pub subprotocol: Option<Arc<str>>,
}

/// The reason why a stream did not become a WebSocket.
#[derive(Debug)]
#[non_exhaustive]
pub enum AcceptError {
    /// The upgrade was rejected; the response, or the close frame, has been sent.
    Rejected(UpgradeRejected),
    /// The request was not a valid upgrade request, or the connection failed.
    Handshake(Box<tungstenite::Error>),
    /// The handshake was not completed within the handshake timeout.
    TimedOut,
}

impl fmt::Display for AcceptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(rejected) => rejected.fmt(f),
            Self::Handshake(error) => write!(f, "handshake failed: {error}"),
            Self::TimedOut => f.write_str("handshake timed out"),
        }
    }
}

impl core::error::Error for AcceptError {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match self {
            Self::Rejected(rejected) => Some(rejected),
            Self::Handshake(error) => Some(error),
            Self::TimedOut => None,
        }
    }
}

/// What the admission has answered.
#[expect(clippy::large_enum_variant, reason = "it lives as long as a handshake, which is boxed")]
enum AdmissionAnswer {
    Admitted(ConnectionPermit, Request<()>, Option<Arc<str>>),
    /// By a response.
    Rejected(UpgradeRejected),
    /// By a close frame.
    Close(UpgradeRejected, ClosingSlot),
}

/// What a handshake ends with.
#[expect(clippy::large_enum_variant, reason = "it is taken apart at once")]
enum HandshakeEnd<S> {
    Accepted(Accepted<S>),
    /// The client is rejected, but its WebSocket is open.
    Closing(Closing<S>),
}

/// Asks the admission when the request has arrived. Nothing else is allocated for the connection before that.
struct AdmissionCallback<'a> {
    sockets: &'a Sockets,
    since: Instant,
    address: Option<IpAddr>,
    answer: &'a mut Option<AdmissionAnswer>,
}

impl Callback for AdmissionCallback<'_> {
    fn on_request(self, request: &Request<()>, mut response: Response) -> Result<Response, ErrorResponse> {
        let (uri, headers) = (request.uri(), request.headers());
        let selected = select(&self.sockets.shared.settings.subprotocols, headers);
        let protocol = header_value(selected.as_ref());
        let (answer, protocol) = match self.sockets.admit_since(Some(uri), headers, self.since) {
            Ok(permit) => {
                let mut request = request.clone();
                redact(&mut request);
                let protocol = protocol.or_else(|| protocol_for_token(headers));
                (AdmissionAnswer::Admitted(permit, request, selected), protocol)
            }
            Err(rejected) => match self.sockets.try_close(uri, headers, self.address) {
                Some(slot) => {
                    (AdmissionAnswer::Close(rejected, slot), protocol.or_else(|| protocol_for_close(headers)))
                }
                None => {
                    *self.answer = Some(AdmissionAnswer::Rejected(rejected));
                    let mut response: ErrorResponse = rejected.response();
                    response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
                    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                    return Err(response);
                }
            },
        };
        *self.answer = Some(answer);
        response.headers_mut().extend(protocol.map(|protocol| (header::SEC_WEBSOCKET_PROTOCOL, protocol)));
        Ok(response)
    }
}

impl Sockets {
    /// Performs the handshake on a stream that has just been accepted, and admits or rejects the client. A rejected
    /// client gets a 503 with the time to come back, or a close frame if
    /// [`reject_by`](super::SocketsBuilder::reject_by) says so, before buffers for its messages are allocated.
    ///
    /// Cancel-safe: if the future is dropped, the slot is released.
    ///
    /// # Errors
    /// [`AcceptError`]: rejected, not an upgrade, or not complete within
    /// [`handshake_timeout`](super::SocketsBuilder::handshake_timeout). The stream is closed and the error is counted.
    /// A client that is rejected by a close has replied, or has had its
    /// [`rejection_timeout`](super::SocketsBuilder::rejection_timeout).
    ///
    /// # Panics
    /// If called outside of a tokio runtime with time enabled.
    pub async fn accept<S>(&self, stream: S) -> Result<Accepted<S>, AcceptError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        match self.open(stream, Instant::now(), None).await? {
            HandshakeEnd::Accepted(accepted) => Ok(accepted),
            HandshakeEnd::Closing(closing) => {
                let rejected = closing.rejected;
                Box::pin(closing.finish(self.shared.settings.rejection_timeout)).await;
                Err(AcceptError::Rejected(rejected))
            }
        }
    }

    /// Performs the handshake with a client whose address may be known.
    async fn open<S>(
        &self,
        mut stream: S,
        since: Instant,
        address: Option<IpAddr>,
    ) -> Result<HandshakeEnd<S>, AcceptError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let settings = &self.shared.settings;
        let mut answer = None;
        let callback = AdmissionCallback { sockets: self, since, address, answer: &mut answer };
        // The handshake reads no byte behind the request, so its WebSocket, which has no buffers, can be replaced.
        let unbuffered = WebSocketConfig::default().read_buffer_size(0).write_buffer_size(0);
        let handshake = accept_hdr_async_with_config(&mut stream, callback, Some(unbuffered));
        // Boxed: otherwise it would take up space in the task's future for as long as the connection lasts.
        let until = saturating_add(since, settings.handshake_timeout);
        let opened = timeout_at(until, Box::pin(handshake)).await.map(|opened| opened.map(drop));
        match (opened, answer) {
            (Ok(Ok(())), Some(AdmissionAnswer::Admitted(permit, request, subprotocol))) => {
                let socket =
                    WebSocketStream::from_raw_socket(stream, Role::Server, Some(settings.websocket_config)).await;
                Ok(HandshakeEnd::Accepted(Accepted { socket: permit.wrap(socket), request, subprotocol }))
            }
            (Ok(Ok(())), Some(AdmissionAnswer::Close(rejected, slot))) => {
                Ok(HandshakeEnd::Closing(Closing { stream, rejected, slot }))
            }
            (_, Some(AdmissionAnswer::Rejected(rejected) | AdmissionAnswer::Close(rejected, _))) => {
                Err(AcceptError::Rejected(rejected))
            }
            (failed, admitted) => {
                // An admitted connection is counted as closed instead.
                if admitted.is_none() {
                    self.shared.counters.handshake_failed.increment();
                }
                Err(match failed {
                    Ok(Err(error)) => AcceptError::Handshake(Box::new(error)),
                    _ => AcceptError::TimedOut,
                })
            }
        }
    }

    /// Accepts connections and spawns the handler for each admitted WebSocket, until a [`drain`](Self::drain) is done.
    /// Connections that have not ended by then are aborted. Without a drain it never returns.
    ///
    /// At most [`max_handshakes`](super::SocketsBuilder::max_handshakes) handshakes are in progress at a time, and
    /// connections that hold one without using it make room for newer ones. A handler that panics ends only its own
    /// connection. `TCP_NODELAY` is set.
    ///
    /// Dropping the future aborts all connections.
    ///
    /// # Panics
    /// If called outside of a tokio runtime with I/O and time enabled.
    pub async fn serve<H, F>(&self, listener: TcpListener, handler: H)
    where
        H: Fn(Accepted<TcpStream>) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let handshakes = Arc::new(Handshakes::new(&self.shared.settings));
        let (mut tasks, mut next) = (JoinSet::new(), None);
        loop {
            tokio::select! {
                () = self.shared.registry.drained() => break,
                Some(_) = tasks.join_next() => {}
                (slot, stream) = self.next_handshake(&listener, &handshakes, &mut next) => {
                    let (sockets, handler) = (self.clone(), Arc::clone(&handler));
                    tasks.spawn(async move {
                        // Boxed, as in `accept`.
                        match Box::pin(sockets.handshake(slot, stream)).await {
                            Some(HandshakeEnd::Accepted(accepted)) => handler(accepted).await,
                            // It takes none of the handshakes.
                            Some(HandshakeEnd::Closing(closing)) => {
                                Box::pin(closing.finish(sockets.shared.settings.rejection_timeout)).await;
                            }
                            None => {}
                        }
                    });
                }
            }
        }
    }

    /// Waits for the next connection, and then for its slot. Cancel-safe: an accepted connection is kept in `next`.
    async fn next_handshake(
        &self,
        listener: &TcpListener,
        handshakes: &Arc<Handshakes>,
        next: &mut Option<(TcpStream, SocketAddr)>,
    ) -> (HandshakeSlot, TcpStream) {
        loop {
            let peer = match next {
                Some((_, peer)) => *peer,
                None => next.insert(next_stream(listener).await).1,
            };
            let slot = handshakes.enter(peer.ip()).await;
            match (slot, next.take()) {
                (Some(slot), Some((stream, _))) => return (slot, stream),
                // The connection is dropped.
                _ => self.shared.counters.peer_limit.increment(),
            }
        }
    }

    /// Performs the handshake of [`serve`](Self::serve). Counts the reason if there is no connection.
    async fn handshake(&self, slot: HandshakeSlot, stream: TcpStream) -> Option<HandshakeEnd<TcpStream>> {
        let (settings, counters) = (&self.shared.settings, &self.shared.counters);
        let until = saturating_add(slot.since(), settings.first_byte_timeout.min(settings.handshake_timeout));
        let stream = match slot.first_byte(stream, until).await {
            Ok(stream) => stream,
            Err(Silence::Evicted) => {
                counters.evicted.increment();
                return None;
            }
            Err(Silence::Ended) => {
                counters.handshake_failed.increment();
                return None;
            }
        };
        tokio::select! {
            biased;
            opened = self.open(stream, slot.since(), Some(slot.peer())) => opened.ok(),
            () = slot.evicted() => {
                counters.evicted.increment();
                None
            }
        }
    }
}

/// Waits for the next connection. Cancel-safe, as `accept` is.
async fn next_stream(listener: &TcpListener) -> (TcpStream, SocketAddr) {
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // The connection works without this option, too.
                let _ = stream.set_nodelay(true);
                return (stream, peer);
            }
            // This connection has already failed.
            Err(error) if is_peer_error(&error) => {}
            Err(_) => sleep(ACCEPT_ERROR_DELAY).await,
        }
    }
}

fn is_peer_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

impl<S> fmt::Debug for Accepted<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Without the query, which may contain a token.
        f.debug_struct("Accepted").field("path", &self.request.uri().path()).finish_non_exhaustive()
    }
}

/// Creates a listener with an explicit backlog.
///
/// The backlog is the maximum number of connections that the kernel holds until they are accepted. Waiting there costs
/// a client nothing but time. If it is full, Linux does not answer at all, and the client's kernel sends its SYN again
/// after 1, 3, 7, 15 … seconds. These times have no jitter and are the same for all clients, so clients that were
/// dropped together come back together, and no retry policy can change that. A rejection by the application is better,
/// because it tells the client when to come back. So choose a backlog as large as the expected reconnect storm, accept
/// quickly, and reject above TCP.
///
/// - `std` and tokio use 128 or 1,024 by default. Many clients that reconnect within one round trip exceed that.
/// - The kernel silently caps the backlog at `net.core.somaxconn`, 4,096 by default since Linux 5.4. The queue of
///   half-open connections is bounded by the smaller of both and by `net.ipv4.tcp_max_syn_backlog`.
/// - `ss -ltn` shows the limit as `Send-Q` and the current length as `Recv-Q`.
/// - `nstat -az TcpExtListenOverflows TcpExtListenDrops` counts connections dropped by a full backlog; on the client
///   side, `nstat -az TcpRetransSegs TcpExtTCPSynRetrans` counts the retransmissions. These counters are per network
///   namespace. On a healthy server they do not grow.
///
/// Sets `SO_REUSEADDR`, so that the address can be used again immediately after a restart.
///
/// # Errors
/// Errors of `socket`, `bind` and `listen`, most often an address in use.
///
/// # Panics
/// If called outside of a tokio runtime with I/O enabled.
pub fn listen(address: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    // On Windows this option would let two servers listen on the same address.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(backlog)
}
