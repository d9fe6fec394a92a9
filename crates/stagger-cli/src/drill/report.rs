use core::time::Duration;

use stagger_sim::reconnect::{self, Record, Scenario};
use stagger_sim::storm::Storm;

use super::run::Run;
use super::settings::Settings;
use crate::error::CliError;

/// Of so many clients every attempt is kept, for a picture.
const SAMPLE: u32 = 60;

/// All runs as a document: each policy as it was measured, and as it is simulated.
///
/// # Errors
/// What was measured makes no scenario.
pub(super) fn report(settings: &Settings, clients: u32, runs: &[Run]) -> Result<Storm, CliError> {
    let scenario = scenario(settings, clients, runs)?;
    let seed = settings.seed;
    let mut storm = Storm::new(&scenario);
    for run in runs {
        let peak = run.measured.server.as_ref().map_or(0, |server| server.peak_backlog);
        let mut record = Record::new(&scenario);
        for course in &run.courses {
            record.client(&reconnect::Course { lost: course.lost, attempts: &course.attempts, ended: course.ended });
        }
        let (made, simulated) = (record.figures(peak), scenario.run(&run.policy, seed));
        let row = |kind: &str| format!("{}, {kind}", run.name);
        storm = storm.with(row("measured"), &run.policy, [(seed, &made)]).measured(run.measured.clone());
        storm = storm.with(row("simulated"), &run.policy, [(seed, &simulated)]);
    }
    Ok(storm)
}

/// What was drilled, with what was measured of the machine: means of all runs, for the world is to be the same for every
/// policy.
fn scenario(settings: &Settings, clients: u32, runs: &[Run]) -> Result<Scenario, CliError> {
    let mean = |of: fn(&Run) -> f64| {
        let sum: f64 = runs.iter().map(of).sum();
        Duration::try_from_secs_f64(sum / runs.len().max(1) as f64).unwrap_or_default()
    };
    let scenario = Scenario::builder(u64::from(clients))
        .rate(settings.rate)
        .backlog(settings.backlog)
        .one_way(mean(|run| run.one_way.0.as_secs_f64()), mean(|run| run.one_way.1.as_secs_f64()))
        .hits_within(mean(|run| run.measured.lost_within_s))
        .down_for(mean(|run| run.measured.down_s.unwrap_or(0.0)))
        .horizon(settings.horizon)
        .sample(SAMPLE);
    scenario.build().map_err(CliError::usage)
}
