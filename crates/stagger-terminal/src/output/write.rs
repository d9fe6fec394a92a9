use std::io::{self, ErrorKind, Write};
use std::time::SystemTime;

use serde::Serialize;

use super::error::CliError;

/// Writes a result to standard output. A closed pipe (`| head`) is not an error.
pub fn print(bytes: &[u8]) -> Result<(), CliError> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(CliError::io("cannot write to standard output", error))
        }
        _ => Ok(()),
    }
}

/// Prints a message for humans to standard error.
pub fn say(text: &str) {
    // If standard error is closed, the exit code still reports a failure.
    let _ = writeln!(io::stderr(), "{text}");
}

/// Serializes a document as one line of JSON.
pub fn to_json(document: &impl Serialize) -> Result<String, CliError> {
    let text = serde_json::to_string(document).map_err(|error| CliError::io("cannot write JSON", error))?;
    Ok(text + "\n")
}

/// Returns the command line, quoted so that it can be pasted into a shell.
pub fn command_line() -> String {
    let args: Vec<String> = std::env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    // Fails only for NUL bytes, which an argument cannot contain.
    let args = shlex::try_join(args.iter().map(String::as_str)).unwrap_or_default();
    format!("stagger {args}")
}

/// What each JSON line of a log says besides its event: when it was written, and by which run.
#[derive(Debug, Serialize)]
pub struct Stamp<'a> {
    /// RFC 3339, UTC.
    time: String,
    run: &'a RunId,
}

impl<'a> Stamp<'a> {
    pub fn new(run: &'a RunId, time: SystemTime) -> Self {
        Self { time: humantime::format_rfc3339_micros(time).to_string(), run }
    }
}

/// Identifies a run among all that append to a log, also on other machines and with the same seed.
#[derive(Clone, Debug, Serialize)]
pub struct RunId(String);

impl RunId {
    pub fn random() -> Self {
        Self(format!("{:016x}", stagger::seed().get()))
    }
}
