//! An error is a message for the terminal.

pub(crate) type Error = Box<dyn core::error::Error>;
pub(crate) type Result<T = ()> = core::result::Result<T, Error>;

/// Refuses arguments, for commands that have none.
pub(crate) fn no_arguments(arguments: &[std::ffi::OsString]) -> Result {
    if arguments.is_empty() { Ok(()) } else { Err("takes no arguments".into()) }
}
