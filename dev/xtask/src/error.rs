//! Errors are messages for the terminal.

pub(crate) type Error = Box<dyn core::error::Error>;
pub(crate) type Result<T = ()> = core::result::Result<T, Error>;
