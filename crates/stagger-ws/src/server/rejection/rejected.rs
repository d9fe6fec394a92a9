use core::fmt;
use core::time::Duration;

use http::{HeaderMap, Response, StatusCode};
use stagger::admission::Admit;
use stagger_http::admission::{set_rejection_headers, set_retry_after};

use crate::advice::ReconnectAdvice;
use crate::server::message::SocketMessage;

/// The close code "Try Again Later" of the IANA registry.
const TRY_AGAIN_LATER: u16 = 1013;
/// The least spread of a close without a reservation.
const MIN_SPREAD: Duration = Duration::from_secs(1);

/// The reason why an upgrade was rejected, and when its client should come back.
///
/// The response has the status 503, an empty body, and `Retry-After`. A reservation also has
/// [`stagger-reservation`](stagger_http::header::RESERVATION), any other wait `retry-after-ms`. A client that is rejected
/// [by a close](crate::server::RejectBy::Close) gets a close frame with code 1013 and [`to_reason`](Self::to_reason).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpgradeRejected {
    /// The admission's rate is exceeded: a reservation, or a wait if all reservations are taken.
    RateLimited(Admit),
    /// The connection limit is reached: how long the client should wait.
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
    /// A reservation is `{"retry_after_ms":1520,"reservation":"…"}`, where `reservation` is its token. The client returns
    /// after exactly that time and presents the token: in a subprotocol
    /// ([`RESERVATION_PROTOCOL`](crate::server::RESERVATION_PROTOCOL)), in the query
    /// ([`RESERVATION_PARAMETER`](crate::server::RESERVATION_PARAMETER)), or in the header `stagger-reservation-token`.
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
