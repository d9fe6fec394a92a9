//! Section F: a million pending retries, each in its own task or all in a queue.

mod floor;
mod load;
#[cfg(feature = "peers")]
mod peers;
mod stagger;
mod tasks;
mod timed;

pub(crate) use load::BULK;
pub(crate) use stagger::{DELAY_QUEUE, TASKS, WHEEL};

use crate::case::Case;

/// Returns the rows of the two tables.
pub(crate) fn cases() -> Vec<Case> {
    [
        floor::cases(),
        stagger::cases(),
        #[cfg(feature = "peers")]
        peers::cases(),
    ]
    .concat()
}
