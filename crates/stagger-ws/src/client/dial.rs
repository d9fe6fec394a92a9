//! Opens connections: the request, redirects, and the handshake.

use core::error::Error;
use core::pin::Pin;
use core::time::Duration;
use std::sync::{Arc, Mutex};

use http::header::{CONNECTION, HOST, ORIGIN, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE, USER_AGENT};
use http::{HeaderValue, Request, Response, Uri};
use stagger::admission::ReservationToken;
use stagger_http::header::RESERVATION_TOKEN;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::{WebSocketStream, client_async_with_config};

use super::connector::{AnyConnector, Io};
use super::failure::ConnectionError;
use super::telemetry;
use crate::sync::lock;

/// A WebSocket after the handshake.
pub(super) type WebSocket = WebSocketStream<Box<dyn Io>>;

/// Opens connections. Holds the settings that all attempts share.
#[derive(Clone)]
pub(super) struct Dialer {
    pub(super) provider: RequestProvider,
    pub(super) connector: Arc<dyn AnyConnector>,
    pub(super) socket: WebSocketConfig,
    pub(super) connect_timeout: Duration,
    pub(super) max_redirects: u32,
}

impl Dialer {
    /// Makes one attempt, from the request to the end of the handshake.
    pub(super) async fn connect(
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
        *request.uri_mut() = with_lower_scheme(request.uri().clone());
        let mut redirects = 0;
        loop {
            telemetry::record_host(request.uri());
            reservation.present(&mut request);
            let rejected = match self.upgrade(request.clone()).await {
                Err(ConnectionError::Rejected(rejected)) if rejected.status().is_redirection() => rejected,
                done => return done,
            };
            let target = match rejected.location() {
                Some(to) if redirects < self.max_redirects => redirect_target(request.uri(), to),
                _ => None,
            };
            let Some(target) = target else { return Err(ConnectionError::Rejected(rejected)) };
            redirect_to(&mut request, target);
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

/// Points a request to another URI. If the origin changes, drops all headers in which there may be credentials: any
/// header of the caller's, and the subprotocol, too.
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

/// Any error; the error type of a request provider.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The attempt that a request is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectAttempt {
    pub(super) number: u32,
    pub(super) since_open: u32,
    pub(super) auth_rejection: Option<u16>,
}

impl ConnectAttempt {
    /// Returns the attempt number, from 1. The count restarts after a healthy connection.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// Returns the number of attempts since a connection was last open, from 1, however long it lasted.
    #[must_use]
    pub const fn since_open(&self) -> u32 {
        self.since_open
    }

    /// Returns how the previous attempt's credentials were rejected, if they were: the status (401, 403) or the close
    /// code (3000, 3003, or a code that [`CloseCodes`](crate::codes::CloseCodes) maps to reauthentication). If this is
    /// `Some`, get fresh credentials.
    #[must_use]
    pub const fn auth_rejection(&self) -> Option<u16> {
        self.auth_rejection
    }
}

type RequestFuture = Pin<Box<dyn Future<Output = Result<Request<()>, BoxError>> + Send>>;

/// Makes the request of every attempt.
pub(super) type RequestProvider = Arc<dyn Fn(ConnectAttempt) -> RequestFuture + Send + Sync>;

/// Adds the headers of the WebSocket handshake. Keeps a `Host` header that the provider has set.
fn with_upgrade_headers(mut request: Request<()>) -> Result<Request<()>, ConnectionError> {
    if !matches!(request.uri().scheme_str(), Some("ws" | "wss")) {
        return Err(ConnectionError::InvalidRequest("the scheme of the URL is neither ws nor wss"));
    }
    let host = host_header(request.uri())?;
    let headers = request.headers_mut();
    headers.entry(HOST).or_insert(host);
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    let key = HeaderValue::try_from(generate_key())
        .map_err(|_| ConnectionError::InvalidRequest("the handshake key cannot be sent"))?;
    headers.insert(SEC_WEBSOCKET_KEY, key);
    Ok(request)
}

/// Returns a URI with its scheme in lower case: `WSS` is the same as `wss` (RFC 3986 §3.1), and what is compared from
/// here on has only these.
fn with_lower_scheme(uri: Uri) -> Uri {
    let Some(scheme) = uri.scheme_str().map(str::to_ascii_lowercase) else { return uri };
    let mut parts = uri.clone().into_parts();
    parts.scheme = scheme.parse().ok();
    Uri::from_parts(parts).unwrap_or(uri)
}

/// Returns the value of the `Host` header, without user information.
fn host_header(uri: &Uri) -> Result<HeaderValue, ConnectionError> {
    const NO_HOST: ConnectionError = ConnectionError::InvalidRequest("the URL has no host");
    let authority = uri.authority().ok_or(NO_HOST)?.as_str();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    HeaderValue::try_from(host).map_err(|_| NO_HOST)
}

/// Resolves a redirect. Returns `None` if it must not be followed: there is no host, or it would downgrade `wss` to
/// `ws`.
fn redirect_target(from: &Uri, to: &str) -> Option<Uri> {
    let scheme = from.scheme_str()?;
    let to: Uri = if to.starts_with('/') && !to.starts_with("//") {
        format!("{scheme}://{}{to}", from.authority()?).parse().ok()?
    } else {
        let (named, rest) = to.split_once("://")?;
        let named = match &*named.to_ascii_lowercase() {
            "ws" | "http" => "ws",
            "wss" | "https" => "wss",
            _ => return None,
        };
        format!("{named}://{rest}").parse().ok()?
    };
    let is_downgrade = scheme == "wss" && to.scheme_str() != Some("wss");
    if to.host().is_none() || is_downgrade { None } else { Some(to) }
}

/// The reservation that the next attempt presents to the server that made it. A loop shares it with its attempts, of
/// which there is one at a time.
#[derive(Default)]
pub(super) struct HeldReservation(Mutex<State>);

#[derive(Default)]
struct State {
    /// Where the last request was sent.
    server: Option<Uri>,
    held: Option<(ReservationToken, Uri)>,
}

impl HeldReservation {
    /// Keeps the token that the server of the last request has given, in place of an earlier one.
    pub(super) fn keep(&self, token: Option<ReservationToken>) {
        let mut state = lock(&self.0);
        state.held = match (token, &state.server) {
            (Some(token), Some(server)) => Some((token, server.clone())),
            _ => None,
        };
    }

    /// Adds the token to a request to its server, once. A header of the request provider takes precedence.
    fn present(&self, request: &mut Request<()>) {
        let mut state = lock(&self.0);
        state.server = Some(request.uri().clone());
        let Some((token, _)) = state.held.take_if(|(_, server)| origin(server) == origin(request.uri())) else {
            return;
        };
        drop(state);
        if let Ok(mut value) = HeaderValue::try_from(token.to_string()) {
            value.set_sensitive(true);
            request.headers_mut().entry(RESERVATION_TOKEN).or_insert(value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scheme_in_upper_case_is_the_same() {
        for (uri, want) in [("WSS://a/x?y", "wss://a/x?y"), ("Ws://me@a:1/", "ws://me@a:1/")] {
            assert_eq!(with_lower_scheme(uri.parse().unwrap()).to_string(), want);
        }
        assert_eq!(with_lower_scheme(Uri::from_static("/x")), "/x");
    }

    #[test]
    fn redirects_never_downgrade_from_wss_to_ws() {
        for (from, to, want) in [
            ("ws://a/x", "wss://b/y?q", Some("wss://b/y?q")),
            ("ws://a/x", "http://b/y", Some("ws://b/y")),
            ("ws://a/x", "HTTPS://b/y", Some("wss://b/y")),
            ("wss://a:1/x", "/y", Some("wss://a:1/y")),
            ("wss://a/x", "https://b/y", Some("wss://b/y")),
            ("wss://a/x", "ws://a/x", None),
            ("wss://a/x", "http://a/x", None),
            ("ws://a/x", "ftp://a/x", None),
            ("ws://a/x", "//b/y", None),
        ] {
            let found = redirect_target(&from.parse().unwrap(), to).map(|uri| uri.to_string());
            assert_eq!(found.as_deref(), want, "{from} to {to}");
        }
    }

    #[test]
    fn the_host_header_does_not_contain_user_information() {
        let request = Request::get("ws://me:secret@example.test:81/feed?token=t").body(()).unwrap();
        let request = with_upgrade_headers(request).unwrap();
        assert_eq!(request.headers()[HOST], "example.test:81");
        assert_eq!(request.headers()[SEC_WEBSOCKET_VERSION], "13");
        assert!(with_upgrade_headers(Request::get("/feed").body(()).unwrap()).is_err());
    }
}
