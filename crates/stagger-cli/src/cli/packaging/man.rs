use std::io;
use std::process::ExitCode;

use clap::{Args, Command};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::output::error::CliError;

/// Print a manual page in roff format
#[derive(Args, Debug)]
#[command(after_help = "Read it with `stagger man | man -l -`, or `stagger man run | man -l -`.")]
pub(crate) struct ManArgs {
    /// Subcommand to describe [default: stagger itself]
    #[arg(value_parser = ["run", "wait", "plan", "check", "simulate", "drill", "advise", "completions", "man"])]
    command: Option<String>,
}

pub(crate) fn run(args: &ManArgs, mut root: Command) -> Result<ExitCode, CliError> {
    // A subcommand has its display name only after the build.
    root.build();
    let command = args.command.as_deref().and_then(|name| root.find_subcommand(name)).unwrap_or(&root);
    let mut text = Vec::new();
    page(command, &mut text).map_err(|error| CliError::io("cannot generate the manual page", error))?;
    crate::output::write::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn page(command: &Command, out: &mut Vec<u8>) -> io::Result<()> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    let man = Man::new(command.clone()).title(name).source(concat!("stagger ", env!("CARGO_PKG_VERSION")));
    man.render_title(out)?;
    man.render_name_section(out)?;
    man.render_synopsis_section(out)?;
    match command.get_long_about().map(ToString::to_string) {
        // With examples, which are lines.
        Some(about) if about.contains('\n') => preformatted("DESCRIPTION", &about).to_writer(out)?,
        _ => man.render_description_section(out)?,
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

/// Formats a section whose text is laid out in lines and columns, so that roff does not fill it into
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
