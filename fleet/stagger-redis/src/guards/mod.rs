//! The guards of a fleet and its operator controls, as programs use them.

pub(crate) mod admission;
pub(crate) mod breaker;
pub(crate) mod control_store;
pub(crate) mod quiet;
pub(crate) mod tokens;
pub(crate) mod window;
