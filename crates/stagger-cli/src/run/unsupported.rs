use std::process::ExitCode;

use super::args::RunArgs;
use crate::output::error::CliError;
use crate::output::terminal::Term;

/// Reports that `stagger run` needs process groups and signals.
pub(crate) fn run(_args: &RunArgs, _term: &Term) -> Result<ExitCode, CliError> {
    Err(CliError::usage("`stagger run` requires Unix; on Windows, run it in WSL"))
}
