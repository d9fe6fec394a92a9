//! The comparison of a measured run with its simulations.

use core::time::Duration;

use stagger_core::{Policy, Seed};
use stagger_sim::reconnect::{ReconnectFigures, ReconnectScenario};
use stagger_sim::storm::{Agreement, ComparedFigure};

use super::observed::Doubts;

/// Number of simulations that a run is compared with. Their delays differ.
const SIMULATIONS: u64 = 8;
/// Time in which a burst is counted.
const BURST: Duration = Duration::from_millis(100);

/// The figures of a run that is compared with others.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ComparedRun {
    pub(super) figures: ReconnectFigures,
    /// Largest number of arrivals within any 100 ms. Clients that arrive together may fall on the border of two bins of
    /// 100 ms, so the peak of the bins would depend on when the run began.
    pub(super) burst: u64,
}

impl ComparedRun {
    /// Takes the burst from figures that have a sample of all clients, of which it leaves the first `sampled`.
    pub(super) fn of_clients(mut figures: ReconnectFigures, sampled: u32) -> Self {
        let burst = burst(figures.sample.iter().flatten().copied().collect());
        for sample in [&mut figures.sample, &mut figures.sample_losses, &mut figures.sample_connects] {
            sample.truncate(sampled as usize);
        }
        Self { figures, burst }
    }
}

/// Returns this scenario with a sample of all clients, from which a burst can be counted.
pub(super) fn with_everyone(scenario: &ReconnectScenario) -> ReconnectScenario {
    scenario.with_sample(u32::try_from(scenario.clients()).unwrap_or(u32::MAX))
}

/// Runs the simulations, the first with `seed`. Their figures have a sample of all clients.
pub(super) fn simulations(
    scenario: &ReconnectScenario,
    policy: &Policy,
    seed: Seed,
) -> impl Iterator<Item = ReconnectFigures> + use<> {
    let (everyone, policy) = (with_everyone(scenario), *policy);
    (0..SIMULATIONS).map(move |nth| everyone.run(&policy, Seed::new(seed.get().wrapping_add(nth))))
}

/// Returns the largest number of these times within [`BURST`].
pub(super) fn burst(mut times: Vec<Duration>) -> u64 {
    times.sort_unstable();
    let (mut most, mut first) = (0, 0);
    for (at, time) in times.iter().enumerate() {
        while *time - times[first] >= BURST {
            first += 1;
        }
        most = most.max(at + 1 - first);
    }
    most as u64
}

/// Compares the figures that a policy is judged by. There is no verdict if there are `warnings`, to which the doubts
/// are added if a figure differs. A gross difference without a doubt about the clients needs no calm machine: their
/// timers fired in time, and nothing was lost on the way, or there would be a warning.
pub(super) fn agreement(
    measured: &ComparedRun,
    simulated: &[ComparedRun],
    warnings: &mut Vec<String>,
    doubts: &Doubts,
) -> Agreement {
    type Figure = fn(&ComparedRun) -> Option<f64>;
    // Each with the difference that is noise: of attempts, of attempts per client, of a time, of clients.
    let figures: [(&str, Figure, f64); 5] = [
        ("burst_100ms", |seen| Some(seen.burst as f64), 3.0),
        ("attempts_per_client", |seen| Some(seen.figures.attempts_per_client()), 0.02),
        ("recovered_p50_s", |seen| seen.figures.recovered_p50.map(|time| time.as_secs_f64()), 0.1),
        ("recovered_p99_s", |seen| seen.figures.recovered_p99.map(|time| time.as_secs_f64()), 0.1),
        ("connected", |seen| Some(seen.figures.connected as f64), 2.0),
    ];
    let compared = figures.into_iter().map(|(figure, of, noise)| {
        let values: Vec<f64> = simulated.iter().filter_map(of).collect();
        // A figure may not exist in some simulations, such as the time of recovery if clients give up.
        let is_complete = values.len() == simulated.len() && !values.is_empty();
        let mut compared = ComparedFigure::default();
        figure.clone_into(&mut compared.figure);
        compared.measured = of(measured);
        if is_complete {
            compared.simulated = Some(values.iter().sum::<f64>() / values.len() as f64);
            compared.simulated_min = values.iter().copied().reduce(f64::min);
            compared.simulated_max = values.iter().copied().reduce(f64::max);
        }
        compared.agrees = match compared.measured {
            Some(measured) => is_within(measured, values.iter().copied(), noise),
            None => !is_complete,
        };
        compared
    });
    let mut agreement = Agreement::default();
    agreement.figures = compared.collect();
    let agrees = agreement.figures.iter().all(|compared| compared.agrees);
    if !agrees {
        let is_gross = agreement.figures.iter().any(is_gross);
        warnings.extend_from_slice(&doubts.clients);
        if !is_gross || !warnings.is_empty() {
            warnings.extend(doubts.machine.clone());
        }
    }
    if warnings.is_empty() {
        agreement.agrees = Some(agrees);
    }
    agreement.simulations = u32::try_from(simulated.len()).unwrap_or(u32::MAX);
    agreement
}

/// How far beyond the simulated values is agreement, as a share of them.
const TOLERANCE: f64 = 0.1;

/// How far beyond the simulated values no load of the machine explains if timers were in time, as a share of them.
const GROSS: f64 = 0.5;

/// Returns whether a measured value is beyond the least or the most of simulated ones by more than a half of it.
pub(super) fn is_far(measured: f64, [least, most]: [f64; 2]) -> bool {
    measured < least * (1.0 - GROSS) || measured > most * (1.0 + GROSS)
}

fn is_gross(compared: &ComparedFigure) -> bool {
    match (compared.measured, compared.simulated_min, compared.simulated_max) {
        (Some(measured), Some(least), Some(most)) => !compared.agrees && is_far(measured, [least, most]),
        _ => false,
    }
}

/// Returns whether a measured value is within the range of the simulated ones, or beyond it by at most a tenth, or by
/// at most `noise`.
pub(super) fn is_within(measured: f64, simulated: impl Iterator<Item = f64> + Clone, noise: f64) -> bool {
    let least = simulated.clone().fold(f64::INFINITY, f64::min);
    let most = simulated.fold(f64::NEG_INFINITY, f64::max);
    let margin = |value: f64| (TOLERANCE * value.abs()).max(noise);
    measured >= least - margin(least) && measured <= most + margin(most)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario() -> ReconnectScenario {
        let scenario = ReconnectScenario::builder(100).rate(100.0).backlog(50).down_for(Duration::ZERO);
        scenario.one_way(Duration::ZERO, Duration::ZERO).disconnect_window(Duration::ZERO).build().unwrap()
    }

    fn run(text: &str) -> Vec<ComparedRun> {
        let runs = simulations(&scenario(), &text.parse().unwrap(), Seed::new(9));
        runs.map(|figures| ComparedRun::of_clients(figures, 3)).collect()
    }

    #[test]
    fn a_burst_is_counted_in_any_100_ms_and_in_any_order() {
        let burst = |millis: &[u64]| burst(millis.iter().copied().map(Duration::from_millis).collect());
        assert_eq!(burst(&[]), 0);
        assert_eq!(burst(&[50, 180, 120, 149, 150]), 4, "from 50 to 149 there are three, and from 120 on four");
        assert_eq!(burst(&[0, 100, 200]), 1);
    }

    #[test]
    fn the_burst_is_that_of_all_clients_and_the_sample_remains_small() {
        let runs = run("constant base=1s jitter=none max-attempts=none");
        assert_eq!(runs.len() as u64, SIMULATIONS);
        for ComparedRun { figures, burst } in runs {
            assert_eq!((burst, figures.sample.len(), figures.sample_connects.len()), (100, 3, 3));
        }
    }

    #[test]
    fn a_doubt_matters_only_if_a_figure_differs_and_a_warning_always() {
        let [one, other] = ["constant base=1s max-attempts=none", "constant base=4s max-attempts=none"].map(run);
        let doubts = Doubts { clients: vec!["late".to_owned()], machine: Some("busy".to_owned()) };
        for (simulated, before, agrees, after) in [
            (&one, &[][..], Some(true), &[][..]),
            (&one, &["dropped"], None, &["dropped"]),
            (&other, &[], None, &["late", "busy"]),
            (&other, &["dropped"], None, &["dropped", "late", "busy"]),
        ] {
            let mut warnings: Vec<String> = before.iter().map(|&text| text.to_owned()).collect();
            assert_eq!(agreement(&one[0], simulated, &mut warnings, &doubts).agrees, agrees);
            assert_eq!(warnings, after);
        }
        assert_eq!(agreement(&one[0], &other, &mut Vec::new(), &Doubts::default()).agrees, Some(false));
    }

    #[test]
    fn a_gross_difference_of_clients_that_were_in_time_is_no_fault_of_a_busy_machine() {
        let [one, near, far] =
            ["1s", "1300ms", "4s"].map(|base| run(&format!("constant base={base} max-attempts=none")));
        let doubts = Doubts { clients: Vec::new(), machine: Some("busy".to_owned()) };
        for (simulated, agrees, after) in [(&near, None, &["busy"][..]), (&far, Some(false), &[])] {
            let mut warnings = Vec::new();
            assert_eq!(agreement(&one[0], simulated, &mut warnings, &doubts).agrees, agrees);
            assert_eq!(warnings, after);
        }
    }
}
