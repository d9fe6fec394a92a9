use std::io;

use axum::extract::ws::{CloseFrame, Message};
use axum::extract::{FromRef, FromRequestParts};
use axum::response::{IntoResponse, Response};
use http::request::Parts;

use crate::server::connections::permit::ConnectionPermit;
use crate::server::message::{NO_CODE, SocketMessage};
use crate::server::rejected::UpgradeRejected;
use crate::server::sockets::Sockets;

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
impl<S: Sync> FromRequestParts<S> for ConnectionPermit
where
    Sockets: FromRef<S>,
{
    type Rejection = UpgradeRejected;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, UpgradeRejected> {
        Sockets::from_ref(state).admit(&parts.headers)
    }
}

impl IntoResponse for UpgradeRejected {
    fn into_response(self) -> Response {
        self.response()
    }
}
