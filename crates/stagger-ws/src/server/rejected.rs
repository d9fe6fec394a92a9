use core::fmt;
use core::time::Duration;

use http::{HeaderMap, Response, StatusCode};
use stagger::Admitted;
use stagger_http::admission::{refuse, retry_after};

/// Why an upgrade was not let in, and when its client should come back.
///
/// As an answer it has the status 503, an empty body, and `Retry-After`; an appointment also has
/// [`stagger-slot`](stagger_http::advice::SLOT), any other wait `retry-after-ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpgradeRejected {
    /// More come than the admission takes: an appointment, or, if all of those are given, a wait.
    RateLimited(Admitted),
    /// There is no place for another connection: so long stays away who came.
    AtCapacity(Duration),
    /// The server is on its way out: so long, until the next one is there and has taken those who were told before.
    Draining(Duration),
}

impl UpgradeRejected {
    /// As a label: `rate_limited`, `at_capacity` or `draining`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::RateLimited(_) => "rate_limited",
            Self::AtCapacity(_) => "at_capacity",
            Self::Draining(_) => "draining",
        }
    }

    /// When to come back, into the headers of an answer.
    pub fn write_headers(&self, headers: &mut HeaderMap) {
        match *self {
            Self::RateLimited(answer) => refuse(answer, headers),
            Self::AtCapacity(wait) | Self::Draining(wait) => retry_after(wait, headers),
        }
    }

    /// The answer.
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
            Self::RateLimited(Admitted::Later(appointment)) => {
                write!(f, "not let in yet: an appointment in {:?}", appointment.after)
            }
            Self::RateLimited(Admitted::Full(wait)) => write!(f, "not let in: no appointment within {wait:?}"),
            Self::RateLimited(_) => f.write_str("not let in yet"),
            Self::AtCapacity(wait) => write!(f, "not let in: no place is free; again after {wait:?}"),
            Self::Draining(wait) => write!(f, "not let in: the server is draining; again after {wait:?}"),
        }
    }
}

impl core::error::Error for UpgradeRejected {}
