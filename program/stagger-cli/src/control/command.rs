use core::fmt::Write as _;
use core::time::Duration;
use std::process::ExitCode;

use serde::Serialize;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::line::short;
use stagger_terminal::output::write::{print, to_json};

use super::args::{ControlArgs, ControlPlace};
use super::controls::Control;
use super::place::{self, Stored};

/// Runs `stagger control`.
pub(crate) fn run(args: &ControlArgs) -> Result<ExitCode, CliError> {
    let (controls, stored) = match &args.place {
        ControlPlace::File(path) if args.length.is_none() => (place::run_file(args, path)?, None),
        ControlPlace::File(_) => {
            return Err(CliError::usage(
                "--for is for controls in Redis; a control in a file stays until it is changed",
            ));
        }
        ControlPlace::Store(address) => {
            let (controls, stored) = place::run_store(args, address)?;
            (controls, Some(stored))
        }
    };
    let list = controls.list();
    let text = if args.json { json(&list, stored.as_ref())? } else { table(&list, stored.as_ref()) };
    print(text.as_bytes()).map(|()| ExitCode::SUCCESS)
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
