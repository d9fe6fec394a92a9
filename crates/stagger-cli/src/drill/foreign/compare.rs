use core::time::Duration;

use stagger_core::{Policy, Seed};
use stagger_sim::reconnect::{ReconnectFigures, ReconnectScenario};
use stagger_sim::storm::{Agreement, ComparedFigure};

use super::super::agreement::is_within;
use super::view::{ServerFigures, ServerView};

/// Number of simulations that clients of a command are compared with. Their delays differ, as those of the clients may.
const SIMULATIONS: u64 = 8;

/// Runs the simulations, the first with `seed`, and returns what their servers saw.
pub(in crate::drill) fn simulate(
    scenario: &ReconnectScenario,
    policy: &Policy,
    seed: Seed,
    up_at: Duration,
) -> Vec<ServerFigures> {
    let everyone = scenario.with_sample(u32::try_from(scenario.clients()).unwrap_or(u32::MAX));
    let seeds = (0..SIMULATIONS).map(|nth| Seed::new(seed.get().wrapping_add(nth)));
    let view =
        |figures: ReconnectFigures| ServerView::of_simulation(&figures, up_at).figures(scenario, figures.peak_backlog);
    seeds.map(|seed| view(everyone.run(policy, seed))).collect()
}

/// Compares the figures that a policy is judged by. There is no verdict if there are `warnings`, to which the doubts are added if a
/// figure differs.
pub(in crate::drill) fn agreement(
    measured: &ServerFigures,
    simulated: &[ServerFigures],
    warnings: &mut Vec<String>,
    doubts: &[String],
) -> Agreement {
    type Figure = fn(&ServerFigures) -> Option<f64>;
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
        // Otherwise it does not exist in some of them, such as the recovery of clients that give up.
        let is_complete = values.len() == simulated.len() && !values.is_empty();
        let of_all = |value: f64| is_complete.then_some(value);
        let measured = of(measured);
        let mut compared = ComparedFigure::default();
        figure.clone_into(&mut compared.figure);
        compared.measured = measured;
        compared.simulated = of_all(values.iter().sum::<f64>() / values.len() as f64);
        compared.simulated_min = of_all(values.iter().copied().fold(f64::INFINITY, f64::min));
        compared.simulated_max = of_all(values.iter().copied().fold(f64::NEG_INFINITY, f64::max));
        compared.agrees = match measured {
            Some(measured) => is_within(measured, values.iter().copied(), noise),
            None => !is_complete,
        };
        compared
    });
    let mut agreement = Agreement::default();
    agreement.figures = compared.collect();
    let agrees = agreement.figures.iter().all(|compared| compared.agrees);
    if !agrees {
        warnings.extend_from_slice(doubts);
    }
    agreement.agrees = warnings.is_empty().then_some(agrees);
    agreement.simulations = u32::try_from(simulated.len()).unwrap_or(u32::MAX);
    agreement
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn seconds(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    fn scenario(clients: u64, down: Duration) -> ReconnectScenario {
        let scenario = ReconnectScenario::builder(clients).rate(100.0).backlog(50).down_for(down);
        scenario.one_way(Duration::ZERO, Duration::ZERO).disconnect_window(Duration::ZERO).build().unwrap()
    }

    #[test]
    fn the_server_of_a_simulation_sees_no_attempt_while_it_is_down() {
        let policy: Policy = "constant base=1s jitter=none max-attempts=none".parse().unwrap();
        let down = Duration::from_millis(2_500);
        let simulated = simulate(&scenario(20, down), &policy, Seed::new(1), down);
        assert_eq!(simulated.len() as u64, SIMULATIONS);
        for ServerFigures { figures, burst } in simulated {
            assert_eq!(burst, 20);
            // Each client makes its third attempt when the server is up again, and needs no other.
            assert_eq!((figures.attempts, figures.connected, figures.peak()), (20, 20, 20));
            assert_eq!(figures.arrivals.counts().len(), 31);
        }
    }

    #[test]
    fn figures_beyond_the_simulations_by_more_than_a_tenth_disagree() {
        let scenario = scenario(1_000, Duration::ZERO);
        let agrees = |measured: &str, simulated: &str| {
            let [measured, simulated] = [measured, simulated]
                .map(|text| simulate(&scenario, &text.parse().unwrap(), Seed::new(9), Duration::ZERO));
            agreement(&measured[0], &simulated, &mut Vec::new(), &[])
        };
        let policy = "exponential base=1s cap=8s max-attempts=none";
        assert_eq!(agrees(policy, policy).agrees, Some(true));
        let other = agrees("exponential base=2s cap=8s max-attempts=none", policy);
        assert_eq!(other.agrees, Some(false));
        let (figure, difference) = other.largest_difference().unwrap();
        assert!(!figure.agrees && difference.abs() > 0.1, "{figure:?}");
    }

    #[test]
    fn a_doubt_matters_only_if_a_figure_differs_and_a_warning_always() {
        let run =
            |text: &str| simulate(&scenario(100, Duration::ZERO), &text.parse().unwrap(), Seed::new(9), Duration::ZERO);
        let [one, other] = ["constant base=1s max-attempts=none", "constant base=4s max-attempts=none"].map(run);
        let doubts = ["busy".to_owned()];
        for (simulated, before, agrees, after) in [
            (&one, &[][..], Some(true), &[][..]),
            (&one, &["dropped"], None, &["dropped"]),
            (&other, &[], None, &["busy"]),
            (&other, &["dropped"], None, &["dropped", "busy"]),
        ] {
            let mut warnings: Vec<String> = before.iter().map(|&text| text.to_owned()).collect();
            assert_eq!(agreement(&one[0], simulated, &mut warnings, &doubts).agrees, agrees);
            assert_eq!(warnings, after);
        }
        assert_eq!(agreement(&one[0], &other, &mut Vec::new(), &[]).agrees, Some(false));
    }

    #[test]
    fn clients_that_give_up_agree_with_simulated_clients_that_do_and_with_no_others() {
        let scenario = scenario(1_000, seconds(5));
        let run = |text: &str| simulate(&scenario, &text.parse().unwrap(), Seed::new(9), seconds(5));
        let [few, many] = [3, 20].map(|most| run(&format!("constant base=1s jitter=none max-attempts={most}")));
        assert_eq!(few[0].figures.recovered_p99, None, "no client is back before the server");
        assert_eq!(agreement(&few[0], &few, &mut Vec::new(), &[]).agrees, Some(true));
        let other = agreement(&few[0], &many, &mut Vec::new(), &[]);
        let half = other.figures.iter().find(|compared| compared.figure == "recovered_p50_s").unwrap();
        assert_eq!((half.measured, half.agrees, other.agrees), (None, false, Some(false)));
        assert!(half.simulated.is_some(), "with more attempts, half of the clients are back");
    }
}
