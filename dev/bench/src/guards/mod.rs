//! Section E: budgets, breakers and hedging, on one thread and shared by two.

mod admission;
mod floor;
#[cfg(feature = "peers")]
mod peers;
mod stagger;

pub(crate) use stagger::{COUNTING, PERMITS};

use crate::case::Case;

/// Returns the rows of the two tables.
pub(crate) fn cases() -> Vec<Case> {
    [
        floor::cases(),
        stagger::cases(),
        admission::cases(),
        #[cfg(feature = "peers")]
        peers::cases(),
    ]
    .concat()
}
