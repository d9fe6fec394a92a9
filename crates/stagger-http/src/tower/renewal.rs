use http::Response;

use crate::client::{Renewing, StatusFailure};

/// Fresh credentials on their way, and the answer that they are for.
pub(super) struct Renewal<R> {
    pub(super) fresh: Renewing,
    pub(super) answer: Response<R>,
    pub(super) failure: StatusFailure,
}
