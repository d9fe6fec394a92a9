use std::io;
use std::process::ExitCode;

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::cli::Cli;
use crate::error::CliError;

/// Print the manual page, in roff
#[derive(Args, Debug)]
#[command(after_help = "Read it with `stagger man | man -l -`, or `stagger man run | man -l -`.")]
pub(crate) struct ManArgs {
    /// The command that the page is about; without one, stagger as a whole
    #[arg(value_parser = ["run", "plan", "check", "simulate", "drill", "advise", "completions", "man"])]
    command: Option<String>,
}

/// `stagger man`.
pub(crate) fn run(args: &ManArgs) -> Result<ExitCode, CliError> {
    let mut whole = Cli::command();
    // Only what was built knows its full name.
    whole.build();
    let about = args.command.as_deref().and_then(|name| whole.find_subcommand(name)).unwrap_or(&whole);
    let mut text = Vec::new();
    page(about, &mut text).map_err(|error| CliError::io("cannot make the manual page", error))?;
    crate::output::print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn page(command: &Command, out: &mut Vec<u8>) -> io::Result<()> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    let man = Man::new(command.clone()).title(name).source(concat!("stagger ", env!("CARGO_PKG_VERSION")));
    man.render_title(out)?;
    man.render_name_section(out)?;
    man.render_synopsis_section(out)?;
    man.render_description_section(out)?;
    man.render_options_section(out)?;
    if command.has_subcommands() {
        man.render_subcommands_section(out)?;
    }
    match command.get_after_long_help().or(command.get_after_help()) {
        Some(notes) => as_it_stands(&notes.to_string()).to_writer(out),
        None => Ok(()),
    }
}

/// What follows the options is set in lines and columns, which roff would fill into paragraphs; only lines that are
/// too long for a page are left to it.
fn as_it_stands(text: &str) -> Roff {
    const PAGE: usize = 72;
    let mut roff = Roff::new();
    roff.control("SH", ["NOTES"]);
    for line in text.lines() {
        roff.control(if line.chars().count() > PAGE { "fi" } else { "nf" }, []);
        roff.text([roman(line)]);
    }
    roff
}
