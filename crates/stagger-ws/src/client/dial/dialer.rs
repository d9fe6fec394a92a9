use core::time::Duration;
use std::sync::Arc;

use http::header::{HOST, ORIGIN, USER_AGENT};
use http::{Request, Response, Uri};
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::connector::{AnyConnector, Io};
use super::request::{ConnectAttempt, RequestProvider, redirect_target, with_upgrade_headers};
use super::reservation::HeldReservation;
use crate::client::failure::connection_error::ConnectionError;
use crate::client::telemetry;

/// A WebSocket after the handshake.
pub(in crate::client) type WebSocket = WebSocketStream<Box<dyn Io>>;

/// Opens connections. Holds the settings that all attempts share.
#[derive(Clone)]
pub(in crate::client) struct Dialer {
    pub(in crate::client) provider: RequestProvider,
    pub(in crate::client) connector: Arc<dyn AnyConnector>,
    pub(in crate::client) socket: WebSocketConfig,
    pub(in crate::client) connect_timeout: Duration,
    pub(in crate::client) max_redirects: u32,
}

impl Dialer {
    /// Makes one attempt, from the request to the end of the handshake.
    pub(in crate::client) async fn connect(
        self: Arc<Self>,
        attempt: ConnectAttempt,
        reservation: Arc<HeldReservation>,
    ) -> Result<(WebSocket, Response<()>), ConnectionError> {
        let after = self.connect_timeout;
        timeout(after, self.connect_following_redirects(attempt, &reservation))
            .await
            .unwrap_or(Err(ConnectionError::ConnectTimeout { after }))
    }

    async fn connect_following_redirects(
        &self,
        attempt: ConnectAttempt,
        reservation: &HeldReservation,
    ) -> Result<(WebSocket, Response<()>), ConnectionError> {
        let mut request =
            (self.provider)(attempt).await.map_err(|error| match error.downcast::<ConnectionError>() {
                Ok(cause) => *cause,
                Err(error) => ConnectionError::Request(Arc::from(error)),
            })?;
        let mut redirects = 0;
        loop {
            telemetry::record_host(request.uri());
            reservation.present(&mut request);
            let rejected = match self.upgrade(request.clone()).await {
                Err(ConnectionError::Rejected(rejected)) if rejected.status().is_redirection() => rejected,
                done => return done,
            };
            let to = rejected.location().and_then(|to| redirect_target(request.uri(), to));
            match to {
                Some(to) if redirects < self.max_redirects => redirect_to(&mut request, to),
                _ => return Err(ConnectionError::Rejected(rejected)),
            }
            redirects += 1;
        }
    }

    async fn upgrade(&self, request: Request<()>) -> Result<(WebSocket, Response<()>), ConnectionError> {
        let request = with_upgrade_headers(request)?;
        let io = self.connector.connect_any(request.uri().clone()).await.map_err(ConnectionError::from_io)?;
        let (socket, response) = client_async_with_config(request, io, Some(self.socket))
            .await
            .map_err(ConnectionError::from_tungstenite)?;
        let mut response = response.map(drop);
        // Cloned without spare capacity: the headers are kept as long as the connection.
        let headers = response.headers().clone();
        *response.headers_mut() = headers;
        Ok((socket, response))
    }
}

/// Points a request to another URI. If the origin changes, drops all headers in which there may be credentials: any header
/// of the caller's, and the subprotocol, too.
fn redirect_to(request: &mut Request<()>, to: Uri) {
    request.headers_mut().remove(HOST);
    if origin(request.uri()) != origin(&to) {
        let all = core::mem::take(request.headers_mut());
        let harmless =
            [ORIGIN, USER_AGENT].into_iter().filter_map(|name| all.get(&name).map(|value| (name, value.clone())));
        request.headers_mut().extend(harmless);
    }
    *request.uri_mut() = to;
}

/// Returns the scheme, the host in lower case and the port of a WebSocket URI.
pub(super) fn origin(uri: &Uri) -> (Option<&str>, Option<String>, u16) {
    let scheme = uri.scheme_str();
    let port = uri.port_u16().unwrap_or(if scheme == Some("wss") { 443 } else { 80 });
    (scheme, uri.host().map(str::to_ascii_lowercase), port)
}
