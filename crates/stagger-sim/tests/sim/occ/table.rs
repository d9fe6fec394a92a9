//! Compares the figures of the AWS article's simulator with ours.

use core::time::Duration;

use stagger_core::{Jitter, Policy, Seed, profile};
use stagger_sim::occ::{OccFigures, OccScenario};

use super::reference_model;
use crate::sim::reference::moments;

/// Mean and standard deviation.
type Moments = (f64, f64);

/// Clients, strategy, calls and time in milliseconds, with the standard deviations over a thousand runs; and the
/// resulting `(c − 1)(τ − 1)`, and calls relative to the optimum for the same time.
#[rustfmt::skip]
const ROWS: &[(u64, &str, Moments, Moments, f64, Option<f64>)] = &[
    (10, "None", (50.8, 4.0), (379.0, 34.0), 3.66, Some(2.4)),
    (10, "Exponential", (50.8, 4.1), (3453.0, 1300.0), 66.32, Some(4.8)),
    (10, "Decorr", (37.6, 2.2), (434.0, 83.0), 3.23, Some(2.0)),
    (10, "EqualJitter", (42.5, 2.5), (727.0, 184.0), 8.56, Some(3.1)),
    (10, "FullJitter", (38.9, 2.3), (466.0, 107.0), 3.85, Some(2.2)),
    (50, "None", (690.7, 16.7), (1142.0, 43.0), 1.83, Some(1.7)),
    (50, "Exponential", (624.3, 29.2), (36338.0, 3209.0), 405.9, Some(12.1)),
    (50, "Decorr", (374.7, 13.2), (2229.0, 518.0), 7.98, Some(4.1)),
    (50, "EqualJitter", (347.3, 6.1), (4213.0, 554.0), 19.11, Some(5.3)),
    (50, "FullJitter", (332.7, 4.8), (2899.0, 541.0), 10.74, Some(4.4)),
    (100, "None", (2422.7, 30.8), (2027.0, 43.0), 0.31, None),
    (100, "Exponential", (1856.2, 60.2), (63469.0, 3724.0), 539.76, Some(18.0)),
    (100, "Decorr", (1002.1, 29.9), (4594.0, 679.0), 11.7, Some(5.7)),
    (100, "EqualJitter", (812.5, 7.7), (6621.0, 649.0), 16.46, Some(5.7)),
    (100, "FullJitter", (795.7, 6.9), (4942.0, 541.0), 10.23, Some(4.7)),
];

const THEIR_RUNS: f64 = 1_000.0;
const RUNS: u64 = 1_000;

/// Returns a strategy of the article. Its simulator counts the first failure as 1 before it computes a delay, so its
/// first window is twice its base of 5 ms.
fn policy(strategy: &str) -> Policy {
    let exponential = Policy::exponential(Duration::from_millis(10), Duration::from_secs(2)).unlimited_attempts();
    match strategy {
        "None" => Policy::zero().unlimited_attempts(),
        "Exponential" => exponential.jitter(Jitter::None),
        "FullJitter" => exponential,
        "EqualJitter" => exponential.jitter(Jitter::Equal),
        "Decorr" => profile::AWS_BLOG.policy().to_builder(),
        _ => panic!("unknown strategy {strategy}"),
    }
    .build()
    .unwrap()
}

fn ours(clients: u64, strategy: &str, runs: u64) -> Vec<OccFigures> {
    let (scenario, policy) = (OccScenario::builder(clients).build().unwrap(), policy(strategy));
    (0..runs).map(|seed| scenario.run(&policy, Seed::new(seed))).collect()
}

fn mean(runs: &[OccFigures], figure: fn(&OccFigures) -> f64) -> f64 {
    moments(runs.iter().map(figure)).0
}

/// Returns the moments of the calls, and of the time in milliseconds.
fn calls_and_time(runs: &[OccFigures]) -> [(f64, f64); 2] {
    [moments(runs.iter().map(|run| run.calls as f64)), moments(runs.iter().map(|run| run.time.as_secs_f64() * 1e3))]
}

/// Returns a line for each of both figures that differs by more than four standard errors of the difference of the
/// means, plus rounding. This gives one false alarm in about five hundred tables of thirty figures.
fn apart(runs: &[OccFigures], theirs: [(f64, f64); 2], their_runs: f64, digits: [f64; 2]) -> String {
    let mut failures = String::new();
    for (n, what) in ["calls", "time"].into_iter().enumerate() {
        let (ours, theirs) = (calls_and_time(runs)[n], theirs[n]);
        let error = (theirs.1.powi(2) / their_runs + ours.1.powi(2) / runs.len() as f64).sqrt();
        if (ours.0 - theirs.0).abs() > 4.0 * error + digits[n] {
            let errors = (ours.0 - theirs.0) / error;
            failures += &format!("{what} {ours:?}, expected {theirs:?}: {errors:+.1} standard errors\n");
        }
    }
    failures
}

#[test]
fn calls_and_times_match_the_article() {
    let mut failures = String::new();
    for &(clients, strategy, calls, time, to_limit, calls_to_limit) in ROWS {
        let runs = ours(clients, strategy, RUNS);
        // The article's figures are rounded.
        let mut failure = apart(&runs, [calls, time], THEIR_RUNS, [0.05, 0.5]);
        let got = (mean(&runs, OccFigures::calls_per_client) - 1.0) * (mean(&runs, OccFigures::time_per_client) - 1.0);
        // If the time is close to the minimum, the difference is noise.
        if time.0 > 1.2 * 20.0 * clients as f64 && (got / to_limit - 1.0).abs() > 0.05 {
            failure += &format!("{got} times the limit, expected {to_limit}\n");
        }
        if let Some(want) = calls_to_limit {
            let got = moments(runs.iter().filter_map(OccFigures::calls_to_limit)).0;
            if (got - want).abs() > 0.05 + 0.05 * want {
                failure += &format!("{got} times the calls, expected {want}\n");
            }
        }
        failures += &failure.replace('\n', &format!(" ({clients} clients, {strategy})\n"));
    }
    assert!(failures.is_empty(), "\n{failures}");
}

/// Compares with a reference model for numbers of clients that are not in the article.
#[test]
fn calls_and_times_match_a_reference_model() {
    let mut failures = String::new();
    for (clients, runs) in
        [(1, 1_000), (2, 1_000), (3, 1_000), (7, 1_000), (20, 1_000), (30, 500), (70, 300), (190, 100)]
    {
        for strategy in ["None", "Exponential", "Decorr", "EqualJitter", "FullJitter"] {
            let plain: Vec<_> = (0..runs).map(|seed| reference_model::run(clients as usize, strategy, seed)).collect();
            let theirs = [moments(plain.iter().map(|run| run.0)), moments(plain.iter().map(|run| run.1))];
            // Ours counts whole microseconds, which matters for few messages.
            let failure = apart(&ours(clients, strategy, runs), theirs, runs as f64, [1e-9, 0.002]);
            failures += &failure.replace('\n', &format!(" ({clients} clients, {strategy})\n"));
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

/// Checks that the time of a single client is that of four messages.
#[test]
fn a_single_client_needs_one_call_and_four_messages() {
    let runs = ours(1, "FullJitter", 1_000);
    assert!(runs.iter().all(|run| run.calls == 1 && run.written == 1));
    let [_, (time, deviation)] = calls_and_time(&runs);
    // Four times 10 ± 2 ms, with five standard errors.
    assert!((time - 40.0).abs() < 5.0 * 4.0 / 1_000_f64.sqrt(), "{time}");
    assert!((deviation - 4.0).abs() < 5.0 * 4.0 / 2_000_f64.sqrt(), "{deviation}");
}

/// Checks that attempts without delay reach the minimum time at the maximum cost: about a quarter of all pairs
/// conflict.
#[test]
fn without_delays_the_time_is_minimal_and_calls_are_maximal() {
    let runs = ours(200, "None", 100);
    // The first of many messages is faster than the mean: 18.5 ms per write.
    let time = 20.0 * mean(&runs, OccFigures::time_per_client);
    assert!((time - 18.5).abs() < 0.5, "{time} ms");
    // On average a client needs half of the time, at four messages per call.
    let (calls, fit) = (mean(&runs, OccFigures::calls_per_client), 200.0 * time / 2.0 / 40.0);
    assert!((calls / fit - 1.0).abs() < 0.07, "{calls} calls per client, expected {fit}");
}

#[test]
fn negative_message_delays_are_folded() {
    let scenario =
        OccScenario::builder(1).one_way(Duration::from_millis(10), Duration::from_millis(10)).build().unwrap();
    let times = (0..4_000).map(|seed| scenario.run(&policy("None"), Seed::new(seed)).time.as_secs_f64());
    let (mean, deviation) = moments(times);
    // Four times the mean of a folded normal deviate, σ √(2/π) e^(−μ²/2σ²) + μ (1 − 2 Φ(−μ/σ)).
    let want = 4.0 * 0.011_666_3;
    assert!((mean - want).abs() < 4.0 * deviation / 4_000_f64.sqrt(), "{mean}, expected {want}");
}

#[test]
fn clients_without_attempts_give_up_and_all_others_write() {
    let policy = Policy::DEFAULT.to_builder().max_attempts(2).build().unwrap();
    let figures = OccScenario::builder(50).build().unwrap().run(&policy, Seed::new(1));
    assert_eq!(figures.written + figures.gave_up, 50);
    assert!(figures.gave_up > 10 && figures.written > 2, "{figures:?}");
    assert!(figures.calls <= 100, "{figures:?}");
}
