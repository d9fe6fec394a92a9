//! Section A: the next delay.

#[cfg(feature = "peers")]
mod aws;
mod floor;
#[cfg(feature = "peers")]
mod peers;
mod session;
mod stagger;

pub(crate) use floor::FullJitter;
pub(crate) use stagger::{ANY_MULTIPLIER, CONSTANT, GUARDED};

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
