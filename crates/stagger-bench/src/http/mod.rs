//! Section H: an HTTP request that is answered at once.

mod layer;
mod messages;
#[cfg(feature = "peers")]
mod middleware;
#[cfg(feature = "peers")]
mod peers;

use crate::case::Case;

/// The rows that the goals are about.
pub(crate) const RETRIES: &str = "RetryLayer";
pub(crate) const GUARDED: &str = "RetryLayer, budget";
pub(crate) const TOWER_GUARDED: &str = "tower, backoff and budget";
pub(crate) const MIDDLEWARE: &str = "reqwest::RetryMiddleware";

/// Every row of the tables.
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
