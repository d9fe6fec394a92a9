//! Section H: an HTTP request that is answered immediately.

mod layer;
mod messages;
#[cfg(feature = "peers")]
mod middleware;
#[cfg(feature = "peers")]
mod peers;

use crate::case::Case;

/// The rows of the goals.
pub(crate) const RETRIES: &str = "RetryLayer";
pub(crate) const GUARDED: &str = "RetryLayer, budget";
pub(crate) const TOWER_GUARDED: &str = "tower, backoff and budget";
pub(crate) const MIDDLEWARE: &str = "reqwest::RetryMiddleware";

/// Returns the rows of the tables.
pub(crate) fn cases() -> Vec<Case> {
    [
        layer::cases(),
        #[cfg(feature = "peers")]
        peers::cases(),
        #[cfg(feature = "peers")]
        middleware::cases(),
    ]
    .concat()
}
