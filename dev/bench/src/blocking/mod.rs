//! Section B: a blocking call that succeeds on the first attempt.

mod floor;
#[cfg(feature = "peers")]
mod peers;
mod stagger;

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
