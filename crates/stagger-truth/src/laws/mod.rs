//! The laws, one file for each tool that makes statements.

use crate::law::Law;

/// All laws.
pub const ALL: [Law; 0] = [];
