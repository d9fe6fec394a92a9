use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use std::io;

use axum::extract::ws::{CloseFrame, Message, WebSocket, WebSocketUpgrade};
use axum::extract::{ConnectInfo, FromRef, FromRequestParts};
use axum::response::{IntoResponse, Response};
use http::HeaderValue;
use http::request::Parts;
use tokio::time::timeout;

use super::closing::{ClosingSlot, MAX_READ};
use super::connections::ConnectionPermit;
use super::rejection::UpgradeRejected;
use super::socket::{NO_CODE, Socket, SocketMessage};
use super::sockets::Sockets;
use super::subprotocol::{header_value, protocol_for_close, protocol_for_token, select};

impl SocketMessage for Message {
    type Error = axum::Error;

    fn ping() -> Self {
        Self::Ping(axum::body::Bytes::new())
    }

    fn close(code: u16, reason: String) -> Self {
        Self::Close(Some(CloseFrame { code, reason: reason.into() }))
    }

    fn close_code(&self) -> Option<u16> {
        match self {
            Self::Close(frame) => Some(frame.as_ref().map_or(NO_CODE, |frame| frame.code)),
            _ => None,
        }
    }

    fn io_error(error: io::Error) -> axum::Error {
        axum::Error::new(error)
    }
}

/// Admits or rejects the connection. The router's state must be [`Sockets`], or provide it by `FromRef`.
///
/// Place it after [`WebSocketUpgrade`](axum::extract::ws::WebSocketUpgrade) in the handler's arguments, so that a
/// request that is not an upgrade fails before it takes a slot.
///
/// A client is always rejected by a response. [`AdmittedUpgrade`] can reject it by a close frame, too.
impl<S: Sync> FromRequestParts<S> for ConnectionPermit
where
    Sockets: FromRef<S>,
{
    type Rejection = UpgradeRejected;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, UpgradeRejected> {
        Sockets::from_ref(state).admit_with_uri(&parts.uri, &parts.headers)
    }
}

impl IntoResponse for UpgradeRejected {
    fn into_response(self) -> Response {
        self.response()
    }
}

/// An upgrade request whose client is admitted: [`WebSocketUpgrade`] and [`ConnectionPermit`] in one extractor.
///
/// It rejects as [`SocketsBuilder::reject_by`](super::SocketsBuilder::reject_by) says, so browsers can be told when to
/// come back: by a response, or by accepting the WebSocket and closing it. The router's state must be [`Sockets`], or
/// provide it by `FromRef`.
///
/// ```
/// use axum::{Router, response::Response, routing::any};
/// use futures_util::{SinkExt, StreamExt};
/// use stagger_ws::server::{AdmittedUpgrade, Sockets};
///
/// async fn echo(upgrade: AdmittedUpgrade) -> Response {
///     upgrade.on_upgrade(async |mut socket| {
///         while let Some(Ok(message)) = socket.next().await {
///             _ = socket.send(message).await;
///         }
///     })
/// }
///
/// let app: Router<Sockets> = Router::new().route("/ws", any(echo));
/// ```
pub struct AdmittedUpgrade {
    upgrade: WebSocketUpgrade,
    permit: ConnectionPermit,
    /// Selected if the application selects no subprotocol.
    protocol: Option<HeaderValue>,
}

impl AdmittedUpgrade {
    /// Changes the upgrade: its subprotocols, its limits and its buffers.
    #[must_use]
    pub fn map(self, change: impl FnOnce(WebSocketUpgrade) -> WebSocketUpgrade) -> Self {
        Self { upgrade: change(self.upgrade), ..self }
    }

    /// Creates the response, and calls the handler with the WebSocket once it is open.
    pub fn on_upgrade<H, F>(self, handler: H) -> Response
    where
        H: FnOnce(Socket<WebSocket>) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let Self { mut upgrade, permit, protocol } = self;
        if let Some(protocol) = protocol {
            if upgrade.selected_protocol().is_none() {
                upgrade.set_selected_protocol(protocol);
            }
        }
        upgrade.on_upgrade(move |socket| handler(permit.wrap(socket)))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for AdmittedUpgrade
where
    Sockets: FromRef<S>,
{
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Response> {
        let upgrade = WebSocketUpgrade::from_request_parts(parts, state).await;
        let upgrade = upgrade.map_err(IntoResponse::into_response)?;
        let sockets = Sockets::from_ref(state);
        let selected = header_value(select(&sockets.shared.settings.subprotocols, &parts.headers).as_ref());
        match sockets.admit_with_uri(&parts.uri, &parts.headers) {
            Ok(permit) => {
                let protocol = selected.or_else(|| protocol_for_token(&parts.headers));
                Ok(Self { upgrade, permit, protocol })
            }
            Err(rejected) => Err(match sockets.try_close(&parts.uri, &parts.headers, address(parts)) {
                Some(slot) => {
                    let limit = sockets.shared.settings.rejection_timeout;
                    let protocol = selected.or_else(|| protocol_for_close(&parts.headers));
                    accept_and_close(upgrade, protocol, rejected, (slot, limit))
                }
                None => rejected.into_response(),
            }),
        }
    }
}

/// Returns the address of the client, if the router is served with connect info.
fn address(parts: &Parts) -> Option<IpAddr> {
    parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|ConnectInfo(address)| address.ip())
}

/// Creates the response that accepts the WebSocket of a rejected client. Its task closes it within the limit.
fn accept_and_close(
    mut upgrade: WebSocketUpgrade,
    protocol: Option<HeaderValue>,
    rejected: UpgradeRejected,
    (slot, limit): (ClosingSlot, Duration),
) -> Response {
    if let Some(protocol) = protocol {
        upgrade.set_selected_protocol(protocol);
    }
    // At most one message is in memory at a time, and it is dropped.
    let upgrade =
        upgrade.read_buffer_size(512).write_buffer_size(0).max_message_size(MAX_READ).max_frame_size(MAX_READ);
    upgrade.on_upgrade(async move |mut socket| {
        let close = async {
            // An error means that the client has left.
            let (mut is_open, mut read) = (socket.send(rejected.to_message()).await.is_ok(), 0);
            while is_open && read < MAX_READ {
                // The shortest frame of a client has 6 bytes.
                match socket.recv().await {
                    Some(Ok(message)) => read += 6 + message.into_data().len(),
                    _ => is_open = false,
                }
            }
        };
        let _ = timeout(limit, close).await;
        drop((socket, slot));
    })
}

impl fmt::Debug for AdmittedUpgrade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AdmittedUpgrade").field("permit", &self.permit).finish_non_exhaustive()
    }
}
