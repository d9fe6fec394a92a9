use std::io::{self, ErrorKind, Write};

use crate::error::CliError;

/// Writes a result to standard output. A reader that has seen enough (`| head`) is no failure.
///
/// # Errors
/// It cannot be written.
pub(crate) fn print(bytes: &[u8]) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(CliError::io("cannot write to standard output", error))
        }
        _ => Ok(()),
    }
}
