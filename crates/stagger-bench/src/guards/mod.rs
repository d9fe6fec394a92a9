//! Section E: budgets, breakers and hedging, alone and shared by two threads.

mod floor;
#[cfg(feature = "peers")]
mod peers;
mod stagger;

pub(crate) use stagger::{COUNTING, WITHDRAWALS};

use crate::case::Case;

/// Every row of the two tables.
pub(crate) fn cases() -> Vec<Case> {
    [
        floor::cases(),
        stagger::cases(),
        #[cfg(feature = "peers")]
        peers::cases(),
    ]
    .concat()
}
