//! Scenarios for tests.

use stagger_sim::occ::OccScenario;
use stagger_sim::outage::OutageScenario;
use stagger_sim::reconnect::ReconnectScenario;
use stagger_sim::storm::ScenarioSpec;

/// Returns a scenario of each kind.
pub(super) fn every_scenario() -> [ScenarioSpec; 4] {
    let reconnect = ReconnectScenario::builder(1).build().expect("a scenario");
    [
        ScenarioSpec::from(&reconnect),
        ScenarioSpec::fluid(&reconnect),
        ScenarioSpec::from(&OutageScenario::builder(1.0).build().expect("a scenario")),
        ScenarioSpec::from(&OccScenario::builder(2).build().expect("a scenario")),
    ]
}
