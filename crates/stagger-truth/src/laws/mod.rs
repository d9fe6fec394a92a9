//! The laws, one file for each tool that makes statements.

mod calls;
mod check;
mod help;

use crate::law::Law;

/// All laws.
pub const ALL: [Law; 6] = [check::LAW, help::LAW, calls::CALLS, calls::CONNECTIONS, calls::OUTAGES, calls::ADVISED];
