use core::time::Duration;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, io};

use clap::builder::StringValueParser;
use clap::{ArgAction, Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, italic, roman};
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::suggestion::offering;

/// Print a manual page in roff format
#[derive(Args, Debug)]
#[command(after_help = "Read it with `stagger man | man -l -`, or `stagger man run | man -l -`.")]
pub(crate) struct ManArgs {
    /// Subcommand to describe [default: stagger itself]
    #[arg(hide_possible_values = true, value_parser = offering(StringValueParser::new(), subcommands))]
    command: Vec<String>,
}

const SUBCOMMANDS: [&str; 12] =
    ["run", "wait", "plan", "check", "simulate", "drill", "advise", "serve", "control", "completions", "man", "help"];

/// Returns the names of the commands.
pub(crate) fn subcommands() -> Vec<&'static str> {
    SUBCOMMANDS.to_vec()
}

pub(crate) fn run(args: &ManArgs, mut root: Command) -> Result<ExitCode, CliError> {
    // A subcommand has its display name only after the build.
    root.build();
    let mut command = &root;
    for name in &args.command {
        let found = command.find_subcommand(name);
        command = found.ok_or_else(|| CliError::usage(format_args!("`{name}` is not a command; see: stagger help")))?;
    }
    let mut text = Vec::new();
    page(command, &mut text).map_err(|error| CliError::io("cannot generate the manual page", error))?;
    stagger_terminal::output::write::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn page(command: &Command, out: &mut Vec<u8>) -> io::Result<()> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    let man = Man::new(command.clone()).title(name).date(date()).source(concat!("stagger ", env!("CARGO_PKG_VERSION")));
    man.render_title(out)?;
    man.render_name_section(out)?;
    synopsis(command, name).to_writer(out)?;
    man.render_description_section(out)?;
    if let Some(examples) = command.get_before_help() {
        let examples = examples.to_string();
        preformatted("EXAMPLES", examples.strip_prefix("Examples:\n").unwrap_or(&examples)).to_writer(out)?;
    }
    man.render_options_section(out)?;
    if command.has_subcommands() {
        man.render_subcommands_section(out)?;
    }
    match command.get_after_long_help().or(command.get_after_help()) {
        Some(notes) => preformatted("NOTES", &notes.to_string()).to_writer(out),
        None => Ok(()),
    }
}

/// Returns the date of the page: that of the sources, if `SOURCE_DATE_EPOCH` says it, as in all reproducible packages;
/// or today.
fn date() -> String {
    let epoch = env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.parse().ok());
    let time = match epoch {
        Some(seconds) => UNIX_EPOCH.checked_add(Duration::from_secs(seconds)).unwrap_or(UNIX_EPOCH),
        None => SystemTime::now(),
    };
    // The time of day follows.
    humantime::format_rfc3339_seconds(time).to_string().chars().take_while(|c| *c != 'T').collect()
}

/// Returns the synopsis: each flag with its value, and then the arguments.
fn synopsis(command: &Command, name: &str) -> Roff {
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]);
    let words = name.replace('-', " ");
    let mut line = vec![bold(words)];
    for arg in command.get_arguments().filter(|arg| !arg.is_positional() && !arg.is_hide_set()) {
        line.push(roman(" ["));
        let short = arg.get_short().map(|short| format!("-{short}"));
        let long = arg.get_long().map(|long| format!("--{long}"));
        let names: Vec<_> = short.into_iter().chain(long).collect();
        for (at, name) in names.iter().enumerate() {
            if at > 0 {
                line.push(roman("|"));
            }
            line.push(bold(name));
        }
        if arg.get_action().takes_values() {
            let equals = if arg.is_require_equals_set() { "[=" } else { " " };
            line.push(roman(equals));
            line.push(italic(arg.get_value_names().unwrap_or_default().join(" ")));
            if arg.is_require_equals_set() {
                line.push(roman("]"));
            }
        }
        line.push(roman("]"));
    }
    for arg in command.get_positionals() {
        let value = arg.get_value_names().unwrap_or_default().join(" ");
        let more = if matches!(arg.get_action(), ArgAction::Append) { "..." } else { "" };
        if arg.is_required_set() {
            line.extend([roman(" "), italic(value), roman(more)]);
        } else {
            line.extend([roman(" ["), italic(value), roman("]"), roman(more)]);
        }
    }
    if command.has_subcommands() {
        line.extend([roman(" "), italic("COMMAND"), roman(" ...")]);
    }
    roff.text(line);
    roff
}

/// Formats the text after the options, which is laid out in lines and columns, so that roff does not fill it into
/// paragraphs; only lines that are too long for a page are filled.
fn preformatted(heading: &str, text: &str) -> Roff {
    const PAGE: usize = 72;
    let mut roff = Roff::new();
    roff.control("SH", [heading]);
    for line in text.lines() {
        roff.control(if line.chars().count() > PAGE { "fi" } else { "nf" }, []);
        roff.text([roman(line)]);
    }
    roff
}
