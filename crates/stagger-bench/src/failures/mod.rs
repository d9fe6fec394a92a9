//! Section D: three failures, then success.

mod drive;
mod floor;
#[cfg(feature = "peers")]
mod peers;
mod stagger;

pub(crate) use stagger::{SEEDED, ZERO};

use crate::case::Case;

/// Every row of the five tables.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = floor::cases();
    cases.extend(stagger::cases());
    #[cfg(feature = "peers")]
    cases.extend(peers::cases());
    cases
}
