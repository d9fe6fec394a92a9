//! Errors of calls, and the errors that an error holds.

pub(crate) mod boxed;
pub(crate) mod call_error;
pub(crate) mod chain;
pub(crate) mod links;
pub(crate) mod rejected;
