use std::process::ExitCode;

use stagger_sim::storm::StormReport;

use super::assertion::Assertion;
use super::interrupt::Interrupt;
use super::outputs::Outputs;
use super::results::Results;
use super::write::write;
use stagger_terminal::output::error::CliError;
use stagger_terminal::output::write::say;
use stagger_terminal::plot::RenderOptions;

/// Number of runs that were planned, and that finished.
#[derive(Clone, Copy, Debug)]
pub struct RunCount {
    pub planned: usize,
    pub finished: usize,
}

/// Writes the outputs, checks the assertions, and returns the exit status.
pub fn finish(
    storm: &StormReport,
    runs: RunCount,
    interrupt: &Interrupt,
    assertions: &[Assertion],
    outputs: Outputs,
    options: RenderOptions,
) -> Result<ExitCode, CliError> {
    let RunCount { planned, finished } = runs;
    if finished == 0 {
        say("interrupted before any run finished; nothing was written");
        return Ok(ExitCode::from(interrupt.exit_status()));
    }
    let results = Results::from_storm(storm);
    write(storm, &results, outputs, options)?;
    let asserted = results.assertion_targets();
    let failures: Vec<_> = assertions.iter().flat_map(|assertion| assertion.failures(&asserted)).collect();
    failures.iter().for_each(|failure| say(&format!("assertion failed: {failure}")));
    if finished < planned {
        say(&format!("interrupted: {finished} of {planned} runs finished; the report contains only those"));
        return Ok(ExitCode::from(interrupt.exit_status()));
    }
    Ok(if failures.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
