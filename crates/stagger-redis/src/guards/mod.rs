//! The guards of a fleet, as programs use them.

pub(crate) mod quiet;
pub(crate) mod tokens;
