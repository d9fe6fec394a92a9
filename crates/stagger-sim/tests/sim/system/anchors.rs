//! The published statements that systems of services are held to, each as one claim. The cells beside them have the
//! figures.

use core::time::Duration;

use stagger_sim::system::{Cache, Edge, NestedCalls, Service, System, SystemFigures, Trigger};

use super::chains;
use super::one_server::at_once;
use super::table::runs;

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn down(system: &System, seeds: u64) -> usize {
    runs(system, seeds).iter().filter(|run| run.state_at_horizon().is_down()).count()
}

/// Returns a server of 300 requests per second, and its caller's edge.
fn three_hundred(rate: f64, edge: Edge, trigger: Trigger) -> System {
    let service = Service::new("server").service_time(Duration::from_secs_f64(1.0 / 300.0)).backlog(3_000);
    System::builder(rate).service(service).edge(edge).trigger(trigger).horizon(seconds(1_820)).build().unwrap()
}

/// Bronson et al., HotOS 2021, §2.1: with one retry, 300 requests per second carry 150.
#[test]
fn one_retry_halves_the_load_that_a_server_survives() {
    let at = |rate| down(&three_hundred(rate, Edge::from_users("server").policy(at_once(2)), Trigger::stall()), 4);
    assert!(at(149.0) <= 2, "most seeds are down at 149/s");
    assert_eq!(at(151.0), 4);
}

/// Bronson et al., HotOS 2021, §2.2: a cache is vulnerable above the rate of its database.
#[test]
fn a_cold_cache_is_survived_up_to_the_rate_of_the_database() {
    let cache = Cache::new(0.9, 10_000_000);
    let at = |rate| down(&three_hundred(rate, Edge::from_users("server").cache(cache), Trigger::cold()), 4);
    assert_eq!(at(300.0), 0);
    assert!(at(303.0) > 2, "most seeds are up at 303/s");
}

/// Returns the largest mean of the attempts per request on an edge, during the fault.
fn amplification(runs: &[SystemFigures], edge: usize) -> f64 {
    runs.iter().map(|run| run.attempts_per_request_during_fault(edge)).sum::<f64>() / runs.len() as f64
}

#[test]
fn three_attempts_in_three_layers_are_27() {
    let attempts = amplification(&runs(&chains::system(169), 2), 2);
    assert!((26.95..=27.0).contains(&attempts), "{attempts}");
}

/// Checks what budgets save, in cell 147, and what they cost if every second call fails: cells 153, 157 and stand-down.
#[test]
fn budgets_of_a_tenth_bound_the_attempts_and_cost_success_when_half_of_the_calls_fail() {
    let attempts = amplification(&runs(&chains::system(147), 4), 2);
    assert!((1.0..=1.1_f64.powi(3)).contains(&attempts), "{attempts}");
    let success = |system: &System| {
        let runs = runs(system, 4);
        runs.iter().map(SystemFigures::success_ratio_during_fault).sum::<f64>() / runs.len() as f64
    };
    let half = chains::system(153);
    let stand_down = chains::with_edges(&half, |edge| edge.nested(NestedCalls::StandDown));
    let [all, once, budgeted] = [&half, &stand_down, &chains::system(157)].map(success);
    assert!(all > 0.999, "{all}");
    assert!((once - 0.875).abs() < 0.01, "{once} with stand-down, expected 1 − 0.5³");
    assert!((budgeted - 0.637).abs() < 0.01, "{budgeted} with budgets, expected 0.637");
}

/// The exact figures for an error share x and three attempts at each of three edges: a call over edge n fails with
/// x^(3^(3−n+1)), and makes 1 + p + p² attempts, where p is the failure of one attempt.
#[test]
fn errors_of_a_share_have_the_exact_number_of_attempts() {
    for (cell, x) in [(151, 0.1_f64), (153, 0.5), (155, 0.9)] {
        let runs = runs(&chains::system(cell), 4);
        let mut want = 1.0;
        for edge in 0..3_usize {
            let p = x.powi(3_i32.pow(2 - edge as u32));
            want *= 1.0 + p + p * p;
            let got = amplification(&runs, edge);
            assert!((got / want - 1.0).abs() < 0.01, "x {x}, edge {edge}: {got} attempts, expected {want}");
        }
    }
}
