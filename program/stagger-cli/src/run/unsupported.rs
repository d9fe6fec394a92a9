//! `stagger run` where there are no process groups and signals.

mod args;

use std::process::ExitCode;

pub(crate) use args::RunArgs;

use stagger_terminal::output::error::CliError;
use stagger_terminal::output::terminal::Term;

pub(crate) fn run(_args: &RunArgs, _term: &Term) -> Result<ExitCode, CliError> {
    Err(CliError::usage("`stagger run` requires Unix; on Windows, run it in WSL"))
}
