use core::fmt;
use core::time::Duration;

use http::{HeaderMap, Response, StatusCode};
use stagger::admission::Admit;
use stagger_http::admission::{set_rejection_headers, set_retry_after};

/// Why an upgrade was not let in, and when its client should come back.
///
/// As an answer it has the status 503, an empty body, and `Retry-After`; an appointment also has
/// [`stagger-reservation`](stagger_http::header::RESERVATION), any other wait `retry-after-ms`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// More come than the admission takes: an appointment, or, if all of those are given, a wait.
    Rate(Admit),
    /// There is no place for another connection: so long stays away who came.
    Connections(Duration),
    /// The server is on its way out: so long, until the next one is there and has taken those who were told before.
    Draining(Duration),
}

impl Refusal {
    /// As a label: `rate`, `connections` or `draining`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Rate(_) => "rate",
            Self::Connections(_) => "connections",
            Self::Draining(_) => "draining",
        }
    }

    /// When to come back, into the headers of an answer.
    pub fn tell(&self, headers: &mut HeaderMap) {
        match *self {
            Self::Rate(answer) => set_rejection_headers(answer, headers),
            Self::Connections(wait) | Self::Draining(wait) => set_retry_after(wait, headers),
        }
    }

    /// The answer.
    #[must_use]
    pub fn response<B: Default>(&self) -> Response<B> {
        let mut response = Response::new(B::default());
        *response.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
        self.tell(response.headers_mut());
        response
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rate(Admit::At(appointment)) => {
                write!(f, "not let in yet: an appointment in {:?}", appointment.after)
            }
            Self::Rate(Admit::Full(wait)) => write!(f, "not let in: no appointment within {wait:?}"),
            Self::Rate(_) => f.write_str("not let in yet"),
            Self::Connections(wait) => write!(f, "not let in: no place is free; again after {wait:?}"),
            Self::Draining(wait) => write!(f, "not let in: the server is draining; again after {wait:?}"),
        }
    }
}

impl core::error::Error for Refusal {}
