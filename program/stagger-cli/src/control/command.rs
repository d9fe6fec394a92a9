use core::fmt::Write as _;
use core::time::Duration;
use std::process::ExitCode;
use std::time::SystemTime;

use serde::Serialize;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::line::short;
use stagger_terminal::output::write::{print, to_json};

use super::args::{Action, ControlArgs, ControlPlace};
use super::controls::{Control, Controls};
use super::file;
use super::stored::{self, Stored};

/// Runs `stagger control`.
pub(crate) fn run(args: &ControlArgs) -> Result<ExitCode, CliError> {
    let (controls, stored) = match &args.place {
        ControlPlace::File(path) if args.length.is_none() => (file::run(args, path)?, None),
        ControlPlace::File(_) => {
            return Err(CliError::usage(
                "--for is for controls in Redis; a control in a file stays until it is changed",
            ));
        }
        ControlPlace::Store(address) => {
            let (controls, stored) = stored::run(args, address)?;
            (controls, Some(stored))
        }
    };
    let list = controls.list();
    let text = if args.json { json(&list, stored.as_ref())? } else { table(&list, stored.as_ref()) };
    print(text.as_bytes()).map(|()| ExitCode::SUCCESS)
}

/// Returns the changed controls; `None` if they are only shown.
pub(super) fn changed(args: &ControlArgs, controls: &Controls) -> Result<Option<Controls>, CliError> {
    let changed = match args.action {
        Action::Show if args.entries.is_empty() => return Ok(None),
        Action::Show => {
            return Err(CliError::usage("`control show` takes a file and no entries; to change one, use set"));
        }
        Action::Set => {
            check(&args.entries)?;
            controls.with(&args.entries, &note(args)?)
        }
        Action::Clear => controls.without(&args.entries, &note(args)?),
    };
    changed.map(Some).map_err(CliError::usage)
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
pub(super) fn note(args: &ControlArgs) -> Result<String, CliError> {
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

fn table(list: &[Control<'_>], stored: Option<&Stored>) -> String {
    let width = |of: fn(&Control<'_>) -> usize| list.iter().map(of).max().unwrap_or_default();
    let targets = width(|control| control.target.chars().count());
    let settings = width(|control| control.setting.to_string().len());
    let mut text = String::new();
    for Control { target, setting, note } in list {
        let line = format!("{target:<targets$}  {:<settings$}  {note}", setting.to_string());
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", line.trim_end());
    }
    if let Some(ends_in) = stored.and_then(|stored| stored.ends_in) {
        let _ = match ends_in.is_zero() {
            true => writeln!(text, "They have ended: every target is enforced."),
            false => writeln!(text, "They end in {}.", short(ends_in)),
        };
    }
    text
}

#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    #[serde(flatten)]
    stored: Option<StoredEntry>,
    controls: Vec<Entry<'a>>,
}

/// What only controls in Redis have.
#[derive(Serialize)]
struct StoredEntry {
    /// How long ago they were set; none if they never were.
    age_s: Option<f64>,
    /// How long they stay in force; none without an end.
    ends_in_s: Option<f64>,
}

#[derive(Serialize)]
struct Entry<'a> {
    target: &'a str,
    mode: &'static str,
    /// The share of the retries, from 0 to 1.
    share: f64,
    note: &'a str,
}

fn json(list: &[Control<'_>], stored: Option<&Stored>) -> Result<String, CliError> {
    let entry = |control: &'_ Control<'_>| -> (f64, &'static str) {
        (f64::from(control.setting.share().as_millionths()) / 1e6, control.setting.mode().name())
    };
    let controls = list.iter().map(|control| {
        let (share, mode) = entry(control);
        Entry { target: &control.target, mode, share, note: control.note }
    });
    let seconds = |length: Option<Duration>| length.map(|length| length.as_secs_f64());
    let stored = stored.map(|stored| StoredEntry { age_s: seconds(stored.age), ends_in_s: seconds(stored.ends_in) });
    to_json(&Document { schema: "stagger.control/1", stored, controls: controls.collect() })
}
