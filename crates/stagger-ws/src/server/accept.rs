use core::fmt;
use core::time::Duration;
use std::io;
use std::sync::Arc;

use http::{HeaderValue, Request, header};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};
use tokio_tungstenite::tungstenite;
use tokio_tungstenite::tungstenite::handshake::server::{Callback, ErrorResponse, Response};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async_with_config};

use super::{ConnectionPermit, Socket, Sockets, UpgradeRejected};

/// After an error of `accept` that is ours, like no more descriptors: the next one would fail, too.
const ACCEPT_ERROR_DELAY: Duration = Duration::from_millis(100);

/// A WebSocket that was let in.
#[non_exhaustive]
pub struct Accepted<S> {
    /// It, taken care of.
    pub socket: Socket<WebSocketStream<S>>,
    /// What the client asked for: path, query, headers.
    pub request: Request<()>,
}

/// Why there is no WebSocket.
#[derive(Debug)]
#[non_exhaustive]
pub enum AcceptError {
    /// It was not let in, and has been told so.
    Rejected(UpgradeRejected),
    /// It was no request for an upgrade, or the connection failed.
    Handshake(Box<tungstenite::Error>),
    /// The request was not complete within the time for it, or the answer not taken.
    TimedOut,
}

impl fmt::Display for AcceptError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected(rejected) => rejected.fmt(f),
            Self::Handshake(error) => write!(f, "the handshake failed: {error}"),
            Self::TimedOut => f.write_str("the handshake took too long"),
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

/// Asks the admission when the request is there; before that there is nothing of the connection but the request.
struct AdmissionCallback<'a> {
    sockets: &'a Sockets,
    since: Instant,
    answer: &'a mut Option<Result<(ConnectionPermit, Request<()>), UpgradeRejected>>,
}

impl Callback for AdmissionCallback<'_> {
    fn on_request(self, request: &Request<()>, response: Response) -> Result<Response, ErrorResponse> {
        match self.sockets.admit_since(request.headers(), self.since) {
            Ok(permit) => {
                *self.answer = Some(Ok((permit, request.clone())));
                Ok(response)
            }
            Err(rejected) => {
                *self.answer = Some(Err(rejected));
                let mut response: ErrorResponse = rejected.response();
                response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from_static("0"));
                response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
                Err(response)
            }
        }
    }
}

impl Sockets {
    /// The handshake on a stream that has just been accepted, in which the client is let in or refused: with the status 503
    /// and when to come back, before anything is made for a connection.
    ///
    /// Cancel-safe in that a place that was taken is free again.
    ///
    /// # Errors
    /// [`AcceptError`]: not let in, no upgrade, or not within
    /// [`handshake_timeout`](super::SocketsBuilder::handshake_timeout). The stream is closed, and all of it is counted.
    ///
    /// # Panics
    /// Outside of a runtime of tokio with time.
    pub async fn accept<S>(&self, stream: S) -> Result<Accepted<S>, AcceptError>
    where
        S: AsyncRead + AsyncWrite + Unpin,
    {
        let settings = &self.shared.settings;
        let mut answer = None;
        let callback = AdmissionCallback { sockets: self, since: Instant::now(), answer: &mut answer };
        let handshake = accept_hdr_async_with_config(stream, callback, Some(settings.websocket_config));
        // Not a part of the task's future: it would take its place there for as long as the connection lasts.
        let opened = timeout(settings.handshake_timeout, Box::pin(handshake)).await;
        match (opened, answer) {
            (Ok(Ok(socket)), Some(Ok((permit, request)))) => Ok(Accepted { socket: permit.wrap(socket), request }),
            (_, Some(Err(rejected))) => Err(AcceptError::Rejected(rejected)),
            (failed, admitted) => {
                // Who was let in is counted among those that are closed.
                if admitted.is_none() {
                    self.shared.counters.handshake_failed();
                }
                Err(match failed {
                    Ok(Err(error)) => AcceptError::Handshake(Box::new(error)),
                    _ => AcceptError::TimedOut,
                })
            }
        }
    }

    /// Accepts whoever comes, and runs the handler for each WebSocket that was let in, as a task of its own, until a
    /// [`drain`](Self::drain) is done; what has not ended by then is aborted. Without a drain it goes on for ever.
    ///
    /// At most [`handshakes`](super::SocketsBuilder::max_handshakes) are underway at a time. A handler that panics ends its own
    /// connection and no other. `TCP_NODELAY` is set.
    ///
    /// Dropping the future aborts all connections.
    ///
    /// # Panics
    /// Outside of a runtime of tokio with I/O and time.
    pub async fn serve<H, F>(&self, listener: TcpListener, handler: H)
    where
        H: Fn(Accepted<TcpStream>) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let handler = Arc::new(handler);
        let handshakes = Arc::new(Semaphore::new(self.shared.settings.max_handshakes.min(Semaphore::MAX_PERMITS)));
        let mut tasks = JoinSet::new();
        loop {
            tokio::select! {
                () = self.shared.registry.drained() => break,
                Some(_) = tasks.join_next() => {}
                (permit, stream) = next_stream(&listener, &handshakes) => {
                    let (sockets, handler) = (self.clone(), Arc::clone(&handler));
                    tasks.spawn(async move {
                        let accepted = sockets.accept(stream).await;
                        drop(permit);
                        if let Ok(accepted) = accepted {
                            handler(accepted).await;
                        }
                    });
                }
            }
        }
    }
}

/// The next connection, when there is room for its handshake. Cancel-safe, as `accept` is.
async fn next_stream(listener: &TcpListener, handshakes: &Arc<Semaphore>) -> (Option<OwnedSemaphorePermit>, TcpStream) {
    // Nobody closes it, so there is always a permit in the end.
    let permit = Arc::clone(handshakes).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Without it a connection works, too.
                let _ = stream.set_nodelay(true);
                return (permit, stream);
            }
            // This one has gone already.
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
        // Without the query, which may have a token in it.
        f.debug_struct("Accepted").field("path", &self.request.uri().path()).finish_non_exhaustive()
    }
}
