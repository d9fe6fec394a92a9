//! The laws, one file for each tool that makes statements.

mod advise;
mod calls;
mod check;
mod help;
pub mod profiles;
mod systems;

use crate::law::Law;

/// All laws.
pub const ALL: [Law; 10] = [
    check::LAW,
    help::LAW,
    calls::CALLS,
    calls::CONNECTIONS,
    calls::OUTAGES,
    calls::ADVISED,
    profiles::PROFILES,
    advise::ADVISE,
    systems::VERDICTS,
    systems::GAINS,
];
