use core::fmt;
use core::time::Duration;

use http::{HeaderMap, Response, StatusCode};
use stagger::admission::Admit;
use stagger_http::admission::{set_rejection_headers, set_retry_after};

/// The reason why an upgrade was rejected, and when its client should come back.
///
/// The response has the status 503, an empty body, and `Retry-After`. A reservation also has
/// [`stagger-reservation`](stagger_http::header::RESERVATION), any other wait `retry-after-ms`.
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
