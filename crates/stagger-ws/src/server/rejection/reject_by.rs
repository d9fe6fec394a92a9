use core::fmt;
use std::sync::Arc;

use http::{HeaderMap, Uri, header};

use super::returned_token::offered_protocols;

/// How a client is told that its upgrade is rejected.
///
/// A browser does not show a rejected upgrade to its page: status and headers become close code 1006. It does show the
/// code and the reason of a close frame. So [`Close`](Self::Close) accepts the WebSocket and closes it with code 1013 and
/// the time to come back as JSON; [`UpgradeRejected::to_reason`](crate::server::UpgradeRejected::to_reason) documents it.
///
/// To the page, the connection was open for a moment. A client that resets its backoff on `open` and ignores the reason
/// returns sooner than after a 503, and what it sent on `open` is lost. So `Close` is not the default: use it for pages
/// that read the reason, and not for clients that can read a response, such as this crate's, whose outbox is
/// sent when a connection opens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RejectBy {
    /// A response with the status 503, `Retry-After` and the reservation header.
    Response,
    /// A response with the status 101, then a close frame with code 1013.
    Close,
}

impl RejectBy {
    /// Returns [`Close`](Self::Close) for requests with a header `Origin` or `Sec-Fetch-Mode: websocket`, which browsers
    /// set and pages cannot change, and [`Response`](Self::Response) for all others. For
    /// [`SocketsBuilder::reject_by`](crate::server::SocketsBuilder::reject_by).
    ///
    /// Every browser sends `Origin` (RFC 6455, section 4.1); so do some other clients.
    #[must_use]
    pub fn browser(_uri: &Uri, headers: &HeaderMap) -> Self {
        let fetched = headers.get("sec-fetch-mode").is_some_and(|mode| mode == "websocket");
        Self::close_if(fetched || headers.contains_key(header::ORIGIN))
    }

    /// Returns a rule for [`SocketsBuilder::reject_by`](crate::server::SocketsBuilder::reject_by): [`Close`](Self::Close)
    /// for requests that offer this subprotocol, so that each client chooses.
    ///
    /// `protocol` is compared byte by byte with each protocol that the client offers.
    pub fn subprotocol(protocol: &str) -> impl Fn(&Uri, &HeaderMap) -> Self + Send + Sync + 'static {
        let protocol = protocol.to_owned();
        move |_, headers| Self::close_if(offered_protocols(headers).any(|offered| offered == protocol))
    }

    const fn close_if(is_close: bool) -> Self {
        if is_close { Self::Close } else { Self::Response }
    }
}

/// The rule of a server.
#[derive(Clone)]
pub(in crate::server) struct RejectionRule(Arc<dyn Fn(&Uri, &HeaderMap) -> RejectBy + Send + Sync>);

impl RejectionRule {
    pub(in crate::server) fn new(choose: impl Fn(&Uri, &HeaderMap) -> RejectBy + Send + Sync + 'static) -> Self {
        Self(Arc::new(choose))
    }

    pub(in crate::server) fn choose(&self, uri: &Uri, headers: &HeaderMap) -> RejectBy {
        (self.0)(uri, headers)
    }
}

impl fmt::Debug for RejectionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RejectionRule")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        fields.iter().map(|&(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn a_browser_is_known_by_its_origin_or_its_fetch_metadata() {
        for (fields, want) in [
            (&[("origin", "https://chat.example")][..], RejectBy::Close),
            // A page in a sandbox.
            (&[("origin", "null")], RejectBy::Close),
            (&[("sec-fetch-mode", "websocket")], RejectBy::Close),
            (&[("sec-fetch-mode", "cors")], RejectBy::Response),
            (&[("user-agent", "Mozilla/5.0")], RejectBy::Response),
            (&[], RejectBy::Response),
        ] {
            assert_eq!(RejectBy::browser(&Uri::from_static("/"), &headers(fields)), want, "{fields:?}");
        }
    }

    #[test]
    fn a_subprotocol_is_found_among_all_that_are_offered_and_only_whole() {
        let rule = RejectBy::subprotocol("close");
        for (offered, want) in
            [("chat, close", RejectBy::Close), ("close", RejectBy::Close), ("closed", RejectBy::Response)]
        {
            let headers = headers(&[("sec-websocket-protocol", offered)]);
            assert_eq!(rule(&Uri::from_static("/"), &headers), want, "{offered}");
        }
        let twice = headers(&[("sec-websocket-protocol", "chat"), ("sec-websocket-protocol", "close")]);
        assert_eq!(rule(&Uri::from_static("/"), &twice), RejectBy::Close);
    }
}
