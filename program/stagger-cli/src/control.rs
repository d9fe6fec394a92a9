//! `stagger control`: shows and changes the operator controls in a file, which a program passes to
//! `RetryControls::apply`, or in Redis, which the processes of a fleet obey.
//!
//! The library parses every entry, so what is written is what a program accepts.

use core::fmt::Write as _;
use core::time::Duration;
use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::SystemTime;

use clap::{Args, ValueEnum, ValueHint};
use serde::Serialize;
use stagger::control::{ControlError, RetryControls};
use stagger_core::budget::ControlSetting;
use stagger_core::text::{Outside, parse_duration};
#[cfg(feature = "fleet")]
use stagger_redis::{ControlStore, ControlStoreError, StoredControls};
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::line::short;
use stagger_terminal::output::outside::path_shown;
use stagger_terminal::output::write::{print, to_json};
use tempfile::NamedTempFile;
#[cfg(feature = "fleet")]
use tokio::runtime::Builder;

use crate::run::StoreAddress;

/// Runs `stagger control`.
pub(crate) fn run(args: &ControlArgs) -> Result<ExitCode, CliError> {
    let (controls, stored) = match &args.place {
        ControlPlace::File(path) if args.length.is_none() => (run_file(args, path)?, None),
        ControlPlace::File(_) => {
            return Err(CliError::usage(
                "--for is for controls in Redis; a control in a file stays until it is changed",
            ));
        }
        ControlPlace::Store(address) => {
            let (controls, stored) = run_store(args, address)?;
            (controls, Some(stored))
        }
    };
    let list = controls.list();
    let text = if args.json { json(&list, stored.as_ref())? } else { table(&list, stored.as_ref()) };
    print(text.as_bytes()).map(|()| ExitCode::SUCCESS)
}

fn table(list: &[Control<'_>], stored: Option<&Stored>) -> String {
    let rows: Vec<_> = list
        .iter()
        .map(|Control { target, setting, note }| {
            (Outside(target).to_string(), setting.to_string(), Outside(note).to_string())
        })
        .collect();
    // A bounded number of characters each: the width of a column is limited.
    let targets = rows.iter().map(|row| row.0.chars().count()).max().unwrap_or_default();
    let settings = rows.iter().map(|row| row.1.len()).max().unwrap_or_default();
    let mut text = String::new();
    for (target, setting, note) in &rows {
        let line = format!("{target:<targets$}  {setting:<settings$}  {note}");
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", line.trim_end());
    }
    if let Some(&Stored { ends_in: Some(ends_in), .. }) = stored {
        if ends_in.is_zero() {
            text.push_str("They have ended: every target is enforced.\n");
        } else {
            text.push_str(&format!("They end in {}.\n", short(ends_in)));
        }
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
    let controls = list.iter().map(|control| Entry {
        target: &control.target,
        mode: control.setting.mode().name(),
        share: f64::from(control.setting.share().as_millionths()) / 1e6,
        note: control.note,
    });
    let seconds = |length: Option<Duration>| length.map(|length| length.as_secs_f64());
    let stored = stored.map(|stored| StoredEntry { age_s: seconds(stored.age), ends_in_s: seconds(stored.ends_in) });
    to_json(&Document { schema: "stagger.control/1", stored, controls: controls.collect() })
}

/// Show or change the operator controls in a file, which a program reads, or in Redis, for all processes of a fleet
#[derive(Args, Debug)]
#[command(before_help = EXAMPLES, after_long_help = AFTER_HELP)]
pub(crate) struct ControlArgs {
    /// What to do
    #[arg(value_enum, value_name = "ACTION")]
    action: Action,

    /// File with the controls, or redis://HOST/NAME (rediss:// with TLS, and with a database redis://HOST/0/NAME),
    /// where NAME is the namespace of the fleet
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = ControlPlace::parse)]
    place: ControlPlace,

    /// For set: entries of the form TARGET=SETTING, with * for all other targets. For clear: targets; without any, all
    #[arg(value_name = "ENTRY")]
    entries: Vec<String>,

    /// Author of the change, for the comment beside it [default: $USER]
    #[arg(long, value_name = "NAME", help_heading = "Control")]
    by: Option<String>,

    /// Reason for the change, for the comment beside it
    #[arg(long, value_name = "TEXT", help_heading = "Control")]
    reason: Option<String>,

    /// How long the controls stay in force, in Redis; after it every target is enforced [default: as long as those in
    /// force, or until they are changed]
    #[arg(long = "for", value_name = "DUR", value_parser = length, help_heading = "Control")]
    length: Option<Duration>,

    /// Print the controls as JSON, schema stagger.control/1
    #[arg(long, help_heading = "Control")]
    json: bool,
}

/// Where the controls are.
#[derive(Clone, Debug)]
enum ControlPlace {
    File(PathBuf),
    Store(StoreAddress),
}

impl ControlPlace {
    fn parse(text: &str) -> Result<Self, String> {
        if StoreAddress::is_address(text) {
            return StoreAddress::parse(text).map(Self::Store);
        }
        Ok(Self::File(text.into()))
    }
}

fn length(text: &str) -> Result<Duration, String> {
    match parse_duration(text).map_err(|error| error.to_string())? {
        Some(Duration::ZERO) => Err("they would end at once; write it like 30m or 2h".to_owned()),
        Some(length) => Ok(length),
        None => Err("without an end, leave out --for".to_owned()),
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Action {
    /// Print the controls
    Show,
    /// Set targets, and leave the others as they are
    Set,
    /// Reset targets to *, or all targets to enforced
    Clear,
}

/// Lines fit a manual page of 80 columns.
const EXAMPLES: &str = "\
Examples:
  stagger control set retry.controls api=25% --reason 'slow since 14:05'
  stagger control set retry.controls '*=no-retries'
  stagger control show retry.controls
  stagger control clear retry.controls api
  stagger control set redis://db/shop api=no-retries --for 30m";

/// Lines fit a manual page of 80 columns.
const AFTER_HELP: &str = "\
Settings:
  enforced     budgets and breakers decide
  observed     all retries are made; what guards would have rejected is
               counted
  off          guards are not consulted: retries have no bound
  no-retries   no retries; first attempts continue
  25%          that share of the retries; also with a mode: observed 25%

A file is replaced as a whole, and keeps its mode.
A program has to read it again, for example on SIGHUP.
In Redis, all processes of the fleet have it a second later.
A control stays until it is changed; in Redis, --for gives it an end.";

/// Maximum length of a file, in bytes.
const MAX_LENGTH: u64 = 1 << 20;

/// Shows or changes the controls in a file, and returns them.
fn run_file(args: &ControlArgs, path: &Path) -> Result<Controls, CliError> {
    let shown = path_shown(path);
    let (text, permissions) = match read(path) {
        Err(error) if error.kind() == ErrorKind::NotFound && args.action == Action::Set => (String::new(), None),
        read => {
            let (text, permissions) = read.map_err(|error| CliError::io(format_args!("cannot read {shown}"), error))?;
            (text, Some(permissions))
        }
    };
    let controls = Controls::parse(text).map_err(|error| CliError::usage(format_args!("{shown}: {error}")))?;
    let Some(changed) = changed(args, &controls)? else { return Ok(controls) };
    write(path, changed.text(), permissions)?;
    Ok(changed)
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
    let failed = |error| CliError::io(format_args!("cannot write {}", path_shown(&path)), error);
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
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

/// What is known of controls in Redis beside their text.
#[derive(Clone, Copy, Debug)]
struct Stored {
    /// How long ago they were set; `None` if they never were.
    age: Option<Duration>,
    /// How long they stay in force; `None` without an end.
    ends_in: Option<Duration>,
}

/// Shows or changes the controls of a fleet, and returns them.
#[cfg(feature = "fleet")]
fn run_store(args: &ControlArgs, address: &StoreAddress) -> Result<(Controls, Stored), CliError> {
    let shown = &address.shown;
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::io("cannot start a connection", error))?;
    let mut store = ControlStore::new(&address.url, &address.name)
        .map_err(|error| CliError::usage(format_args!("{shown}: {error}")))?;
    let failed = |error| match error {
        ControlStoreError::Unreachable(reason) => {
            CliError::io(format_args!("cannot reach {shown}"), io::Error::other(reason))
        }
        error => CliError::usage(format_args!("{shown}: {error}")),
    };
    let stored = runtime.block_on(store.read()).map_err(failed)?;
    let version = stored.as_ref().map_or(0, |stored| stored.version);
    // After their end they are as good as cleared.
    let in_force = stored.as_ref().filter(|stored| stored.ends_in.is_none_or(|rest| !rest.is_zero()));
    // A change begins with what is in force; only `show` shows what has ended.
    let shown_anyway = if args.action == Action::Show { stored.as_ref() } else { None };
    let text = match in_force.or(shown_anyway) {
        Some(stored) => stored.text.clone(),
        None => String::new(),
    };
    let controls = Controls::parse(text);
    let controls = controls.map_err(|error| CliError::usage(format_args!("{shown}: {error}")))?;
    let Some(changed) = changed(args, &controls)? else {
        return Ok((controls, known(stored.as_ref())));
    };
    // A change of one target does not take the end from the others.
    let length = args.length.or(in_force.and_then(|stored| stored.ends_in));
    let note = note(args)?;
    let set = store.set(version, changed.text(), &note, length);
    let stored = runtime.block_on(set).map_err(failed)?;
    Ok((changed, known(Some(&stored))))
}

/// Says that this build does not know controls in Redis.
#[cfg(not(feature = "fleet"))]
fn run_store(_: &ControlArgs, address: &StoreAddress) -> Result<(Controls, Stored), CliError> {
    Err(CliError::usage(address.unsupported()))
}

#[cfg(feature = "fleet")]
fn known(stored: Option<&StoredControls>) -> Stored {
    match stored {
        Some(stored) => Stored { age: Some(stored.age), ends_in: stored.ends_in },
        None => Stored { age: None, ends_in: None },
    }
}

/// The text of a file with controls. Its comments are kept.
#[derive(Debug)]
struct Controls {
    text: String,
    /// What the text says.
    parsed: RetryControls,
}

/// The control of one target.
#[derive(Debug, PartialEq)]
struct Control<'a> {
    target: String,
    setting: ControlSetting,
    /// The comment of its line.
    note: &'a str,
}

/// Stands for every target that has no entry.
const OTHERS: &str = "*";

impl Controls {
    /// Parses a text as the library does.
    fn parse(text: String) -> Result<Self, ControlError> {
        let parsed = RetryControls::new();
        parsed.apply(&text)?;
        Ok(Self { text, parsed })
    }

    fn text(&self) -> &str {
        &self.text
    }

    /// Returns the controls, in the order of the text.
    fn list(&self) -> Vec<Control<'_>> {
        let lines = self.text.lines().map(split);
        let controls = lines.flat_map(|(entries, note)| {
            entries.into_iter().map(move |entry| {
                // Its entries are valid, because the text is.
                let target = target(entry).unwrap_or_default();
                Control { setting: self.parsed.setting(&target), target, note }
            })
        });
        controls.collect()
    }

    /// Returns the text with these entries in place of those of the same targets. All other targets have their own
    /// entry or that of `*`, so that the text says the same whatever was applied before.
    fn with(&self, entries: &[String], note: &str) -> Result<Self, ControlError> {
        let targets = entries.iter().map(|entry| target(entry)).collect::<Result<Vec<_>, _>>()?;
        let mut lines = self.lines_without(&targets);
        if !targets.iter().any(|target| target == OTHERS) && !self.list().iter().any(|known| known.target == OTHERS) {
            lines.push(format!("{OTHERS}=enforced"));
        }
        lines.extend(entries.iter().map(|entry| format!("{}  # {note}", entry.trim())));
        Self::parse(lines.join("\n") + "\n")
    }

    /// Returns the text without the entries of these targets, which then have the setting of `*`. If there are none,
    /// all entries are removed.
    fn without(&self, targets: &[String], note: &str) -> Result<Self, ControlError> {
        let known: Vec<_> = self.list().into_iter().map(|control| control.target).collect();
        let others = format!("{OTHERS}=enforced");
        let gone = if targets.is_empty() { &known } else { targets };
        let needs_others = gone.iter().any(|target| target == OTHERS) || !known.iter().any(|target| target == OTHERS);
        let lines = self.lines_without(gone);
        let cleared = Self::parse(lines.iter().map(|line| format!("{line}\n")).collect())?;
        if needs_others { cleared.with(&[others], note) } else { Ok(cleared) }
    }

    /// Returns the lines without the entries of these targets. A line that has no other entries is left out, with its
    /// comment.
    fn lines_without(&self, targets: &[String]) -> Vec<String> {
        let keep = |line: &str| {
            let (entries, note) = split(line);
            let is_kept = |entry: &&str| !target(entry).is_ok_and(|target| targets.contains(&target));
            let kept: Vec<_> = entries.iter().copied().filter(is_kept).collect();
            match (kept.len() == entries.len(), kept.is_empty(), note) {
                (true, _, _) => Some(line.to_owned()),
                (false, true, _) => None,
                (false, false, "") => Some(kept.join("; ")),
                (false, false, note) => Some(format!("{}  # {note}", kept.join("; "))),
            }
        };
        self.text.lines().filter_map(keep).collect()
    }
}

/// Splits a line into its entries and its comment.
fn split(line: &str) -> (Vec<&str>, &str) {
    let (code, note) = line.split_once('#').unwrap_or((line, ""));
    (code.split(';').map(str::trim).filter(|entry| !entry.is_empty()).collect(), note.trim())
}

/// Returns the target of one entry, as the library reads it.
fn target(entry: &str) -> Result<String, ControlError> {
    // The library returns the names that it does not know, which are all but that for the others.
    let names = RetryControls::new().apply(entry)?;
    Ok(names.first().map_or_else(|| OTHERS.to_owned(), |name| name.as_ref().to_owned()))
}

/// Returns the changed controls; `None` if they are only shown.
fn changed(args: &ControlArgs, controls: &Controls) -> Result<Option<Controls>, CliError> {
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
            Outside(entry)
        ))),
        None => Ok(()),
    }
}

/// Returns the comment of a change: when it was made, by whom and why.
fn note(args: &ControlArgs) -> Result<String, CliError> {
    let user = || std::env::var("USER").ok().filter(|user| !user.contains(char::is_control));
    let mut note = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    if let Some(author) = args.by.clone().or_else(user) {
        note += &format!(" {author}");
    }
    if let Some(reason) = &args.reason {
        note += &format!(": {reason}");
    }
    if note.contains(char::is_control) {
        return Err(CliError::usage("--by and --reason: a comment is one line; remove the line break"));
    }
    Ok(note)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Controls {
        Controls::parse(text.to_owned()).unwrap()
    }

    fn words(words: &[&str]) -> Vec<String> {
        words.iter().copied().map(str::to_owned).collect()
    }

    #[test]
    fn an_entry_replaces_that_of_its_target_and_no_other_line() {
        let before = parse("# mine\n*=enforced\napi=off; db=observed  # both\nweb=10%\n");
        let after = before.with(&words(&["api=25%"]), "now").unwrap();
        assert_eq!(after.text(), "# mine\n*=enforced\ndb=observed  # both\nweb=10%\napi=25%  # now\n");
        let after = after.with(&words(&["db=off", "*=no-retries"]), "later").unwrap();
        assert_eq!(after.text(), "# mine\nweb=10%\napi=25%  # now\ndb=off  # later\n*=no-retries  # later\n");
    }

    #[test]
    fn a_text_names_all_other_targets() {
        assert_eq!(parse("").with(&words(&["api=25%"]), "n").unwrap().text(), "*=enforced\napi=25%  # n\n");
        assert_eq!(parse("api=off\n").without(&words(&["api"]), "n").unwrap().text(), "*=enforced  # n\n");
    }

    #[test]
    fn clearing_removes_targets_or_all() {
        let before = parse("*=50%\napi=off  # a\ndb=observed\n");
        assert_eq!(before.without(&words(&["api"]), "n").unwrap().text(), "*=50%\ndb=observed\n");
        assert_eq!(before.without(&[], "n").unwrap().text(), "*=enforced  # n\n");
        assert_eq!(before.without(&words(&["*"]), "n").unwrap().text(), "api=off  # a\ndb=observed\n*=enforced  # n\n");
    }

    #[test]
    fn the_list_has_each_target_with_its_setting_and_note() {
        let controls = parse("*=enforced\na=b=25%; db=off  # why\n");
        let list = controls.list();
        let shown: Vec<_> = list.iter().map(|c| format!("{} {} {}", c.target, c.setting, c.note)).collect();
        assert_eq!(shown, ["* enforced ", "a=b enforced 25% why", "db off why"]);
    }
}
