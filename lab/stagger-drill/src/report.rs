//! The document of all runs of a drill, each beside its simulation.

use core::time::Duration;

use stagger_report::storm::SAMPLED_CLIENTS;
use stagger_sim::reconnect::ReconnectScenario;
use stagger_sim::storm::{Measurements, StormReport};
use stagger_terminal::output::error::CliError;

use super::args::Settings;
use super::compare::{ComparedRun, agreement, simulations, with_everyone};
use super::observed::{Observed, Run, by_clients, simulate};

/// Returns the document of all runs: each policy as measured, and as simulated with the measurements of its own run.
pub(super) fn report(settings: &Settings, clients: u32, runs: &[Run]) -> Result<StormReport, CliError> {
    let all: Vec<&Measurements> = runs.iter().map(|run| &run.measured).collect();
    let seed = settings.seed;
    let mut storm = StormReport::new(&scenario(settings, clients, &all)?);
    for run in runs {
        let scenario = scenario(settings, clients, &[&run.measured])?;
        // An external server does not tell.
        let peak = match &run.measured.server {
            Some(server) => server.peak_backlog,
            None => 0,
        };
        let mut measured = run.measured.clone();
        let (real, simulated) = match &run.observed {
            Observed::ByClients(traces) => {
                let of_clients = |figures| ComparedRun::of_clients(figures, SAMPLED_CLIENTS);
                let simulated: Vec<_> = simulations(&scenario, &run.policy, seed).map(of_clients).collect();
                (of_clients(by_clients(traces, &with_everyone(&scenario), peak)), simulated)
            }
            Observed::ByServer(view) => {
                let down = Duration::try_from_secs_f64(measured.down_s.unwrap_or(0.0)).unwrap_or_default();
                (view.figures(&scenario, peak), simulate(&scenario, &run.policy, seed, down))
            }
        };
        measured.agreement = Some(agreement(&real, &simulated, &mut measured.warnings, &run.doubts));
        let (real, simulated) = (real.figures, simulated.into_iter().next().unwrap_or_default().figures);
        let row = |kind: &str| format!("{}, {kind}", run.name);
        storm = storm.with_strategy(row("measured"), &run.policy, [(seed, &real)]).with_measurements(measured);
        storm = storm.with_strategy(row("simulated"), &run.policy, [(seed, &simulated)]);
    }
    Ok(storm)
}

/// Returns the scenario of the drill, with the means of the measurements.
fn scenario(settings: &Settings, clients: u32, measured: &[&Measurements]) -> Result<ReconnectScenario, CliError> {
    let mean = |of: fn(&Measurements) -> f64| {
        let sum: f64 = measured.iter().map(|measured| of(measured)).sum();
        let mean = Duration::try_from_secs_f64(sum / measured.len().max(1) as f64).unwrap_or_default();
        mean.min(settings.horizon)
    };
    let scenario = ReconnectScenario::builder(u64::from(clients))
        .rate(settings.rate)
        .backlog(settings.backlog)
        .one_way(mean(|measured| measured.one_way_min_s), mean(|measured| measured.one_way_max_s))
        .disconnect_window(mean(|measured| measured.disconnect_window_s))
        .down_for(mean(|measured| measured.down_s.unwrap_or(0.0)))
        .horizon(settings.horizon)
        .sample(SAMPLED_CLIENTS);
    scenario.build().map_err(CliError::usage)
}

#[cfg(test)]
mod tests {
    use stagger_core::{Policy, Seed};
    use stagger_sim::reconnect::{AttemptTrace, ClientOutcome};
    use stagger_sim::storm::{RunFigures, ScenarioSpec};

    use super::super::log::ClientTrace;
    use super::super::observed::Doubts;
    use super::*;

    fn run(name: &str, down_s: f64) -> Run {
        let mut measured = Measurements::default();
        (measured.disconnect_window_s, measured.down_s) = (0.1, Some(down_s));
        (measured.one_way_min_s, measured.one_way_max_s) = (0.001, 0.002);
        let ms = Duration::from_millis;
        let attempts = vec![AttemptTrace { sent: ms(300), answered: Some(ms(310)) }];
        let traces = vec![ClientTrace { lost: ms(50), attempts, outcome: ClientOutcome::Connected }];
        Run {
            name: name.to_owned(),
            policy: Policy::DEFAULT,
            observed: Observed::ByClients(traces),
            measured,
            doubts: Doubts::default(),
        }
    }

    #[test]
    fn each_policy_is_simulated_with_its_own_measurements_and_the_document_has_their_means() {
        let settings = Settings {
            clients: None,
            rate: 100.0,
            backlog: 5,
            down: Duration::ZERO,
            horizon: Duration::from_secs(60),
            listen_backlog: None,
            policies: Vec::new(),
            command_clients: None,
            seed: Seed::new(1),
        };
        let storm = report(&settings, 1, &[run("short", 0.0), run("long", 3.0)]).unwrap();
        let ScenarioSpec::Reconnect(spec) = &storm.scenario else { panic!("{:?}", storm.scenario) };
        assert_eq!((spec.clients, spec.backlog), (1, 5));
        assert!((spec.down_for_s - 1.5).abs() < 1e-9 && (spec.one_way_max_s - 0.002).abs() < 1e-9, "{spec:?}");
        let t100 = storm.strategies.iter().map(|strategy| match &strategy.runs[0].figures {
            RunFigures::Reconnect(figures) => figures.t100_s,
            other => panic!("{other:?}"),
        });
        let t100: Vec<Option<f64>> = t100.collect();
        assert_eq!((t100[0], t100[2]), (Some(0.31), Some(0.31)), "as they were measured");
        assert!(t100[1].is_some_and(|at| at < 3.0) && t100[3].is_none_or(|at| at > 3.0), "{t100:?}");
    }
}
