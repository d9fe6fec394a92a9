use core::error::Error;
use core::pin::Pin;
use std::sync::Arc;

use http::header::{CONNECTION, HOST, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use http::uri::Uri;
use http::{HeaderValue, Request};
use tokio_tungstenite::tungstenite::handshake::client::generate_key;

use super::ConnectionError;

/// An error of any kind, as the provider of requests gives it.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// The attempt that a request is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectAttempt {
    pub(super) number: u32,
    pub(super) auth_rejection: Option<u16>,
}

impl ConnectAttempt {
    /// Its number, from 1; it starts again after a connection that was healthy.
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }

    /// How the credentials of the attempt before were refused, if they were: the status (401, 403) or the close code
    /// (3000, 3003, and those that the [codes](crate::codes) name). Get fresh ones then.
    #[must_use]
    pub const fn auth_rejection(&self) -> Option<u16> {
        self.auth_rejection
    }
}

pub(super) type RequestFuture = Pin<Box<dyn Future<Output = Result<Request<()>, BoxError>> + Send>>;

/// Makes the request of every attempt.
pub(super) type RequestProvider = Arc<dyn Fn(ConnectAttempt) -> RequestFuture + Send + Sync>;

/// Fills in what the protocol wants and the provider did not say.
pub(super) fn with_upgrade_headers(mut request: Request<()>) -> Result<Request<()>, ConnectionError> {
    if !matches!(request.uri().scheme_str(), Some("ws" | "wss")) {
        return Err(ConnectionError::InvalidRequest("the address is neither ws nor wss"));
    }
    let host = host_header(request.uri())?;
    let headers = request.headers_mut();
    headers.entry(HOST).or_insert(host);
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    let key =
        HeaderValue::try_from(generate_key()).map_err(|_| ConnectionError::InvalidRequest("the key cannot be sent"))?;
    headers.insert(SEC_WEBSOCKET_KEY, key);
    Ok(request)
}

/// What goes into `Host`: never a user's name or password.
fn host_header(uri: &Uri) -> Result<HeaderValue, ConnectionError> {
    const NO_HOST: ConnectionError = ConnectionError::InvalidRequest("the address has no host");
    let authority = uri.authority().ok_or(NO_HOST)?.as_str();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    HeaderValue::try_from(host).map_err(|_| NO_HOST)
}

/// The address that a redirection points to, if it may be followed: on a host, and not from `wss` down to `ws`.
pub(super) fn redirect_target(from: &Uri, to: &str) -> Option<Uri> {
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
    fn a_redirection_is_followed_upwards_only() {
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
    fn what_is_filled_in_names_the_host_and_no_user() {
        let request = Request::get("ws://me:secret@example.test:81/feed?token=t").body(()).unwrap();
        let request = with_upgrade_headers(request).unwrap();
        assert_eq!(request.headers()[HOST], "example.test:81");
        assert_eq!(request.headers()[SEC_WEBSOCKET_VERSION], "13");
        assert!(with_upgrade_headers(Request::get("/feed").body(()).unwrap()).is_err());
    }
}
