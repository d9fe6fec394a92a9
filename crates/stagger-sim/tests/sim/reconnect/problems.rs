use core::time::Duration;

use stagger_sim::ScenarioProblem;
use stagger_sim::reconnect::{ReconnectScenario, ReconnectScenarioBuilder, RetryAfter};

fn problems(builder: ReconnectScenarioBuilder) -> Vec<ScenarioProblem> {
    builder.build().err().map_or(Vec::new(), |error| error.problems().collect())
}

#[test]
fn an_invalid_scenario_cannot_be_built() {
    let plain = ReconnectScenario::builder(10);
    let (zero, second, day) = (Duration::ZERO, Duration::from_secs(1), Duration::from_secs(86_400));
    for (builder, want) in [
        (plain, None),
        (ReconnectScenario::builder(1 << 26), None),
        (ReconnectScenario::builder(0), Some(ScenarioProblem::Clients)),
        (ReconnectScenario::builder((1 << 26) + 1), Some(ScenarioProblem::Clients)),
        (ReconnectScenario::builder(10_000_000_000), Some(ScenarioProblem::Clients)),
        (plain.rate(0.0), Some(ScenarioProblem::Rate)),
        (plain.rate(-1.0), Some(ScenarioProblem::Rate)),
        (plain.rate(f64::NAN), Some(ScenarioProblem::Rate)),
        (plain.rate(f64::INFINITY), Some(ScenarioProblem::Rate)),
        (plain.rate(0.001), None),
        (plain.rate(0.001).retry_after(RetryAfter::Reservations), Some(ScenarioProblem::ReservationRate)),
        (plain.backlog(0), Some(ScenarioProblem::Backlog)),
        (plain.one_way(second, zero), Some(ScenarioProblem::Network)),
        (plain.one_way(second, second), None),
        (plain.one_way(zero, day), Some(ScenarioProblem::Network)),
        (plain.one_way(zero, Duration::MAX), Some(ScenarioProblem::Network)),
        (plain.disconnect_window(day * 2), Some(ScenarioProblem::BeyondHorizon)),
        (plain.down_for(day * 2), Some(ScenarioProblem::BeyondHorizon)),
        (plain.horizon(zero).disconnect_window(zero), Some(ScenarioProblem::Horizon)),
        (plain.horizon(day * 4), Some(ScenarioProblem::Horizon)),
        (plain.horizon(Duration::MAX), Some(ScenarioProblem::Horizon)),
    ] {
        assert_eq!(problems(builder), Vec::from_iter(want), "{builder:?}");
    }
}

#[test]
fn every_problem_is_reported_with_a_fix() {
    let error = ReconnectScenario::builder(0).rate(f64::NAN).backlog(0).build().unwrap_err();
    let want = [ScenarioProblem::Clients, ScenarioProblem::Rate, ScenarioProblem::Backlog];
    assert_eq!(error.problems().collect::<Vec<_>>(), want);
    let text = error.to_string();
    for part in ["1 and 67,108,864", "use the capacity of the server", "use a value between 1"] {
        assert!(text.contains(part), "{text}");
    }
}
