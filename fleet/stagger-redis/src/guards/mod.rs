//! The guards of a fleet, as programs use them.

pub(crate) mod admission;
pub(crate) mod breaker;
pub(crate) mod pause;
pub(crate) mod quiet;
pub(crate) mod tokens;
pub(crate) mod window;
