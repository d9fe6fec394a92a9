//! Rejected upgrades: the reason, and how the client is told.

use core::fmt;
use core::time::Duration;
use std::sync::Arc;

use http::{HeaderMap, Response, StatusCode, Uri, header};
use stagger::admission::Admit;
use stagger_http::admission::{set_rejection_headers, set_retry_after};

use super::socket::SocketMessage;
use super::subprotocol::offered_protocols;
use crate::advice::ReconnectAdvice;

/// The close code "Try Again Later" of the IANA registry.
const TRY_AGAIN_LATER: u16 = 1013;
/// The least spread of a close without a reservation.
const MIN_SPREAD: Duration = Duration::from_secs(1);

/// The reason why an upgrade was rejected, and when its client should come back.
///
/// The response has the status 503, an empty body, and `Retry-After`. A reservation also has
/// [`stagger-reservation`](stagger_http::header::RESERVATION), any other wait `retry-after-ms`. A client that is
/// rejected [by a close](super::RejectBy::Close) gets a close frame with code 1013 and [`to_reason`](Self::to_reason).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpgradeRejected {
    /// The admission's rate is exceeded: a reservation, or a wait if all reservations are taken.
    RateLimited(Admit),
    /// The connection limit is reached: how long the client should wait.
    // Without a reservation, because the end of a connection cannot be predicted. A client with a reservation a few
    // milliseconds ahead would return in vain, again and again.
    AtCapacity(Duration),
    /// The server is draining: how long the client should wait, until the next server is up and has taken the clients
    /// that were closed before.
    Draining(Duration),
}

impl UpgradeRejected {
    /// Returns a label for metrics: `rate_limited`, `at_capacity` or `draining`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::RateLimited(_) => "rate_limited",
            Self::AtCapacity(_) => "at_capacity",
            Self::Draining(_) => "draining",
        }
    }

    /// Writes the time to come back into the headers of a response.
    pub fn write_headers(&self, headers: &mut HeaderMap) {
        match *self {
            Self::RateLimited(answer) => set_rejection_headers(answer, headers),
            Self::AtCapacity(wait) | Self::Draining(wait) => set_retry_after(wait, headers),
        }
    }

    /// Creates the response.
    #[must_use]
    pub fn response<B: Default>(&self) -> Response<B> {
        let mut response = Response::new(B::default());
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        self.write_headers(response.headers_mut());
        response
    }

    /// Creates the reason of a close frame with code 1013: JSON of at most 123 bytes, which is
    /// [`ReconnectAdvice`](crate::ReconnectAdvice). Rounds up to milliseconds.
    ///
    /// A reservation is `{"retry_after_ms":1520,"reservation":"…"}`, where `reservation` is its token. The client
    /// returns after exactly that time and presents the token: in a subprotocol
    /// ([`RESERVATION_PROTOCOL`](super::RESERVATION_PROTOCOL)), in the query
    /// ([`RESERVATION_PARAMETER`](super::RESERVATION_PARAMETER)), or in the header `stagger-reservation-token`.
    ///
    /// Any other wait is `{"retry_after_ms":8000,"spread_ms":4000}`: all clients are told the same, so each adds a draw
    /// from a spread, which is half of the wait and at least 1 s.
    #[must_use]
    pub fn to_reason(&self) -> String {
        match *self {
            Self::RateLimited(Admit::At(reservation)) => ReconnectAdvice::reason_of(&reservation),
            Self::RateLimited(Admit::Full(wait)) | Self::AtCapacity(wait) | Self::Draining(wait) => spread_beyond(wait),
            Self::RateLimited(_) => spread_beyond(Duration::ZERO),
        }
    }

    /// Creates the close frame: code 1013 and [`to_reason`](Self::to_reason). For servers that accept the WebSocket
    /// themselves; limit the number of these connections, and the time until their clients reply.
    #[must_use]
    pub fn to_message<M: SocketMessage>(&self) -> M {
        M::close(TRY_AGAIN_LATER, self.to_reason())
    }
}

fn spread_beyond(wait: Duration) -> String {
    ReconnectAdvice { retry_after: wait, spread: (wait / 2).max(MIN_SPREAD) }.to_reason()
}

impl fmt::Display for UpgradeRejected {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RateLimited(Admit::At(reservation)) => {
                write!(f, "upgrade rejected: rate limited; reservation in {:?}", reservation.after)
            }
            Self::RateLimited(Admit::Full(wait)) => {
                write!(f, "upgrade rejected: rate limited; no reservation available; retry after {wait:?}")
            }
            Self::RateLimited(_) => f.write_str("upgrade rejected: rate limited"),
            Self::AtCapacity(wait) => write!(f, "upgrade rejected: at capacity; retry after {wait:?}"),
            Self::Draining(wait) => write!(f, "upgrade rejected: server is draining; retry after {wait:?}"),
        }
    }
}

impl core::error::Error for UpgradeRejected {}

/// How a client is told that its upgrade is rejected.
///
/// A browser does not show a rejected upgrade to its page: status and headers become close code 1006. It does show the
/// code and the reason of a close frame. So [`Close`](Self::Close) accepts the WebSocket and closes it with code 1013
/// and the time to come back as JSON; [`UpgradeRejected::to_reason`](super::UpgradeRejected::to_reason) documents it.
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
    /// Returns [`Close`](Self::Close) for requests with a header `Origin` or `Sec-Fetch-Mode: websocket`, which
    /// browsers set and pages cannot change, and [`Response`](Self::Response) for all others. For
    /// [`SocketsBuilder::reject_by`](super::SocketsBuilder::reject_by).
    ///
    /// Every browser sends `Origin` (RFC 6455, section 4.1); so do some other clients.
    #[must_use]
    pub fn browser(_uri: &Uri, headers: &HeaderMap) -> Self {
        let fetched = headers.get("sec-fetch-mode").is_some_and(|mode| mode == "websocket");
        Self::close_if(fetched || headers.contains_key(header::ORIGIN))
    }

    /// Returns a rule for [`SocketsBuilder::reject_by`](super::SocketsBuilder::reject_by): [`Close`](Self::Close)
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
pub(super) struct RejectionRule(Arc<dyn Fn(&Uri, &HeaderMap) -> RejectBy + Send + Sync>);

impl RejectionRule {
    pub(super) fn new(choose: impl Fn(&Uri, &HeaderMap) -> RejectBy + Send + Sync + 'static) -> Self {
        Self(Arc::new(choose))
    }

    pub(super) fn choose(&self, uri: &Uri, headers: &HeaderMap) -> RejectBy {
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
