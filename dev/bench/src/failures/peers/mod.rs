//! The cost of other crates if three attempts fail.

mod blocking;
mod on_tokio;
mod ready;
mod zero;

use core::time::Duration;

use crate::case::Case;

const BASE: Duration = Duration::from_millis(100);
const CAP: Duration = Duration::from_secs(30);

/// Returns the rows of other crates.
pub(super) fn cases() -> Vec<Case> {
    [blocking::cases(), zero::cases(), ready::cases(), on_tokio::cases()].concat()
}
