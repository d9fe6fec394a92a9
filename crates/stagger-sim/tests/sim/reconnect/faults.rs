use core::time::Duration;

use stagger_sim::ScenarioFault;
use stagger_sim::reconnect::{Hints, Scenario, ScenarioBuilder};

fn faults(builder: ScenarioBuilder) -> Vec<ScenarioFault> {
    builder.build().err().map_or(Vec::new(), |error| error.faults().collect())
}

#[test]
fn a_scenario_that_makes_no_sense_cannot_be_built() {
    let plain = Scenario::builder(10);
    let (zero, second, day) = (Duration::ZERO, Duration::from_secs(1), Duration::from_secs(86_400));
    for (builder, want) in [
        (plain, None),
        (Scenario::builder(1 << 26), None),
        (Scenario::builder(0), Some(ScenarioFault::Clients)),
        (Scenario::builder((1 << 26) + 1), Some(ScenarioFault::Clients)),
        (Scenario::builder(10_000_000_000), Some(ScenarioFault::Clients)),
        (plain.rate(0.0), Some(ScenarioFault::Rate)),
        (plain.rate(-1.0), Some(ScenarioFault::Rate)),
        (plain.rate(f64::NAN), Some(ScenarioFault::Rate)),
        (plain.rate(f64::INFINITY), Some(ScenarioFault::Rate)),
        (plain.rate(0.001), None),
        (plain.rate(0.001).hints(Hints::Appointments), Some(ScenarioFault::AppointmentRate)),
        (plain.backlog(0), Some(ScenarioFault::Backlog)),
        (plain.one_way(second, zero), Some(ScenarioFault::Network)),
        (plain.one_way(second, second), None),
        (plain.one_way(zero, day), Some(ScenarioFault::Network)),
        (plain.one_way(zero, Duration::MAX), Some(ScenarioFault::Network)),
        (plain.hits_within(day * 2), Some(ScenarioFault::BeyondHorizon)),
        (plain.down_for(day * 2), Some(ScenarioFault::BeyondHorizon)),
        (plain.horizon(zero).hits_within(zero), Some(ScenarioFault::Horizon)),
        (plain.horizon(day * 4), Some(ScenarioFault::Horizon)),
        (plain.horizon(Duration::MAX), Some(ScenarioFault::Horizon)),
    ] {
        assert_eq!(faults(builder), Vec::from_iter(want), "{builder:?}");
    }
}

#[test]
fn every_fault_is_told_with_the_way_out() {
    let error = Scenario::builder(0).rate(f64::NAN).backlog(0).build().unwrap_err();
    let want = [ScenarioFault::Clients, ScenarioFault::Rate, ScenarioFault::Backlog];
    assert_eq!(error.faults().collect::<Vec<_>>(), want);
    let text = error.to_string();
    for part in ["1 and 67,108,864", "say what the server can take", "use 1 or more"] {
        assert!(text.contains(part), "{text}");
    }
}
