use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use stagger_sim::lint::{FileFinding, Rule};
use stagger_sim::system::SystemFile;

use super::find::Found;
use crate::output::error::CliError;

/// The longest file that is read, in bytes.
const MAX_BYTES: u64 = 64 * 1_024 * 1_024;

/// A checked file and its findings.
pub(in crate::check) struct FileResult {
    pub(in crate::check) name: String,
    pub(in crate::check) text: String,
    /// What the file is: `system of services`.
    pub(in crate::check) kind: String,
    pub(in crate::check) findings: Vec<FileFinding>,
}

impl FileResult {
    /// Reads and checks a file. Returns `None` for one that is not named on the command line and says nothing about retries.
    pub(in crate::check) fn new(file: &Found, allowed: &[&Rule]) -> Result<Option<Self>, CliError> {
        let is_stdin = file.path == Path::new("-");
        let name = if is_stdin { "standard input".to_owned() } else { file.path.display().to_string() };
        let text = text(file, &name)?;
        let is_toml = file.path.extension().is_some_and(|ending| ending == "toml") || is_stdin;
        if is_toml && is_system(&text) {
            let read = if is_stdin { SystemFile::parse(&*text) } else { SystemFile::read(&file.path) };
            let mut findings = read.map_err(CliError::usage)?.check();
            findings.retain(|found| !allowed.contains(&found.finding().rule()));
            return Ok(Some(Self { name, text, kind: "system of services".to_owned(), findings }));
        }
        if !file.is_named {
            return Ok(None);
        }
        Err(CliError::usage(format_args!(
            "{name}: not a file that can be checked; name a system of services, as `stagger simulate system` reads it"
        )))
    }
}

fn text(file: &Found, name: &str) -> Result<String, CliError> {
    let mut bytes = Vec::new();
    let read = if file.path == Path::new("-") {
        io::stdin().lock().take(MAX_BYTES + 1).read_to_end(&mut bytes)
    } else {
        File::open(&file.path).and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
    };
    read.map_err(|error| CliError::io(format_args!("cannot read {name}"), error))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(CliError::usage(format_args!("{name} has more than {} MiB; check a part of it", MAX_BYTES >> 20)));
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
        CliError::usage(format_args!("{name}, line {line}: not valid UTF-8; save it as UTF-8"))
    })
}

/// Returns whether a TOML file has the tables of a system, also if it is not valid.
fn is_system(text: &str) -> bool {
    const TABLES: [&str; 3] = ["users", "tier", "edge"];
    match text.parse::<toml::Table>() {
        Ok(root) => root.keys().filter(|key| TABLES.contains(&key.as_str())).count() >= 2,
        Err(_) => text.lines().any(|line| {
            TABLES.iter().any(|table| line.trim() == format!("[[{table}]]") || line.trim() == format!("[{table}]"))
        }),
    }
}
