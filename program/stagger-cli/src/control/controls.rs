use std::time::SystemTime;

use stagger::control::{ControlError, RetryControls};
use stagger_core::budget::ControlSetting;
use stagger_terminal::output::error::CliError;

use super::args::{Action, ControlArgs};

/// The text of a file with controls. Its comments are kept.
#[derive(Debug)]
pub(super) struct Controls {
    text: String,
    /// What the text says.
    parsed: RetryControls,
}

/// The control of one target.
#[derive(Debug, PartialEq)]
pub(super) struct Control<'a> {
    pub(super) target: String,
    pub(super) setting: ControlSetting,
    /// The comment of its line.
    pub(super) note: &'a str,
}

/// Stands for every target that has no entry.
const OTHERS: &str = "*";

impl Controls {
    /// Parses a text as the library does.
    pub(super) fn parse(text: String) -> Result<Self, ControlError> {
        let parsed = RetryControls::new();
        parsed.apply(&text)?;
        Ok(Self { text, parsed })
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the controls, in the order of the text.
    pub(super) fn list(&self) -> Vec<Control<'_>> {
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
    pub(super) fn with(&self, entries: &[String], note: &str) -> Result<Self, ControlError> {
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
    pub(super) fn without(&self, targets: &[String], note: &str) -> Result<Self, ControlError> {
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
