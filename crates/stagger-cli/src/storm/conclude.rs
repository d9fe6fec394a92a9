use std::process::ExitCode;

use stagger_sim::storm::Storm;

use super::assertion::Assertion;
use super::interrupt::INTERRUPTED;
use super::outputs::Outputs;
use super::record::Records;
use super::write::write;
use crate::error::CliError;
use crate::output::say;
use crate::plot::RenderOptions;

/// How many runs were planned, and how many are finished.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Runs {
    pub(crate) planned: usize,
    pub(crate) finished: usize,
}

/// Writes what came of a storm, holds the assertions to it, and says how the program ends.
///
/// # Errors
/// Something cannot be written.
pub(crate) fn conclude(
    storm: &Storm,
    runs: Runs,
    assertions: &[Assertion],
    outputs: Outputs,
    look: RenderOptions,
) -> Result<ExitCode, CliError> {
    let Runs { planned, finished } = runs;
    if finished == 0 {
        say("interrupted before any run was finished; nothing is written");
        return Ok(ExitCode::from(INTERRUPTED));
    }
    let records = Records::of(storm)?;
    write(storm, &records, outputs, look)?;
    let asserted = records.asserted();
    let failures: Vec<_> = assertions.iter().flat_map(|assertion| assertion.failures(&asserted)).collect();
    failures.iter().for_each(|failure| say(&format!("failed: {failure}")));
    if finished < planned {
        say(&format!("interrupted: {finished} of {planned} runs are finished, and the figures are of those"));
        return Ok(ExitCode::from(INTERRUPTED));
    }
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
