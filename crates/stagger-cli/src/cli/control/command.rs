use core::fmt::Write as _;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use serde::Serialize;
use tempfile::NamedTempFile;

use super::args::{Action, ControlArgs};
use super::controls::{Control, Controls};
use crate::output::error::CliError;
use crate::output::write::{print, to_json};

/// Maximum length of a file, in bytes.
const MAX_LENGTH: u64 = 1 << 20;

/// Runs `stagger control`.
pub(crate) fn run(args: &ControlArgs) -> Result<ExitCode, CliError> {
    let shown = args.file.display();
    let (text, permissions) = match read(&args.file) {
        Err(error) if error.kind() == ErrorKind::NotFound && args.action == Action::Set => (String::new(), None),
        read => {
            let (text, permissions) = read.map_err(|error| CliError::io(format_args!("cannot read {shown}"), error))?;
            (text, Some(permissions))
        }
    };
    let controls = Controls::parse(text).map_err(|error| CliError::usage(format_args!("{shown}: {error}")))?;
    let controls = match args.action {
        Action::Show if args.entries.is_empty() => controls,
        Action::Show => {
            return Err(CliError::usage("`control show` takes a file and no entries; to change one, use set"));
        }
        Action::Set => {
            check(&args.entries)?;
            let changed = controls.with(&args.entries, &note(args)?).map_err(CliError::usage)?;
            write(&args.file, changed.text(), permissions)?;
            changed
        }
        Action::Clear => {
            let changed = controls.without(&args.entries, &note(args)?).map_err(CliError::usage)?;
            write(&args.file, changed.text(), permissions)?;
            changed
        }
    };
    let list = controls.list();
    let text = if args.json { json(&list)? } else { table(&list) };
    print(text.as_bytes()).map(|()| ExitCode::SUCCESS)
}

/// Checks that each argument is one entry, which the library parses afterwards.
fn check(entries: &[String]) -> Result<(), CliError> {
    if entries.is_empty() {
        return Err(CliError::usage("`control set` needs an entry, such as api=25% or '*=no-retries'"));
    }
    match entries.iter().find(|entry| entry.trim().is_empty() || entry.contains(['#', ';', '\n', '\r'])) {
        Some(entry) => Err(CliError::usage(format_args!(
            "`{}` is not one entry; write each as an argument, such as api=25%, and comments with --reason",
            entry.escape_debug()
        ))),
        None => Ok(()),
    }
}

/// Returns the comment of a change: when it was made, by whom and why.
fn note(args: &ControlArgs) -> Result<String, CliError> {
    let user = || std::env::var("USER").ok().filter(|user| !user.contains(char::is_control));
    let mut note = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    let words = [args.by.clone().or_else(user), args.reason.clone().map(|reason| format!(": {reason}"))];
    for (word, separator) in words.iter().zip([" ", ""]) {
        note += word.as_deref().map(|word| format!("{separator}{word}")).unwrap_or_default().as_str();
    }
    if note.contains(char::is_control) {
        return Err(CliError::usage("--by and --reason: a comment is one line; remove the line break"));
    }
    Ok(note)
}

fn read(path: &Path) -> io::Result<(String, Permissions)> {
    let file = File::open(path)?;
    let permissions = file.metadata()?.permissions();
    let mut text = String::new();
    file.take(MAX_LENGTH + 1).read_to_string(&mut text)?;
    if text.len() as u64 > MAX_LENGTH {
        return Err(io::Error::new(ErrorKind::InvalidData, "it is longer than 1 MiB, so it is not a file of controls"));
    }
    Ok((text, permissions))
}

/// Replaces a file as a whole: a program that reads it meanwhile sees the old text or the new one.
fn write(path: &Path, text: &str, permissions: Option<Permissions>) -> Result<(), CliError> {
    // A link stays one.
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let failed = |error| CliError::io(format_args!("cannot write {}", path.display()), error);
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.map_or_else(|| PathBuf::from("."), Path::to_owned);
    let mut file = NamedTempFile::new_in(directory).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    if let Some(permissions) = permissions.or_else(readable_by_all) {
        file.as_file().set_permissions(permissions).map_err(failed)?;
    }
    file.as_file().sync_all().map_err(failed)?;
    file.persist(&path).map(drop).map_err(|error| failed(error.error))
}

/// Returns the mode of a new file, which a program of another user may have to read.
fn readable_by_all() -> Option<Permissions> {
    #[cfg(unix)]
    return Some(std::os::unix::fs::PermissionsExt::from_mode(0o644));
    #[cfg(not(unix))]
    None
}

fn table(list: &[Control<'_>]) -> String {
    let width = |of: fn(&Control<'_>) -> usize| list.iter().map(of).max().unwrap_or_default();
    let targets = width(|control| control.target.chars().count());
    let settings = width(|control| control.setting.to_string().len());
    let mut text = String::new();
    for Control { target, setting, note } in list {
        let line = format!("{target:<targets$}  {:<settings$}  {note}", setting.to_string());
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    controls: Vec<Entry<'a>>,
}

#[derive(Serialize)]
struct Entry<'a> {
    target: &'a str,
    mode: &'static str,
    /// The share of the retries, from 0 to 1.
    share: f64,
    note: &'a str,
}

fn json(list: &[Control<'_>]) -> Result<String, CliError> {
    let entry = |control: &'_ Control<'_>| -> (f64, &'static str) {
        (f64::from(control.setting.share().as_millionths()) / 1e6, control.setting.mode().name())
    };
    let controls = list.iter().map(|control| {
        let (share, mode) = entry(control);
        Entry { target: &control.target, mode, share, note: control.note }
    });
    to_json(&Document { schema: "stagger.control/1", controls: controls.collect() })
}
