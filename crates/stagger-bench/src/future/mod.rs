//! Section C: an async call that succeeds at once, and what its future weighs.

mod floor;
mod inner;
#[cfg(feature = "peers")]
mod peers;
mod stagger;

pub(crate) use inner::poll_once;
pub(crate) use stagger::ONE_LINER;

use crate::case::Case;

/// Every row of the table.
pub(crate) fn cases() -> Vec<Case> {
    [
        floor::cases(),
        stagger::cases(),
        #[cfg(feature = "peers")]
        peers::cases(),
    ]
    .concat()
}
