//! The laws, one file for each tool that makes statements.

mod calls;
mod check;
mod help;
mod profiles;

use crate::law::Law;

/// All laws.
pub const ALL: [Law; 7] =
    [check::LAW, help::LAW, calls::CALLS, calls::CONNECTIONS, calls::OUTAGES, calls::ADVISED, profiles::PROFILES];
