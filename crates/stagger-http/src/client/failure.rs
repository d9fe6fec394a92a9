use core::fmt;

use http::StatusCode;

use super::body_replay::BodyReplay;
use crate::request::idempotency::Idempotency;

/// A response that counts as a failure, as listeners receive it from [`Event::error_as`](stagger::observe::Event::error_as).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StatusFailure {
    pub(super) status: StatusCode,
    pub(super) idempotency: Idempotency,
    pub(super) body: BodyReplay,
}

impl StatusFailure {
    /// Returns the status of the response.
    #[must_use]
    pub const fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns whether, and why, the request may be sent more than once.
    #[must_use]
    pub const fn idempotency(&self) -> Idempotency {
        self.idempotency
    }

    /// Returns whether the body of the request can be sent again. If it is a stream, exceeds the replay limit or has
    /// failed, the request is not retried whatever its idempotency.
    #[must_use]
    pub const fn is_body_replayable(&self) -> bool {
        matches!(self.body, BodyReplay::Possible)
    }
}

impl fmt::Display for StatusFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the server responded {}; ", self.status)?;
        match self.idempotency {
            _ if !self.is_body_replayable() => f.write_str(
                "the request cannot be retried: its body is a stream, exceeds the replay limit or has failed",
            ),
            Idempotency::OnlyIfUnsent => write!(f, "the request is not safe to retry: {}", self.idempotency),
            _ => write!(f, "the request is safe to retry: {}", self.idempotency),
        }
    }
}

impl core::error::Error for StatusFailure {}
