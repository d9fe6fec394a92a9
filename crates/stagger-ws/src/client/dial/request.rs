use core::error::Error;
use core::pin::Pin;
use std::sync::Arc;

use http::header::{CONNECTION, HOST, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use http::uri::Uri;
use http::{HeaderValue, Request};
use tokio_tungstenite::tungstenite::handshake::client::generate_key;

use crate::client::failure::connection_error::ConnectionError;

/// Any error; the error type of a request provider.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The attempt that a request is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectAttempt {
    pub(in crate::client) number: u32,
    pub(in crate::client) since_open: u32,
    pub(in crate::client) auth_rejection: Option<u16>,
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

pub(in crate::client) type RequestFuture = Pin<Box<dyn Future<Output = Result<Request<()>, BoxError>> + Send>>;

/// Makes the request of every attempt.
pub(in crate::client) type RequestProvider = Arc<dyn Fn(ConnectAttempt) -> RequestFuture + Send + Sync>;

/// Adds the headers of the WebSocket handshake. Keeps a `Host` header that the provider has set.
pub(in crate::client) fn with_upgrade_headers(mut request: Request<()>) -> Result<Request<()>, ConnectionError> {
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

/// Returns the value of the `Host` header, without user information.
fn host_header(uri: &Uri) -> Result<HeaderValue, ConnectionError> {
    const NO_HOST: ConnectionError = ConnectionError::InvalidRequest("the URL has no host");
    let authority = uri.authority().ok_or(NO_HOST)?.as_str();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    HeaderValue::try_from(host).map_err(|_| NO_HOST)
}

/// Resolves a redirect. Returns `None` if it must not be followed: there is no host, or it would downgrade `wss` to
/// `ws`.
pub(in crate::client) fn redirect_target(from: &Uri, to: &str) -> Option<Uri> {
    let scheme = from.scheme_str()?;
    let to: Uri = if to.starts_with('/') && !to.starts_with("//") {
        format!("{scheme}://{}{to}", from.authority()?).parse().ok()?
    } else {
        let (named, rest) = to.split_once("://")?;
        let named = match named {
            "ws" | "http" => "ws",
            "wss" | "https" => "wss",
            _ => return None,
        };
        format!("{named}://{rest}").parse().ok()?
    };
    (to.host().is_some() && (to.scheme_str() == Some("wss") || scheme != "wss")).then_some(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_never_downgrade_from_wss_to_ws() {
        for (from, to, want) in [
            ("ws://a/x", "wss://b/y?q", Some("wss://b/y?q")),
            ("ws://a/x", "http://b/y", Some("ws://b/y")),
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
