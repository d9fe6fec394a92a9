//! Tips for usage errors, and values that completions offer.

use std::ffi::{OsStr, OsString};

use clap::builder::{PossibleValue, StyledStr, TypedValueParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, Command};
use stagger_core::text::{Outside, nearest};

/// Returns an address without user and password: `redis://u:p@h/jobs` becomes `redis://h/jobs`. What is no address
/// stays as it is. A password may contain any character, so all is left out up to the last `@`.
pub fn without_user(text: &str) -> String {
    match text.split_once("://") {
        Some((scheme, rest)) => match rest.rsplit_once('@') {
            Some((_, host)) => format!("{scheme}://{host}"),
            None => text.to_owned(),
        },
        None => text.to_owned(),
    }
}

/// Replaces the tips of clap, some of which make a command line worse: its similar names are often far, and a flag that
/// follows `--` is the command that is run.
pub fn corrected(error: clap::Error, command: &Command, words: &[OsString]) -> clap::Error {
    let mut error = with_tips(error, command, words);
    // A shell may have made the word of a name of a file.
    for kind in [ContextKind::InvalidArg, ContextKind::InvalidSubcommand, ContextKind::InvalidValue] {
        if let Some(word) = text(&error, kind) {
            error.insert(kind, ContextValue::String(Outside(&without_user(&word)).to_string()));
        }
    }
    error
}

fn text(error: &clap::Error, kind: ContextKind) -> Option<String> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    }
}

fn with_tips(mut error: clap::Error, command: &Command, words: &[OsString]) -> clap::Error {
    match error.kind() {
        ErrorKind::UnknownArgument => {
            let Some(unknown) = text(&error, ContextKind::InvalidArg) else { return error };
            let mut used = subcommand(command, words);
            let name = unknown.trim_start_matches('-').to_owned();
            let is_long = unknown.starts_with("--");
            error.remove(ContextKind::SuggestedArg);
            error.remove(ContextKind::Suggested);
            if is_long
                && counts_retries(&name)
                && used.get_arguments().any(|arg| arg.get_long() == Some("max-attempts"))
            {
                let tip = StyledStr::from(retries_tip(&unknown, words));
                error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
            } else if is_long && let Some(near) = nearest(&name, used.get_arguments().flat_map(longs)) {
                error.insert(ContextKind::SuggestedArg, ContextValue::String(format!("--{near}")));
            }
            // The one of clap includes its suggestion.
            error.insert(ContextKind::Usage, ContextValue::StyledStr(used.render_usage()));
        }
        ErrorKind::InvalidSubcommand => {
            let Some(unknown) = text(&error, ContextKind::InvalidSubcommand) else { return error };
            error.remove(ContextKind::SuggestedSubcommand);
            error.remove(ContextKind::Suggested);
            let used = subcommand(command, words);
            let visible = used.get_subcommands().filter(|command| !command.is_hide_set());
            let names =
                visible.flat_map(|command| [command.get_name()].into_iter().chain(command.get_visible_aliases()));
            if let Some(near) = nearest(&unknown, names) {
                let near = ContextValue::Strings(vec![near.to_owned()]);
                error.insert(ContextKind::SuggestedSubcommand, near);
            }
        }
        ErrorKind::InvalidValue => {
            let (Some(unknown), Some(ContextValue::Strings(valid))) =
                (text(&error, ContextKind::InvalidValue), error.get(ContextKind::ValidValue).cloned())
            else {
                return error;
            };
            error.remove(ContextKind::SuggestedValue);
            if let Some(near) = nearest(&unknown, valid.iter().map(String::as_str)) {
                error.insert(ContextKind::SuggestedValue, ContextValue::String(near.to_owned()));
            }
        }
        _ => {}
    }
    error
}

/// Returns the subcommand that a command line uses; the program itself, if it uses none.
fn subcommand(command: &Command, words: &[OsString]) -> Command {
    let mut used = command;
    for word in words.iter().skip(1) {
        used = used.find_subcommand(word).unwrap_or(used);
    }
    used.clone()
}

fn longs(arg: &Arg) -> Vec<&str> {
    let visible = arg.get_visible_aliases().unwrap_or_default();
    let long = if arg.is_hide_set() { None } else { arg.get_long() };
    long.into_iter().chain(visible).collect()
}

/// Returns whether a flag of this name would count retries, where ours counts attempts.
fn counts_retries(name: &str) -> bool {
    matches!(name, "retries" | "retry" | "max-retries" | "max-retry" | "retry-count" | "retry-limit")
}

fn retries_tip(flag: &str, words: &[OsString]) -> String {
    match attempts_meant(flag, words) {
        Some(attempts) => format!("write '--max-attempts {attempts}': the first attempt counts"),
        None => "use '--max-attempts', which counts the first attempt".to_owned(),
    }
}

/// Returns one more than the number after a flag, as in `--retries=3` or `--retries 3`.
fn attempts_meant(flag: &str, words: &[OsString]) -> Option<u32> {
    let joined = words.iter().find_map(|word| word.to_str()?.strip_prefix(flag)?.strip_prefix('='));
    let retries = match joined {
        Some(retries) => retries,
        None => {
            let at = words.iter().position(|word| word == flag)?;
            words.get(at + 1)?.to_str()?
        }
    };
    retries.parse::<u32>().ok()?.checked_add(1)
}

/// Parses values as `parser` does, and lets completions offer `names`, which are not all that it accepts.
#[derive(Clone, Debug)]
pub struct Offering<P> {
    parser: P,
    names: fn() -> Vec<&'static str>,
}

pub fn offering<P: TypedValueParser>(parser: P, names: fn() -> Vec<&'static str>) -> Offering<P> {
    Offering { parser, names }
}

impl<P: TypedValueParser> TypedValueParser for Offering<P> {
    type Value = P::Value;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<P::Value, clap::Error> {
        self.parser.parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.names)().into_iter().map(PossibleValue::new)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tip_for_retries_counts_the_first_attempt() {
        for (words, want) in [
            (&["run", "--retries", "3", "true"][..], "write '--max-attempts 4': the first attempt counts"),
            (&["run", "--retries=3"], "write '--max-attempts 4': the first attempt counts"),
            (&["run", "--retries"], "use '--max-attempts', which counts the first attempt"),
            (&["run", "--retries", "4294967295"], "use '--max-attempts', which counts the first attempt"),
        ] {
            let words: Vec<_> = words.iter().map(OsString::from).collect();
            assert_eq!(retries_tip("--retries", &words), want);
        }
    }
}
