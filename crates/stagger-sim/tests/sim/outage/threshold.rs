//! The threshold of N. Bronson et al., "Metastable Failures in Distributed Systems", HotOS 2021: a database of 300
//! queries per second whose clients retry once. Up to 150 requests per second it recovers from an outage of ten
//! seconds; above, it is vulnerable, although it works at 280.

use core::time::Duration;

use stagger_core::{Policy, Seed};
use stagger_sim::outage::{OutageKind, OutageScenario, ProcessGuards};

/// Returns whether at least two of three runs at this rate are down half an hour after the outage.
fn is_vulnerable(rate: f64) -> bool {
    let seconds = Duration::from_secs;
    let scenario = OutageScenario::builder(rate).capacity(300.0).horizon(seconds(1_800));
    let scenario = scenario.outage(OutageKind::Stall, seconds(20), seconds(10)).build().unwrap();
    let policy = Policy::zero().max_attempts(2).build().unwrap();
    let is_down = |seed| scenario.run(&policy, |_| ProcessGuards::none(), Seed::new(seed)).is_metastable();
    match (is_down(1), is_down(2)) {
        (first, second) if first == second => first,
        _ => is_down(3),
    }
}

/// Returns the rate between these two, the first of which is not vulnerable, above which the system is, to a request
/// per second.
fn threshold(mut stable: f64, mut vulnerable: f64) -> f64 {
    while vulnerable - stable > 1.0 {
        let middle = (stable + vulnerable) / 2.0;
        if is_vulnerable(middle) { vulnerable = middle } else { stable = middle }
    }
    (stable + vulnerable) / 2.0
}

#[test]
fn the_threshold_of_bronson_et_al_is_found_by_bisection() {
    assert!(is_vulnerable(280.0), "the published load");
    let threshold = threshold(142.0, 158.0);
    assert!((149.0..=151.0).contains(&threshold), "{threshold} requests per second");
}
