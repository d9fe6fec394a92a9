//! The figures of the AWS article's simulator, and ours beside them.

use core::time::Duration;

use stagger_core::{Jitter, Policy, Seed, profile};
use stagger_sim::occ::{Figures, Scenario};

/// Clients, strategy, calls and time in milliseconds, each with the standard deviation of its thousand runs; and what that
/// makes of `(c − 1)(τ − 1)`.
#[rustfmt::skip]
const ROWS: &[(u64, &str, (f64, f64), (f64, f64), f64)] = &[
    (10, "None", (50.8, 4.0), (379.0, 34.0), 3.66),
    (10, "Exponential", (50.8, 4.1), (3453.0, 1300.0), 66.32),
    (10, "Decorr", (37.6, 2.2), (434.0, 83.0), 3.23),
    (10, "EqualJitter", (42.5, 2.5), (727.0, 184.0), 8.56),
    (10, "FullJitter", (38.9, 2.3), (466.0, 107.0), 3.85),
    (50, "None", (690.7, 16.7), (1142.0, 43.0), 1.83),
    (50, "Exponential", (624.3, 29.2), (36338.0, 3209.0), 405.9),
    (50, "Decorr", (374.7, 13.2), (2229.0, 518.0), 7.98),
    (50, "EqualJitter", (347.3, 6.1), (4213.0, 554.0), 19.11),
    (50, "FullJitter", (332.7, 4.8), (2899.0, 541.0), 10.74),
    (100, "None", (2422.7, 30.8), (2027.0, 43.0), 0.31),
    (100, "Exponential", (1856.2, 60.2), (63469.0, 3724.0), 539.76),
    (100, "Decorr", (1002.1, 29.9), (4594.0, 679.0), 11.7),
    (100, "EqualJitter", (812.5, 7.7), (6621.0, 649.0), 16.46),
    (100, "FullJitter", (795.7, 6.9), (4942.0, 541.0), 10.23),
];

const THEIR_RUNS: f64 = 1_000.0;
const RUNS: u64 = 1_000;

/// The article's strategies. Its simulator counts the first failure as 1 before it asks for a delay, so that its first
/// window is twice its base of 5 ms.
fn policy(strategy: &str) -> Policy {
    let exponential = Policy::exponential(Duration::from_millis(10), Duration::from_secs(2)).unlimited_attempts();
    match strategy {
        "None" => Policy::zero().unlimited_attempts(),
        "Exponential" => exponential.jitter(Jitter::None),
        "FullJitter" => exponential,
        "EqualJitter" => exponential.jitter(Jitter::Equal),
        "Decorr" => profile::AWS_BLOG.policy().to_builder(),
        _ => panic!("there is no strategy {strategy}"),
    }
    .build()
    .unwrap()
}

fn runs(clients: u64, strategy: &str) -> Vec<Figures> {
    let (scenario, policy) = (Scenario::builder(clients).build().unwrap(), policy(strategy));
    (0..RUNS).map(|seed| scenario.run(&policy, Seed::new(seed))).collect()
}

fn moments(values: impl ExactSizeIterator<Item = f64> + Clone) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.clone().sum::<f64>() / count;
    (mean, (values.map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0)).sqrt())
}

/// Four standard errors of the difference of two means: one false alarm in some five hundred tables of this size.
#[test]
fn calls_and_times_are_those_of_the_article() {
    let mut failures = String::new();
    for &(clients, strategy, calls, time, to_limit) in ROWS {
        let runs = runs(clients, strategy);
        let ours = [
            ("calls", calls, moments(runs.iter().map(|run| run.calls as f64))),
            ("time", time, moments(runs.iter().map(|run| run.time.as_secs_f64() * 1e3))),
        ];
        for (what, theirs, ours) in ours {
            let error = (theirs.1.powi(2) / THEIR_RUNS + ours.1.powi(2) / RUNS as f64).sqrt();
            let off = (ours.0 - theirs.0) / error;
            // They are printed rounded.
            if (ours.0 - theirs.0).abs() > 4.0 * error + if what == "calls" { 0.05 } else { 0.5 } {
                failures += &format!("{clients} clients, {strategy}: {what} {ours:?} is not {theirs:?}: {off:+.1}\n");
            }
        }
        let mean = |figure: fn(&Figures) -> f64| moments(runs.iter().map(figure)).0;
        let got = (mean(Figures::calls_per_client) - 1.0) * (mean(Figures::time_per_client) - 1.0);
        // Where the time is the least there is, the difference to it is all noise.
        if time.0 > 1.2 * 20.0 * clients as f64 && (got / to_limit - 1.0).abs() > 0.05 {
            failures += &format!("{clients} clients, {strategy}: {got} is not {to_limit} times the limit\n");
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}
