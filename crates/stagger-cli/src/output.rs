use std::io::{self, ErrorKind, Write};

use serde::Serialize;

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

/// Says something to people, on standard error.
pub(crate) fn say(text: &str) {
    // Where nobody hears it, the exit code still tells.
    let _ = writeln!(io::stderr(), "{text}");
}

/// A document as one line of JSON.
///
/// # Errors
/// It cannot be written.
pub(crate) fn to_json(document: &impl Serialize) -> Result<String, CliError> {
    let text = serde_json::to_string(document).map_err(|error| CliError::io("cannot write JSON", error))?;
    Ok(text + "\n")
}

/// Holds the schema that is published at `path` to what is printed; with `STAGGER_BLESS` it is written anew.
#[cfg(test)]
#[track_caller]
pub(crate) fn assert_published_schema<T: schemars::JsonSchema>(path: &str) {
    let now = serde_json::to_string_pretty(&schemars::schema_for!(T)).expect("a schema is JSON") + "\n";
    if std::env::var_os("STAGGER_BLESS").is_some() {
        std::fs::write(path, &now).expect("the schema can be written");
    }
    assert_eq!(std::fs::read_to_string(path).expect("there is a schema"), now);
}
