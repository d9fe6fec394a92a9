//! Section D: three failures, then a success.

mod drive;
mod floor;
#[cfg(feature = "peers")]
mod peers;
mod stagger;

pub(crate) use stagger::{SEEDED, ZERO};

use crate::case::Case;

/// Returns the rows of the five tables.
pub(crate) fn cases() -> Vec<Case> {
    [
        floor::cases(),
        stagger::cases(),
        #[cfg(feature = "peers")]
        peers::cases(),
    ]
    .concat()
}
