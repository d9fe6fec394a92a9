//! Section C: an async call that succeeds on the first attempt, and the size of its future.

mod floor;
mod inner;
#[cfg(feature = "peers")]
mod peers;
mod stagger;

pub(crate) use inner::poll_once;
pub(crate) use stagger::ONE_LINER;

use crate::case::Case;

/// Returns the rows of the table.
pub(crate) fn cases() -> Vec<Case> {
    [
        floor::cases(),
        stagger::cases(),
        #[cfg(feature = "peers")]
        peers::cases(),
    ]
    .concat()
}
