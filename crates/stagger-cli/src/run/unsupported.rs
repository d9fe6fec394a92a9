use std::process::ExitCode;

use super::args::RunArgs;
use crate::error::CliError;
use crate::term::Term;

/// `stagger run` where there are no process groups and no signals.
///
/// # Errors
/// Always.
pub(crate) fn run(_args: &RunArgs, _term: &Term) -> Result<ExitCode, CliError> {
    Err(CliError::usage("`stagger run` needs a Unix system; under Windows, run it in WSL"))
}
