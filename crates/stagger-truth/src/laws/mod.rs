//! The laws, one file for each tool that makes statements.

mod check;
mod help;

use crate::law::Law;

/// All laws.
pub const ALL: [Law; 2] = [check::LAW, help::LAW];
