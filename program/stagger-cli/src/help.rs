use std::ffi::OsString;
use std::process::ExitCode;

use clap::Args;
use clap::builder::StringValueParser;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::suggestion::offering;

use crate::cli::{self, Cli};

/// Print the help of stagger or of a command, as --help does
#[derive(Args, Debug)]
#[command(after_help = "`stagger help run` is `stagger run --help`; `stagger run -h` prints a summary.")]
pub(crate) struct HelpArgs {
    /// Command to describe [default: stagger itself]
    #[arg(hide_possible_values = true, value_parser = offering(StringValueParser::new(), crate::man::subcommands))]
    command: Vec<String>,
}

pub(crate) fn run(args: &HelpArgs) -> Result<ExitCode, CliError> {
    let words: Vec<OsString> = ["stagger"]
        .into_iter()
        .chain(args.command.iter().map(String::as_str))
        .chain(["--help"])
        .map(OsString::from)
        .collect();
    match Cli::parse(&words) {
        Err(help) => Ok(cli::exit_with_usage(&help, &words)),
        Ok(_) => Ok(ExitCode::SUCCESS),
    }
}
